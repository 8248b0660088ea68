package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// stands reports whether a line says what a claim says. A line that is quoted
// stands there as it is. Of a fact, the line holds its value, and where that
// alone says little, such as a small number or true, what names the fact in the
// texts that tell it: factLines.
func stands(c claim, line string) bool {
	if !c.ofThis(line) || !c.underName(line) {
		return false
	}
	if said, ok := c.value.(string); ok && (strings.HasPrefix(c.fact, "logs.messages") || strings.HasPrefix(c.fact, "kernel_log.")) {
		return quotes(line, said)
	}
	for _, d := range factLines {
		if m := d.fact.FindStringSubmatch(c.fact); m != nil {
			return d.says(c, m, line)
		}
	}
	return shows(line, c.value)
}

var (
	pciAddress  = regexp.MustCompile(`(?i)\b(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b`)
	leadingGPU  = regexp.MustCompile(`^\W{0,6}(?:GPU|card|Device)? ?\[?(\d{1,3})(?:[\]:,)]|\s|$)`)
	ordinalPair = regexp.MustCompile(`\b(\d{1,3}) -> (\d{1,3})\b|\((\d{1,3}), (\d{1,3})\)|Device=(\d+) .*Device=(\d+)|\(GPU(\d+)\) -> .*\(GPU(\d+)\)`)
	otherEnd    = regexp.MustCompile(`target="[^"]*"`)
	// matrixCell is a rate between two GPUs, and matrixRow the row of a matrix.
	matrixCell = regexp.MustCompile(`^benchmarks\[(?:nvbandwidth|p2pBandwidthLatencyTest)\]\.points\[GPU(\d+) -> GPU(\d+)\]$`)
	matrixRow  = regexp.MustCompile(`^\s*(\d{1,3})(?:\s+(?:N/A|\d+\.\d+)){2}`)
	rowOfGPU   = regexp.MustCompile(`^(GPU\d+)\s`)
	rowOfNIC   = regexp.MustCompile(`^(?:NIC\d+|mlx\w+)\s`)
	// interfaceHead names the interface that a line begins, or is of.
	interfaceHead = regexp.MustCompile(`^\d+: ([^@:\s]+)[@:]|^([^@\s]+)\S* +(?:UP|DOWN|UNKNOWN) `)
	interfaceKey  = regexp.MustCompile(`^nics\.interfaces\[([^\]]*)\]`)
	pathKey       = regexp.MustCompile(`^(gpus\.devices|gpus\.p2p|links\.pairs|pci\.devices)\[([^\]]*)\]`)
)

// ofThis reports whether a line, where it names a GPU or a PCI function, names
// the one that the fact is of: lines of two GPUs may say the same.
func (c claim) ofThis(line string) bool {
	if m := interfaceKey.FindStringSubmatch(c.fact); m != nil {
		head := interfaceHead.FindStringSubmatch(line)
		return head == nil || head[1]+head[2] == m[1]
	}
	if m := matrixCell.FindStringSubmatch(c.fact); m != nil {
		row := matrixRow.FindStringSubmatch(line)
		return row == nil || row[1] == m[1] || row[1] == m[2]
	}
	m := pathKey.FindStringSubmatch(c.fact)
	if m == nil || m[1] == "links.pairs" && rowOfNIC.MatchString(line) {
		return m == nil
	}
	ends := strings.Split(m[2], " -> ")
	addresses, indexes := map[string]bool{}, map[string]bool{}
	for _, end := range ends {
		if index, ok := strings.CutPrefix(end, "GPU"); ok {
			indexes[index] = true
		} else {
			addresses[end] = true
			indexes[c.indexes[end]] = true
		}
	}
	if named := pciAddress.FindAllString(otherEnd.ReplaceAllString(line, ""), -1); len(named) > 0 && len(addresses) == len(ends) {
		found := false
		for _, a := range named {
			found = found || addresses[facts.Address(a)]
		}
		if !found {
			return false
		}
	}
	if row := rowOfGPU.FindStringSubmatch(line); row != nil && m[1] == "links.pairs" && !strings.Contains(m[2], ":") && strings.Contains(m[2], "GPU") && !slices.Contains(ends, row[1]) {
		return false
	}
	if indexes[""] || m[1] == "pci.devices" { // Not known.
		return true
	}
	if pair := ordinalPair.FindStringSubmatch(line); pair != nil {
		var ordinals []string
		for _, n := range pair[1:] {
			if n != "" {
				ordinals = append(ordinals, n)
			}
		}
		first := strings.TrimPrefix(ends[0], "GPU")
		if i := c.indexes[ends[0]]; i != "" {
			first = i
		}
		return len(ends) < 2 || indexes[ordinals[0]] && indexes[ordinals[1]] && ordinals[0] != ordinals[1] && (m[1] != "gpus.p2p" || ordinals[0] == first)
	}
	if at := pciAddress.FindStringIndex(line); at != nil && at[0] == 0 {
		return true // The number in front is that of the bus.
	}
	if lead := leadingGPU.FindStringSubmatch(line); lead != nil && !indexes[lead[1]] {
		return false
	}
	return true
}

// queryName is the name before the colon in nvidia-smi -q.
var (
	queryName  = regexp.MustCompile(`^\s+([A-Z][A-Za-z ]*?)\s+: `)
	queryNames = map[string]string{
		"pcie.generation": "Current", "pcie.max_generation": "Max", "pcie.device_max_generation": "Device Max", "pcie.width": "Current",
		"pcie.max_width": "Max", "mig": "Current", "mig_pending": "Pending", "memory_bytes": "Total",
		"memory_used_bytes": "Used", "bar1_bytes": "Total",
	}
)

// underName reports whether a line of nvidia-smi -q bears the name of the fact:
// lines beside it may say the same of another.
func (c claim) underName(line string) bool {
	m := queryName.FindStringSubmatch(line)
	_, part, ok := strings.Cut(c.fact, "].")
	if m == nil || !ok || queryNames[part] == "" {
		return true
	}
	return m[1] == queryNames[part]
}

// quotes reports whether a line holds a text, which may be cut at its end.
func quotes(line, said string) bool {
	said, line = strings.ReplaceAll(said, `\t`, "\t"), strings.ReplaceAll(line, `\t`, "\t")
	said = strings.TrimSuffix(strings.TrimSpace(said), "...")
	return said != "" && strings.Contains(line, said)
}

// factLine says by what the line of a fact is known.
type factLine struct {
	fact *regexp.Regexp
	says func(c claim, fact []string, line string) bool
}

// labelled facts stand in a line that matches a form, which holds what the value
// is; {value}, {1} and so on stand for the value and the parts of the path.
func labelled(fact, form string) factLine {
	return factLine{regexp.MustCompile(fact), func(c claim, parts []string, line string) bool {
		filled := strings.ReplaceAll(form, "{value}", regexp.QuoteMeta(fmt.Sprint(c.value)))
		for i, part := range parts[1:] {
			filled = strings.ReplaceAll(filled, "{"+strconv.Itoa(i+1)+"}", regexp.QuoteMeta(part))
		}
		return regexp.MustCompile(filled).MatchString(line)
	}}
}

// counted facts stand in a line that matches a form and shows the value.
func counted(fact, form string) factLine {
	d := labelled(fact, form)
	return factLine{d.fact, func(c claim, parts []string, line string) bool { return d.says(c, parts, line) && shows(line, c.value) }}
}

// switched facts stand in a line that matches one form where they are true, and
// another where they are false.
func switched(fact, on, off string) factLine {
	isOn, isOff := regexp.MustCompile(on), regexp.MustCompile(off)
	return factLine{regexp.MustCompile(fact), func(c claim, _ []string, line string) bool {
		if c.value == true {
			return isOn.MatchString(line)
		}
		return isOff.MatchString(line)
	}}
}

// factLines are the facts whose lines are not known by the value alone.
var factLines = []factLine{
	{regexp.MustCompile(`^env\.variables\[(.*)\]$`), func(c claim, fact []string, line string) bool {
		// In YAML the value of a pod's variable stands in the line below.
		value := fmt.Sprint(c.value)
		return hasWord(line, fact[1]) && (strings.Contains(line, value) || regexp.MustCompile(`name["']?: *["']?`+fact[1]).MatchString(line))
	}},
	{regexp.MustCompile(`^launches\[.*\]\.variables[.\[]([^\]]*)\]?$`), func(_ claim, fact []string, line string) bool { return hasWord(line, fact[1]) }},
	{regexp.MustCompile(`\.acs\.(?:control|capability)$|^pci\.unnamed_acs$`), saysACS},
	// A launch for which nothing was asked is shown by the line in which it begins.
	{regexp.MustCompile(`^launches\[(.*)\]\.(?:shm_bytes|ipc|devices)$`), func(c claim, fact []string, line string) bool {
		if c.value == "the default" || c.value == "private" || c.value == "none" {
			return beginsLaunch.MatchString(line) || hasWord(line, fact[1]) || strings.Contains(line, "- name:") || shows(line, c.value)
		}
		return shows(line, c.value)
	}},
	labelled(`^launches\[.*\]\.gpus$`, `(?i)gpu|gres|count|device_ids|accelerators`),
	labelled(`^launches\[.*\]\.cpus$`, `(?i)cpu`),
	labelled(`^launches\[.*\]\.memlock_bytes$`, `(?i)memlock|ulimit -\w*l`),
	{regexp.MustCompile(`^launches\[(.*)\]\.processes$`), func(_ claim, fact []string, line string) bool {
		return ranksOption.MatchString(line) || beginsLaunch.MatchString(line) || hasWord(line, fact[1]) || strings.Contains(line, "- name:")
	}},
	labelled(`^launches\[.*\]\.privileged$`, `(?i)privileged`),
	{regexp.MustCompile(`^software\[(.*)\]$`), saysVersion},
	labelled(`^gpus\.nvml$`, `NVIDIA-SMI .*Version|NVSMI LOG|^\s*GPU 0: |nvidia_smi_log|^(?:index|name|[a-z_.]+), |^\S.*, |^[\|+]|Attached GPUs`),
	labelled(`^nics\.rdma\[(.*):(\d+)\]$`, `(?i)port|{1}|state|link|lid|^\s*physical|\bmtu\b|phys`),
	labelled(`^nics\.interfaces\[([^\]]*)\]\.carrier$`, `<[^>]*>|MII Status|Link detected|RUNNING|UP |linkdown`),
	labelled(`^nics\.interfaces\[([^\]]*)\]\.state$`, `<[^>]*>|\b(?:UP|DOWN|UNKNOWN)\b|\bstate\b|Link encap`),
	// The name of a bond may be that of its file.
	labelled(`^nics\.interfaces\[([^\]]*)\]\.master$`, `(?:^|\W){1}(?:\W|$)`),
	labelled(`^nics\.bonds\[.*\]\.(?:hash_policy|members)$`, `Ethernet Channel Bonding Driver|{value}`),
	labelled(`^nics\.interfaces\[([^\]]*)\]$`, `(?:^|\W){1}(?:\W|$)`),
	{regexp.MustCompile(`^nics\.interfaces\[([^\]]*)\]\.addresses$`), func(c claim, fact []string, line string) bool {
		// Several addresses stand in several lines; what shows the interface is the
		// line in which it begins. A prefix length may be written as a mask.
		list, _ := c.value.([]any)
		if len(list) != 1 {
			return hasWord(line, fact[1])
		}
		address, _, _ := strings.Cut(fmt.Sprint(list[0]), "/")
		return strings.Contains(line, address)
	}},
	labelled(`^nics\.(?:modules|providers)$`, `(?i)^Module|lsmod|provider: |^[a-z]\w+:$|^\w+ +\d{3,}.*|fi_getinfo|^-61`),
	labelled(`^nics\.qos\[.*\]\.pfc$`, `enabled\s+(?:\d\s*)+`),
	switched(`\.off_bus$`, `\(rev ff\)`, `a^`),
	switched(`\.integrated$`, `APU|gfx1|gfx90`, `Memory Properties|\[Radeon|gfx`),
	switched(`\.persistence$`, `\bOn\b|(?i)enabled`, `\bOff\b|(?i)disabled`),
	switched(`\.mig$`, `Enabled|MIG`, `Disabled|N/A`),
	{regexp.MustCompile(`^gpus\.devices\[.*\]\.name$`), func(c claim, _ []string, line string) bool {
		return shows(line, c.value) || regexp.MustCompile(`\b0x[0-9a-f]{4}\b`).MatchString(line) // Of an Instinct GPU the id may stand there.
	}},
	labelled(`\.mig_pending$`, `Enabled|Disabled`),
	labelled(`\.ecc\.enabled$`, `(?:Current|current_ecc|ecc).*Enabled|(?i:corr|double|single).*[1-9]|\| +\d+ +\|$|\d .*W \||\d, `),
	counted(`^links\.pairs\[.*\]\.nvlinks$`, `NV\d+|nvlink|GPU\d+`),
	labelled(`^links\.pairs\[.*\]\.nvswitch$`, `NV\d+`),
	labelled(`^links\.pairs\[.*\]\.p2p\.`, `\b(?:OK|CNS|GNS|TNS|DR|NS|U)\b`),
	labelled(`^links\.pairs\[.*\]\.path$`, `{value}|SOC|PSB`),
	switched(`^links\.pairs\[.*\]\.(?:accessible)$`, `(?i)enabled|true|\b1\b`, `(?i)disabled|false|\b0\b`),
	switched(`^links\.pairs\[.*\]\.coherent$`, `\bC\b`, `\bNC\b`),
	switched(`^links\.pairs\[.*\]\.(?:dma|bidirectional)$`, `\bT\b`, `\bF\b`),
	labelled(`^gpus\.p2p\[.*\]`, `(?i)\bCAN(?:NOT)?\b|(?:^|\s)[01](?:\s|$)|Yes|No|Peer access|->|True|False`),
	switched(`\.fabric_manager\.running$`, `\bactive\b`, `inactive|failed|unknown`),
	labelled(`\.retired_pages$`, `(?i)bad pages|page_address|retired`),
	labelled(`\.nvlinks\[(\d+)\]\.active$`, `Link {1}[:,].*(?:GB/s|inactive|Replay)`),
	counted(`\.nvlinks\[(\d+)\]\.replay_errors$`, `Link {1}[:,].*Replay Errors: `),
	counted(`\.nvlinks\[(\d+)\]\.recovery_errors$`, `Link {1}[:,].*Recovery Errors: `),
	counted(`\.nvlinks\[(\d+)\]\.crc_errors$`, `Link {1}[:,].*CRC Errors: `),
	labelled(`^gpus\.driver\.parameters\[(.*)\]$`, `^{1}: "?{value}"?$`),
	labelled(`\.recovery_action$`, `(?i)recovery.?action|, `),
	labelled(`\.virtualization_mode$`, `(?i)virtualization.?mode.*(?:none|pass|vgpu|vsga)`),
	switched(`\.sram_threshold_exceeded$`, `(?i)threshold.*(?:yes|1)`, `(?i)threshold.*no`),
	switched(`\.channel_repair_pending$`, `(?i)repair.*(?:yes|1)`, `(?i)repair.*no`),
	switched(`\.unrepairable_memory$`, `(?i)unrepairable.*(?:yes|1)`, `(?i)unrepairable.*no`),
	switched(`\.retired_pages_pending$`, `(?i)pending.*(?:yes|1)`, `(?i)pending.*no`),
	{regexp.MustCompile(`^container\..*_(?:soft|hard)(?:_bytes)?$`), func(c claim, _ []string, line string) bool {
		return c.value == float64(-1) && strings.Contains(line, "unlimited") || shows(line, c.value)
	}},
	{regexp.MustCompile(`\.compute_capability$`), func(c claim, _ []string, line string) bool {
		return shows(line, c.value) || strings.Contains(line, `sm="`+strings.ReplaceAll(fmt.Sprint(c.value), ".", "")+`"`)
	}},
	{regexp.MustCompile(`\.nvlinks\[(\d+)\]\.speed_mbps$`), func(c claim, fact []string, line string) bool {
		mbps, _ := c.value.(float64)
		return strings.Contains(line, "Link "+fact[1]+": ") && strings.Contains(line, "GB/s") && showsNumber(line, mbps/1000)
	}},
	{regexp.MustCompile(`\.pcie\.(?:max_|device_max_)?generation$`), func(c claim, _ []string, line string) bool {
		for rate, generation := range map[float64]float64{2.5: 1, 5: 2, 8: 3, 16: 4, 32: 5, 64: 6} {
			if c.value == generation && strings.Contains(line, "T/s") && (shows(line, rate) || shows(line, rate*1000)) {
				return true
			}
		}
		return shows(line, c.value)
	}},
	labelled(`\.no_numa_node$`, `(?i)numa(?:_node| node).*-1`),
	labelled(`\.numa_node$`, `(?i)numa(?:_node| node).*{value}|<pci|pci_busid|^GPU\d+\s.*\s{value}(?:\s|$)`),
	labelled(`^gpus\.amd\.kernel_config\[(.*)\]$`, `\b{1}(?:={value}| is not set)$`),
	labelled(`\.bars\[(\d+)\]\.unassigned$`, `Region {1}: .*unassigned`),
	labelled(`\.fabric\.unhealthy$`, `(?i)degraded|true|yes|incorrect|unhealthy|recovery`),
	labelled(`^container\.device_nodes\[(?:.*/)?([^/\]]+)\]`, `{1}`),
	labelled(`^container\.capabilities$`, `CapEff|Current:`),
	labelled(`^container\.seccomp$`, `Seccomp:`),
	labelled(`^container\.shm\.type$`, `/dev/shm`),
	labelled(`^numa\.allowed_cpus$`, `physcpubind|llowed_list|affinity list`),
	labelled(`^numa\.nodes\[(\d+)\]\.cpus$`, `(?i){value}|node {1} cpus|cpuset=|affinity="`),
	counted(`^numa\.nodes\[(\d+)\]\.distances$`, `^\s*{1}:`),
	switched(`\.relaxed_ordering$`, `RlxdOrd\+`, `RlxdOrd-`),
	switched(`\.ats\.enabled$`, `ATSCtl:.*Enable\+`, `ATSCtl:.*Enable-`),
	labelled(`^host\.virtualization\.`, `(?i)hypervisor|fpu`),
	labelled(`\.xgmi_errors$`, `(?i)xgmi|error|UNCORRECTABLE`),
	{regexp.MustCompile(`^pci\.devices\[.*\]\.device$`), func(c claim, _ []string, line string) bool {
		return strings.Contains(line, strings.TrimPrefix(fmt.Sprint(c.value), "0x"))
	}},
	labelled(`\.port_type$`, `(?i)root port|GPP Bridge|{value}|Express`),
	labelled(`\.compute_mode$`, `(?i){value}|E\. (?:Process|Thread)|exclusive|default|prohibited`),
	labelled(`^iommu\.units$`, `dmar|ivhd|smmu|virtio|^total 0`),
	labelled(`^iommu\.vendor$`, `AMD-Vi|DMAR|ivhd|dmar`),
	labelled(`^logs\.communicators`, `nranks {value}\b|comm `),
	{regexp.MustCompile(`^benchmarks\[perftest\]\.points`), func(c claim, _ []string, line string) bool {
		gbps, _ := c.value.(float64)
		return shows(line, gbps) || shows(line, gbps*8) // In Gb/s with --report_gbits.
	}},
	{regexp.MustCompile(`^benchmarks\[bandwidthTest\]\.points`), func(c claim, _ []string, line string) bool {
		gbps, _ := c.value.(float64)
		return shows(line, gbps) || showsNumber(line, gbps*1e9/(1<<20)) // In MiB/s.
	}},
	{regexp.MustCompile(`^logs\.transports\[`), func(c claim, _ []string, line string) bool {
		ends, _ := c.value.([]any)
		if len(ends) != 2 { // A rule's own words of it.
			return strings.Contains(line, "via") || shows(line, c.value)
		}
		return regexp.MustCompile(fmt.Sprintf(`\b%v(?:\[\w+\])? ?-> ?%v\b`, ends[0], ends[1])).MatchString(line)
	}},
	labelled(`^benchmarks\[own program\]`, `GPU|cuda|hip|device`),
	{regexp.MustCompile(`^benchmarks(?:\[.*\]\.wrong)?$`), func(c claim, _ []string, line string) bool {
		return shows(line, c.value) || wrongValues.MatchString(line)
	}},
	counted(`\.ecc\.volatile_corrected$`, `(?i)corr|single`),
	counted(`\.ecc\.volatile_uncorrected$`, `(?i)uncorr|double|ecc|\|`),
	counted(`\.ecc\.aggregate_`, `(?i)corr|single|double`),
	counted(`\.remapped_rows\.corrected$`, `(?i)corr`),
	counted(`\.remapped_rows\.uncorrected$`, `(?i)unc`),
	switched(`\.remapped_rows\.pending$`, `(?i)(?:pending.*|, )(?:yes|1)\b`, `(?i)pending.*no`),
	switched(`\.remapped_rows\.failed$`, `(?i)(?:fail.*|, )(?:yes|1)\b`, `(?i)fail.*no`),
}

var (
	beginsLaunch = regexp.MustCompile(`\b(?:docker|podman|nerdctl|srun|sbatch|apptainer|singularity|enroot)\b|image: |"Name"|^\[|^\{|#SBATCH`)
	// wrongValues is a line that shows a wrong value, where no line counts them.
	wrongValues = regexp.MustCompile(`Verification error|tensor\(|device='cuda|(?i)mismatch|corrupt|incorrect|all[ -]?zero|wrong|differ|not equal|err`)
)

// saysVersion: the version stands there, or what it is a form of: CUDA's number
// (13000 is 13.0), and the release in the name of a library of ROCm (70201 is 7.2.1).
func saysVersion(c claim, _ []string, line string) bool {
	version := fmt.Sprint(c.value)
	if c.fact == "software[cuda-driver]" && strings.Contains(line, "NCCL version") {
		return false // It names the runtime.
	}
	if strings.Contains(line, version) {
		return true
	}
	if strings.Contains(line, "("+strings.ReplaceAll(version, ".", ", ")+")") { // torch.cuda.nccl.version()
		return true
	}
	var major, minor, patch int
	n, _ := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch)
	return n == 2 && strings.Contains(line, strconv.Itoa(major*1000+minor*10)) || n == 3 && strings.Contains(line, strconv.Itoa(major*10000+minor*100+patch))
}

// hasWord reports whether a name stands in a line, and no longer name around it.
func hasWord(line, name string) bool {
	return regexp.MustCompile(`(?:^|\W)` + regexp.QuoteMeta(name) + `(?:$|\W)`).MatchString(line)
}

var acsBits = regexp.MustCompile(`\b(SrcValid|TransBlk|ReqRedir|CmpltRedir|UpstreamFwd|EgressCtrl|DirectTrans)([+-])`)

// saysACS: lspci's line of the capability ("ACSCap:") or of the controls
// ("ACSCtl:") shows exactly these bits with a plus; setpci prints their word.
func saysACS(c claim, _ []string, line string) bool {
	bits, _ := c.value.([]any)
	want := map[string]bool{}
	for _, bit := range bits {
		want[fmt.Sprint(bit)] = true
	}
	label := "ACSCtl:"
	if strings.HasSuffix(c.fact, "capability") {
		label = "ACSCap:"
	}
	if strings.Contains(line, label) {
		on := 0
		for _, m := range acsBits.FindAllStringSubmatch(line, -1) {
			if m[2] == "+" {
				on++
				if !want[m[1]] {
					return false
				}
			}
		}
		return on == len(want)
	}
	m := regexp.MustCompile(`(?:^|= |\) @[0-9a-f]+ )([0-9a-f]{4})$`).FindStringSubmatch(strings.TrimSpace(line))
	if m == nil {
		return false
	}
	word, err := strconv.ParseUint(m[1], 16, 16)
	if err != nil {
		return false
	}
	for i, bit := range []string{"SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans"} {
		if want[bit] != (word&(1<<i) != 0) {
			return false
		}
	}
	return true
}

// shows reports whether a line holds a value: a word as it is but for case and
// what joins its parts, a number as it is printed or in larger units, and of a
// list or a structure each part.
func shows(line string, value any) bool {
	switch v := value.(type) {
	case string:
		if len(v) < 4 {
			return v != "" && hasWord(plainWords(line), plainWords(v))
		}
		return strings.Contains(plainWords(line), plainWords(v))
	case float64:
		return showsNumber(line, v)
	case []any:
		for _, part := range v {
			if !shows(line, part) {
				return false
			}
		}
		return len(v) > 0
	case map[string]any:
		for _, part := range v {
			if !shows(line, part) {
				return false
			}
		}
		return len(v) > 0
	}
	return false
}

func plainWords(text string) string {
	return strings.NewReplacer("-", " ", "_", " ").Replace(strings.ToLower(text))
}

var numbers = regexp.MustCompile(`(0x[0-9a-fA-F]+)|(\d+(?:\.\d+)?) ?([KMGT])?`)

// showsNumber reports whether one of the numbers of a line is n: as it is, in
// KiB, MiB or GiB, in hexadecimal, or rounded before its unit ("3.1M").
func showsNumber(line string, n float64) bool {
	for _, m := range numbers.FindAllStringSubmatch(line, -1) {
		if m[1] != "" {
			if hex, err := strconv.ParseUint(m[1][2:], 16, 64); err == nil && float64(hex) == n {
				return true
			}
			continue
		}
		shown, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			continue
		}
		for _, unit := range []float64{1, 1 << 10, 1 << 20, 1 << 30} {
			if math.Abs(shown*unit-n) < 1e-9*math.Abs(n)+1e-12 {
				return true
			}
		}
		if power := strings.Index("KMGT", m[3]); m[3] != "" {
			_, decimals, _ := strings.Cut(m[2], ".")
			if math.Abs(shown-n/math.Pow(1024, float64(power+1))) <= math.Pow(10, -float64(len(decimals))) {
				return true
			}
		}
	}
	return false
}

// ranksOption is an option that sets how many ranks a node runs.
var ranksOption = regexp.MustCompile(`nproc|parallel|ntasks|-np\b|--tp\b|-tp\b`)
