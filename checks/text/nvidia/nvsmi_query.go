package nvidia

import (
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// nvsmiQueryKind is the long listing of nvidia-smi, whole, of one section (-d),
// or what grep left of it:
//
//	==============NVSMI LOG==============
//	Driver Version                            : 580.159.04
//	Attached GPUs                             : 2
//	GPU 00000000:00:06.0
//	    Product Name                          : NVIDIA H200
//	    Fabric
//	        State                             : Completed
var nvsmiQueryKind = &parse.Kind{
	Name:    "nvidia-smi-q",
	Title:   "all attributes of NVIDIA GPUs, from nvidia-smi -q",
	Command: "nvidia-smi -q",
	Gives:   []string{"gpus"},
	Anchors: []string{
		"NVSMI LOG", "Attached GPUs", "GPU 0000", "GPU 0001", "Product Name   ", "  Fabric", "FB Memory Usage", "BAR1 Memory Usage",
		"  ECC Mode", "  ECC Errors", "  MIG Mode", "Remapped Rows", "GPU Link Info", "GPU Recovery Action", "  Persistence Mode",
		"GPU UUID  ", "  Compute Mode", "Retired Pages", "GPU Virtualization Mode",
	},
	Begins: nvsmiQueryBegins,
	Read:   nvsmiQueryRead,
}

var (
	// nvsmiQueryPair is "    Product Name    : NVIDIA H200"; the colon stands
	// in a column of its own.
	nvsmiQueryPair = lazy.New(`^(\s*)(\S(?:[^:]*\S)?)\s+: ?(.*)$`)
	// nvsmiQueryHead is "    Fabric".
	nvsmiQueryHead = lazy.New(`^(\s+)([A-Z][A-Za-z0-9 ().-]*?)\s*$`)
	nvsmiQueryGPU  = lazy.New(`^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$`)
)

func nvsmiQueryBegins(in *parse.Lines) bool {
	lines := in.Ahead(2)
	first := lines[0].Text
	switch {
	case strings.Contains(first, "==NVSMI LOG=="), nvsmiQueryGPU.MatchString(first):
		return true
	case nvsmiQueryHead.MatchString(first):
		return len(lines) > 1 && nvsmiQueryPair.MatchString(lines[1].Text) && nvsmiQueryDepth(lines[1].Text) > nvsmiQueryDepth(first)
	}
	m := nvsmiQueryPair.FindStringSubmatch(first)
	return m != nil && (nvsmiQueryNames[m[2]] != "" || m[2] == "Attached GPUs")
}

// nvsmiQueryDepth counts the blanks at a line's beginning.
func nvsmiQueryDepth(text string) int { return len(text) - len(strings.TrimLeft(text, " \t")) }

// nvsmiQueryNames are the attributes by their path, the headings joined by "/".
// A path may lack its first headings where grep cut them off.
var nvsmiQueryNames = map[string]string{
	"Product Name": "name", "Product Architecture": "architecture", "GPU UUID": "uuid", "Persistence Mode": "persistence",
	"MIG Mode/Current": "mig.current", "MIG Mode/Pending": "mig.pending",
	"GPU Virtualization Mode/Virtualization Mode": "virtualization", "GPU Virtualization Mode/Virtualization mode": "virtualization",
	"GPU Recovery Action": "recovery", "Compute Mode": "compute_mode", "Performance State": "performance",
	"Utilization/Gpu": "utilization", "Utilization/GPU": "utilization",
	"FB Memory Usage/Total": "memory.total", "FB Memory Usage/Used": "memory.used", "BAR1 Memory Usage/Total": "bar1.total",

	"PCI/GPU Link Info/PCIe Generation/Max": "pcie.generation.max", "PCI/GPU Link Info/PCIe Generation/Current": "pcie.generation.current",
	"PCI/GPU Link Info/PCIe Generation/Device Max": "pcie.generation.device_max",
	"PCI/GPU Link Info/Link Width/Max":             "pcie.width.max", "PCI/GPU Link Info/Link Width/Current": "pcie.width.current",
	"PCI/Replays Since Reset": "pcie.replays", "PCI/Replays since reset": "pcie.replays",

	"Fabric/State": "fabric.state", "Fabric/Status": "fabric.status", "Fabric/CliqueId": "fabric.clique", "Fabric/ClusterUUID": "fabric.cluster",
	"Fabric/Health/Bandwidth": "fabric.health.bandwidth", "Fabric/Health/Route Recovery in progress": "fabric.health.route-recovery",
	"Fabric/Health/Route Unhealthy": "fabric.health.route-unhealthy", "Fabric/Health/Access Timeout Recovery": "fabric.health.access-timeout-recovery",
	"Fabric/Health/Incorrect Configuration": "fabric.health.incorrect-configuration",

	"ECC Mode/Current": "ecc.mode", "Ecc Mode/Current": "ecc.mode",
	"ECC Errors/Volatile/SRAM Correctable": "ecc.volatile.corrected", "ECC Errors/Volatile/DRAM Correctable": "ecc.volatile.corrected",
	"ECC Errors/Volatile/SRAM Uncorrectable": "ecc.volatile.uncorrected", "ECC Errors/Volatile/DRAM Uncorrectable": "ecc.volatile.uncorrected",
	"ECC Errors/Volatile/SRAM Uncorrectable Parity": "ecc.volatile.uncorrected", "ECC Errors/Volatile/SRAM Uncorrectable SEC-DED": "ecc.volatile.uncorrected",
	"ECC Errors/Volatile/Single Bit/Total": "ecc.volatile.corrected", "ECC Errors/Volatile/Double Bit/Total": "ecc.volatile.uncorrected",
	"ECC Errors/Aggregate/SRAM Correctable": "ecc.aggregate.corrected", "ECC Errors/Aggregate/DRAM Correctable": "ecc.aggregate.corrected",
	"ECC Errors/Aggregate/SRAM Uncorrectable": "ecc.aggregate.uncorrected", "ECC Errors/Aggregate/DRAM Uncorrectable": "ecc.aggregate.uncorrected",
	"ECC Errors/Aggregate/SRAM Uncorrectable Parity": "ecc.aggregate.uncorrected", "ECC Errors/Aggregate/SRAM Uncorrectable SEC-DED": "ecc.aggregate.uncorrected",
	"ECC Errors/Aggregate/Single Bit/Total": "ecc.aggregate.corrected", "ECC Errors/Aggregate/Double Bit/Total": "ecc.aggregate.uncorrected",
	"ECC Errors/Aggregate/SRAM Threshold Exceeded": "ecc.sram_threshold", "ECC Errors/SRAM Threshold Exceeded": "ecc.sram_threshold",
	"ECC Errors/Channel Repair Pending": "ecc.channel_repair", "ECC Errors/Unrepairable Memory": "ecc.unrepairable",
	"Retired Pages/Pending Page Blacklist": "ecc.retirement_pending", "Retired Pages/Pending": "ecc.retirement_pending",

	"Remapped Rows/Correctable Error": "remapped.corrected", "Remapped Rows/Uncorrectable Error": "remapped.uncorrected",
	"Remapped Rows/Pending": "remapped.pending", "Remapped Rows/Remapping Failure Occurred": "remapped.failed",
}

// nvsmiQueryReader is the reading of one listing.
type nvsmiQueryReader struct {
	sink *parse.Sink
	// gpu is what the listing says about the GPU under way, known the GPU itself:
	// what one listing tells replaces what another told, it does not add to it.
	gpu, known *facts.GPU
	headings   []string
	depths     []int
	// attached is what "Attached GPUs" says, found the GPUs that were listed.
	attached int
	found    []*facts.GPU
	first    parse.Line
	// nameless is true while lines of a GPU come whose heading was cut off;
	// opening is the first of its lines, which marks the next GPU.
	nameless bool
	opening  string
	index    int
	process  *facts.GPUProcess
}

func nvsmiQueryRead(s *parse.Sink, in *parse.Lines) {
	r := &nvsmiQueryReader{sink: s, attached: -1, index: nvsmiCommandIndex(in.Prompt().Command)}
	r.first, _ = in.Peek()
	if r.index >= 0 {
		r.index-- // The first GPU has the index that was asked for.
	}
	blank := 0
	for {
		l, ok := in.Peek()
		if !ok || blank > 0 && !nvsmiQueryGoesOn(l.Text) {
			break
		}
		text := strings.ReplaceAll(l.Text, "\t", "    ")
		switch {
		case strings.TrimSpace(text) == "":
			blank++
		case strings.Contains(text, "==NVSMI LOG=="), text == "--":
		case nvsmiQueryGPU.MatchString(text):
			r.begin(nvsmiQueryGPU.FindStringSubmatch(text)[1], l)
		default:
			if !r.line(text, l) {
				r.finish()
				return
			}
		}
		if strings.TrimSpace(text) != "" {
			blank = 0
		}
		in.Next()
	}
	r.finish()
}

// nvsmiQueryGoesOn reports whether the listing goes on behind an empty line.
func nvsmiQueryGoesOn(text string) bool {
	return strings.TrimSpace(text) == "" || nvsmiQueryGPU.MatchString(text) || nvsmiQueryPair.MatchString(text) ||
		text == "--" || strings.HasPrefix(text, "    ") && nvsmiQueryHead.MatchString(text)
}

// nvsmiCommandIndex is the one GPU that a command asks for (-i 3), or -1.
func nvsmiCommandIndex(command string) int {
	if m := nvsmiIndexOption.FindStringSubmatch(command); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return n
		}
	}
	return -1
}

var nvsmiIndexOption = lazy.New(`\s(?:-i|--id)[= ]?(\d{1,3})(?:\s|$)`)

func (r *nvsmiQueryReader) begin(busID string, l parse.Line) {
	r.headings, r.depths, r.nameless = nil, nil, false
	r.commit()
	if len(r.found) >= parse.MaxEntries {
		return
	}
	r.gpu, r.known = &facts.GPU{}, nvsmiGPU(r.sink, busID, -1, l)
	r.found = append(r.found, r.known)
}

// commit enters what was read of a GPU.
func (r *nvsmiQueryReader) commit() {
	nvsmiReplace(r.known, r.gpu)
	r.gpu, r.known, r.process = nil, nil, nil
}

// line reads a line below a GPU's heading, or at the top. It reports whether
// it belongs to the listing.
func (r *nvsmiQueryReader) line(text string, l parse.Line) bool {
	depth := nvsmiQueryDepth(text)
	for len(r.depths) > 0 && r.depths[len(r.depths)-1] >= depth {
		r.depths, r.headings = r.depths[:len(r.depths)-1], r.headings[:len(r.headings)-1]
	}
	m := nvsmiQueryPair.FindStringSubmatch(text)
	if m == nil {
		h := nvsmiQueryHead.FindStringSubmatch(text)
		if h == nil || len(r.headings) > 8 {
			return false
		}
		if len(r.headings) == 0 {
			r.nextNameless(h[2], l)
		}
		r.headings, r.depths = append(r.headings, h[2]), append(r.depths, depth)
		return true
	}
	if depth == 0 {
		switch m[2] {
		case "Driver Version", "KMD Version":
			nvsmiDriver(r.sink, m[3], "", l)
		case "CUDA Version", "CUDA UMD Version":
			nvsmiDriver(r.sink, "", m[3], l)
		case "Attached GPUs":
			if n, err := strconv.Atoi(strings.TrimSpace(m[3])); err == nil {
				r.attached = n
			}
		}
		return true
	}
	path := strings.Join(append(append([]string{}, r.headings...), m[2]), "/")
	if len(r.headings) == 0 && nvsmiQueryNames[path] != "" {
		r.nextNameless(m[2], l)
	}
	if r.gpu == nil {
		return true
	}
	r.attribute(path, m[3], l)
	// "Processes" has its lines below "Process ID", at the same depth or deeper.
	switch m[2] {
	case "Process ID":
		if pid, err := strconv.Atoi(strings.TrimSpace(m[3])); err == nil && len(r.gpu.Processes) < parse.MaxEntries {
			r.gpu.Processes = append(r.gpu.Processes, facts.GPUProcess{PID: pid})
			r.process = &r.gpu.Processes[len(r.gpu.Processes)-1]
		}
	case "Name":
		if r.process != nil {
			r.process.Name = nvsmiProgram(m[3])
		}
	case "Used GPU Memory":
		if n, ok := nvsmiMemory(m[3]); ok && r.process != nil {
			r.process.UsedBytes = &n
		}
	}
	return true
}

// nvsmiProgram is a program's name without its path.
func nvsmiProgram(text string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return escape.Printable(name[strings.LastIndexByte(name, '/')+1:], 64)
}

// nextNameless begins a GPU whose heading is not there: grep took it away, and
// the lines of one GPU follow those of another. Each time the first heading
// comes again, it is of the next GPU.
func (r *nvsmiQueryReader) nextNameless(heading string, l parse.Line) {
	if r.gpu != nil && !r.nameless {
		return
	}
	if r.nameless && heading != r.opening {
		return
	}
	if r.opening == "" {
		r.opening = heading
	}
	r.commit()
	if r.index >= 1023 {
		return
	}
	r.index = max(r.index+1, 0)
	r.gpu, r.known, r.nameless = &facts.GPU{}, nvsmiGPU(r.sink, "", r.index, l), true
}

func (r *nvsmiQueryReader) attribute(path, value string, l parse.Line) {
	name := nvsmiQueryNames[path]
	if name == "" && r.nameless {
		name = nvsmiQueryTails[path]
	}
	if name != "" {
		nvsmiTold(r.sink, r.known, r.gpu, name, value, l)
	}
}

// nvsmiQueryTails are paths that remain where the upper headings were cut off.
var nvsmiQueryTails = map[string]string{
	"GPU Link Info/PCIe Generation/Max": "pcie.generation.max", "GPU Link Info/PCIe Generation/Current": "pcie.generation.current",
	"GPU Link Info/PCIe Generation/Device Max": "pcie.generation.device_max",
	"GPU Link Info/Link Width/Max":             "pcie.width.max", "GPU Link Info/Link Width/Current": "pcie.width.current",
	"Link Width/Max": "pcie.width.max", "Link Width/Current": "pcie.width.current",
	"PCIe Generation/Max": "pcie.generation.max", "PCIe Generation/Current": "pcie.generation.current", "PCIe Generation/Device Max": "pcie.generation.device_max",
}

// finish gives the GPUs their indexes where all of them are listed: nvidia-smi
// lists them in NVML's order.
func (r *nvsmiQueryReader) finish() {
	r.commit()
	if r.attached <= 0 || len(r.found) != r.attached {
		return
	}
	for i, g := range r.found {
		if g.Index == nil {
			g.Index = &i
		}
	}
	nvsmiAnswered(r.sink, r.first)
}
