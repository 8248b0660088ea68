package host

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/pci"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// lspciKind is what lspci prints of each function, in any of its forms, whole
// or cut by grep (pciutils 3.x, lspci.c and ls-caps.c).
func lspciKind(t *tree) *parse.Kind {
	return &parse.Kind{
		Name: "lspci", Title: "PCI devices, from lspci", Command: "sudo lspci -vvv", Gives: []string{"pci"},
		Anchors: []string{
			"controller: ", "controller [0", "bridge: ", "bridge [0", "ridge: ", "accelerators: ", "accelerators [", " Class [", " Class 0",
			"ACSCtl:", "ACSCap:", "LnkSta:", "LnkCap:",
			" 0300: ", " 0302: ", " 0604: ", " 0600: ", " 1200: ",
		},
		Commands: []string{"lspci"},
		Begins:   lspciBegins,
		Read:     func(s *parse.Sink, in *parse.Lines) { lspciRead(s, t, in) },
	}
}

// lspciHead is the line with which a function begins: "0000:3b:00.0 3D controller [0302]: NVIDIA Corporation GA100
// [A100 PCIe 40GB] [10de:20f1] (rev a1)". With -n the class is its number alone, and where the database is missing
// "Class [0302]". grep -n may have put a number before it.
var lspciHead = lazy.New(`^(?:\d{1,3}:|\d{1,7}-)?((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?:([0-9a-f]{4})|([A-Z0-9][A-Za-z0-9/ .,-]*?)(?: \[([0-9a-f]{4})\])?): (.*)$`)

//go:embed lspci.yaml
var lspciYAML []byte

// lspciNames are the names of classes and vendors in the PCI ID database.
var lspciNames = lazy.Table[struct {
	Classes map[string]string
	Vendors []struct{ Words, ID string }
}](lspciYAML)

// lspciIDs are the ids behind a name, "[10de:20f1]", or in its place, "Device [8086:0d57]", "10de:20f1".
var lspciIDs = lazy.New(`(?:^|[\[ ])([0-9a-f]{4}):([0-9a-f]{4})(?:\]|$| )`)

// lspciHeadOf reads the first line of a function.
func lspciHeadOf(line string) (address, class, rest string, ok bool) {
	m := lspciHead.FindStringSubmatch(line)
	if m == nil {
		return "", "", "", false
	}
	class, known := lspciNames().Classes[m[3]]
	if number := m[2] + m[4]; number != "" && (!known || m[4] == "" || !strings.HasPrefix(class, "0x"+number)) {
		class, known = "0x"+number+"00", true
	}
	if !known {
		return "", "", "", false
	}
	return facts.Address(m[1]), class, m[5], true
}

// lspciLoose are details that grep leaves over without their function.
func lspciLoose(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "ACSCtl:") || strings.HasPrefix(line, "ACSCap:")
}

func lspciBegins(in *parse.Lines) bool {
	_, _, _, head := lspciHeadOf(in.First().Text)
	return head || lspciLoose(in.First().Text)
}

// lspciDevice is a function under way.
type lspciDevice struct {
	*facts.PCIDevice
	head parse.Line
	// secondary and subordinate are the buses below a bridge, -1 where not told.
	secondary, subordinate int
	// nextBAR is the place after the last of its BARs.
	nextBAR int
	// whole is true when the lines Control and Status are there, so that
	// nobody has picked single lines; far when an extended capability is.
	control, status, denied, far bool
	details                      int
	capability                   string
}

func lspciRead(s *parse.Sink, t *tree, in *parse.Lines) {
	var devices []*lspciDevice
	var current *lspciDevice
	prompt := in.Prompt().Command
	in.While(func(l parse.Line) bool {
		if address, class, rest, head := lspciHeadOf(l.Text); head {
			current = nil
			if len(devices) < parse.MaxDevices {
				current = lspciBegin(s, l, address, class, rest)
				devices = append(devices, current)
			}
			return true
		}
		text := strings.TrimSpace(l.Text)
		switch {
		case lspciLoose(l.Text) && (current == nil || !current.control && current.ACS != nil): // It is of a function whose head grep left out.
			if controls, found := strings.CutPrefix(text, "ACSCtl:"); found {
				lspciPortless(s, l, lspciSet(controls))
			}
		case current != nil && text != "" && (strings.HasPrefix(l.Text, "\t") || strings.HasPrefix(l.Text, " ") || lspciLoose(text)):
			current.detail(s, l, text)
		case text == "" && lspciGoesOn(in), l.Text == "--":
		default:
			return false
		}
		return true
	})
	lspciFinish(s, t, devices, prompt)
}

// lspciGoesOn reports whether another function, or what grep left of one, comes after blank lines.
func lspciGoesOn(in *parse.Lines) bool {
	for _, l := range in.Ahead(8) {
		if strings.TrimSpace(l.Text) == "" {
			continue
		}
		_, _, _, head := lspciHeadOf(l.Text)
		return head || lspciLoose(l.Text)
	}
	return false
}

// lspciPortless notes the ACS controls of a port that the text does not name; nil says nothing of them.
func lspciPortless(s *parse.Sink, l parse.Line, on []string) {
	if on == nil {
		return
	}
	f := s.PCI()
	u := facts.Find(f.UnnamedACS, func(u *facts.UnnamedACS) bool { return u.Source == s.Source() && slices.Equal(u.Control, on) })
	if u != nil {
		u.Count++
	} else if len(f.UnnamedACS) < parse.MaxEntries {
		f.UnnamedACS = append(f.UnnamedACS, facts.UnnamedACS{Control: on, Count: 1, Source: s.Source(), Line: l.Number})
	}
}

// lspciSet lists the ACS controls that a line shows with a plus; nil if the line shows none at all.
func lspciSet(text string) []string {
	var on []string
	for word := range strings.FieldsSeq(text) {
		name, sign := word[:len(word)-1], word[len(word)-1]
		if !slices.Contains(pci.ACSNames, name) {
			continue
		}
		if on == nil {
			on = []string{}
		}
		if sign == '+' {
			on = append(on, name)
		}
	}
	return on
}

func lspciBegin(s *parse.Sink, l parse.Line, address, class, rest string) *lspciDevice {
	d := &lspciDevice{PCIDevice: s.Device(address, l), head: l, secondary: -1, subordinate: -1}
	d.Class = cmp.Or(d.Class, class)
	if d.Vendor == "" {
		d.Vendor, d.Device = lspciMaker(rest)
	}
	if d.PortType == "" && lspciRootPort.MatchString(rest) {
		d.PortType = "root-port"
	}
	// The revision is also a register: all ones mean that the device does not answer.
	if strings.HasSuffix(rest, "(rev ff)") || strings.Contains(rest, "(rev ff) ") {
		d.OffBus = true
	}
	lspciGPUName(s, d.PCIDevice, rest, l)
	return d
}

// lspciMaker reads vendor and device from a description.
func lspciMaker(rest string) (vendor, device string) {
	if all := lspciIDs.FindAllStringSubmatch(rest, -1); all != nil {
		m := all[len(all)-1]
		return "0x" + m[1], "0x" + m[2]
	}
	for _, v := range lspciNames().Vendors {
		if strings.HasPrefix(rest, v.Words) {
			if device = lspciUnnamedDevice.First(rest); device != "" {
				device = "0x" + device
			}
			return v.ID, device
		}
	}
	return "", ""
}

// lspciRootPort are names of root ports: Intel's and others' say so, and AMD calls those of its processors GPP bridges.
var lspciRootPort = lazy.New(`Root Port|GPP Bridge`)

// lspciUnnamedDevice is a device that the database does not know: "NVIDIA Corporation Device 2684 (rev a1)".
var lspciUnnamedDevice = lazy.New(`Device ([0-9a-f]{4})(?: |$)`)

// lspciModel is the trade name in a description: "GA100 [A100 PCIe 40GB]".
var lspciModel = lazy.New(`^(?:NVIDIA|nVidia) Corporation \w+ \[([^\]:]{3,64})\]`)

// lspciGPUName notes the model of an NVIDIA GPU, which the database gives in brackets.
func lspciGPUName(s *parse.Sink, d *facts.PCIDevice, rest string, l parse.Line) {
	if model := lspciModel.First(rest); model != "" && pci.IsGPU(d) {
		if g := s.GPU(d.Address, l); g.Name == "" {
			g.Name, g.Vendor, g.InPCI = model, "nvidia", true
		}
	}
}

var (
	lspciBus     = lazy.New(`^Bus: primary=([0-9a-f]{2}), secondary=([0-9a-f]{2}), subordinate=([0-9a-f]{2})`)
	lspciCap     = lazy.New(`^Capabilities: \[([0-9a-f]{2,3})(?: v\d+)?\] (.*)`)
	lspciLink    = lazy.New(`Speed ([0-9.]+GT/s|unknown)(?: \([^)]*\))?, Width x(\d+)`)
	lspciRegion  = lazy.New(`^Region (\d): (Memory|I/O ports) at (\S+) ?(?:\[[^\]]*\] )?(?:\(([^)]*)\))?.*?(?:\[size=(\d+)([KMGT]?)\])?$`)
	lspciExpress = lazy.New(`^Express (?:\(v\d\) )?([A-Za-z/ -]+?)(?: \(Slot[+-]\))?(?:,|$)`)
	lspciNUMA    = lazy.New(`^NUMA node: (\d{1,4})`)
	lspciGroup   = lazy.New(`^IOMMU group: (\d{1,6})`)
	lspciDriver  = lazy.New(`^Kernel driver in use: (\S+)`)
	lspciReBAR   = lazy.New(`^BAR (\d): current size: (\d+)([KMGT]?)B, supported: (.*)`)
	lspciSizes   = lazy.New(`(\d+)([KMGT]?)B`)
)

// detail reads one line below a function's head.
func (d *lspciDevice) detail(s *parse.Sink, l parse.Line, text string) {
	d.details++
	s.Watch("pci.devices["+d.Address+"]", d.PCIDevice, l)
	name, value, _ := strings.Cut(text, ":")
	switch name {
	case "Control":
		d.control = true
	case "Status":
		d.status = true
	case "Bus":
		if m := lspciBus.FindStringSubmatch(text); m != nil {
			secondary, _ := strconv.ParseUint(m[2], 16, 8) // The pattern lets two digits through.
			subordinate, _ := strconv.ParseUint(m[3], 16, 8)
			d.secondary, d.subordinate = int(secondary), int(subordinate)
		}
	case "Capabilities":
		d.capabilities(text)
	case "LnkCap", "LnkSta":
		d.link(s, l, name, value)
	case "ACSCtl":
		if on := lspciSet(value); on != nil {
			d.ACS = &facts.ACS{Control: on}
		}
	case "ATSCtl":
		d.ATS = &facts.ATS{Enabled: strings.Contains(value, "Enable+")}
	case "NUMA node":
		d.NUMANode = cmp.Or(parse.Optional(lspciNUMA.First(text)), d.NUMANode)
	case "IOMMU group":
		d.IOMMUGroup = cmp.Or(parse.Optional(lspciGroup.First(text)), d.IOMMUGroup)
	case "Kernel driver in use":
		d.Driver = cmp.Or(escape.Printable(lspciDriver.First(text), 64), d.Driver)
	default:
		switch {
		case strings.HasPrefix(text, "Region "):
			d.region(text)
		case strings.HasPrefix(text, "Memory at "), strings.HasPrefix(text, "I/O ports at "):
			// A BAR of lspci -v, which leaves the numbers out: BARs come in their order, and one of
			// 64 bits takes two places (PCI Local Bus Specification 3.0, section 6.2.5.1).
			d.region("Region " + strconv.Itoa(d.nextBAR) + ": " + text)
		case strings.HasPrefix(text, "BAR "):
			d.resizable(text)
		}
	}
}

func (d *lspciDevice) capabilities(text string) {
	if strings.Contains(text, "<access denied>") {
		d.denied = true
		return
	}
	m := lspciCap.FindStringSubmatch(text)
	if m == nil {
		return
	}
	d.capability, d.far = m[2], d.far || len(m[1]) == 3
	d.PortType = cmp.Or(pci.PortType(lspciExpress.First(m[2])), d.PortType)
}

func (d *lspciDevice) link(s *parse.Sink, l parse.Line, name, value string) {
	m := lspciLink.FindStringSubmatch(lspciRemark.ReplaceAllString(value, ""))
	if m == nil {
		return
	}
	d.Link = cmp.Or(d.Link, &facts.PCIeLink{Source: fmt.Sprintf("%s:%d", s.Source(), l.Number)})
	speed, width := pci.LinkSpeed(m[1]), pci.LinkWidth(m[2])
	if name == "LnkCap" {
		d.Link.MaxSpeedGTs, d.Link.MaxWidth = speed, width
		return
	}
	d.Link.SpeedGTs, d.Link.Width = speed, width
	d.Link.Source = fmt.Sprintf("%s:%d", s.Source(), l.Number)
}

// lspciRemark is what lspci adds to a speed or a width: "(ok)", "(downgraded)", "(strange)", "(overdriven)".
var lspciRemark = lazy.New(` \([a-z]+\)`)

func (d *lspciDevice) region(text string) {
	m := lspciRegion.FindStringSubmatch(text)
	if m == nil || m[1] > "5" {
		return
	}
	size, ok := lspciBytes(m[5], m[6])
	if !ok && m[3] != "<unassigned>" || len(d.BARs) > 6 {
		return
	}
	index := parse.Number(m[1])
	places := 1
	if strings.Contains(m[4], "64-bit") {
		places = 2
	}
	d.nextBAR = max(d.nextBAR, index+places)
	if slices.ContainsFunc(d.BARs, func(b facts.BAR) bool { return b.Index == index }) {
		return
	}
	d.BARs = append(d.BARs, facts.BAR{
		Index: index, SizeBytes: size, IO: m[2] == "I/O ports", Unassigned: m[3] == "<unassigned>",
	})
}

// lspciBytes reads a size in bytes with a unit of 1024.
func lspciBytes(digits, unit string) (int64, bool) {
	n, err := strconv.ParseInt(digits, 10, 64)
	shift := 10 * strings.Index(" KMGT", cmp.Or(unit, " "))
	if err != nil || n <= 0 || n > 1<<(62-shift) {
		return 0, false
	}
	return n << shift, true
}

func (d *lspciDevice) resizable(text string) {
	m := lspciReBAR.FindStringSubmatch(text)
	if m == nil || m[1] > "5" || len(d.ResizableBARs) > 6 || !strings.Contains(d.capability, "Resizable BAR") || strings.Contains(d.capability, "Virtual") {
		return
	}
	size, ok := lspciBytes(m[2], m[3])
	if !ok {
		return
	}
	largest := size
	for _, other := range lspciSizes.FindAllStringSubmatch(m[4], 64) {
		if n, ok := lspciBytes(other[1], other[2]); ok {
			largest = max(largest, n)
		}
	}
	d.ResizableBARs = append(d.ResizableBARs, facts.ResizableBAR{Index: parse.Number(m[1]), SizeBytes: size, MaxBytes: largest})
}

// lspciFinish notes what the block as a whole tells: how much of config space
// was shown, and the place of the functions in the tree.
func lspciFinish(s *parse.Sink, t *tree, devices []*lspciDevice, prompt string) {
	verbose := 0
	s.Settle()
	for _, d := range devices {
		// With an extended one, all capabilities are there.
		d.Extended = d.Extended || d.far && d.control && d.status && !d.denied
		if d.control || d.details > 3 {
			verbose++
		}
		if d.secondary > 0 && d.secondary <= d.subordinate && strings.HasPrefix(d.Class, "0x0604") {
			t.below(d)
		}
	}
	if lspciWhole(devices, prompt, verbose) {
		s.WholePCI()
		t.whole = t.whole || verbose == len(devices)
	}
}

// tree is what texts say about the tree.
type tree struct {
	// bridges are the PCI bridges by the bus below them, of each text that shows some.
	bridges map[string]string
	// roots are the root buses that a text names.
	roots map[string]bool
	// whole is set once a text shows the buses below every bridge.
	whole bool
}

// below notes which buses a bridge leads to.
func (t *tree) below(d *lspciDevice) {
	domain, _, _ := strings.Cut(d.Address, ":")
	for bus := d.secondary; bus <= d.subordinate && len(t.bridges) < 4*parse.MaxDevices; bus++ {
		key := fmt.Sprintf("%s:%02x", domain, bus)
		// The bridge nearest to a bus has it as its secondary one.
		if bus == d.secondary || t.bridges[key] == "" {
			t.bridges[key] = d.Address
		}
	}
}

// lspciWhole reports whether a block lists every function: nothing filtered it,
// and it begins with a host bridge, as all machines with a PCI bus do.
func lspciWhole(devices []*lspciDevice, prompt string, verbose int) bool {
	isFiltered := strings.Contains(prompt, "|") || strings.Contains(prompt, " -s") || strings.Contains(prompt, " -d")
	if isFiltered || len(devices) < 3 || !strings.HasPrefix(devices[0].Class, "0x0600") {
		return false
	}
	_, _, _, ok := lspciHeadOf(devices[0].head.Text)
	return ok && (verbose == 0 || verbose == len(devices))
}

// place gives each function its bridges and its root bus. A bridge names the buses below it; a function whose bus no
// known bridge names is on a root bus only if the whole list was shown, for then no bridge is missing.
func (t *tree) place(s *parse.Sink) {
	if len(t.bridges)+len(t.roots) == 0 && !t.whole {
		return
	}
	for _, address := range s.Addresses() {
		d := s.KnownDevice(address)
		if d.RootBus == "" && d.Ancestors == nil {
			d.Ancestors, d.RootBus = t.above(s, address)
		}
	}
}

// above lists the bridges above a function, the root port first, and its root bus; there are none if it cannot be told.
func (t *tree) above(s *parse.Sink, address string) (ancestors []string, root string) {
	const deepest = 64 // More than PCI Express allows to be nested.
	for at := address; len(ancestors) < deepest; {
		bus := at[:strings.LastIndex(at, ":")]
		bridge := t.bridges[bus]
		if bridge == "" {
			slices.Reverse(ancestors)
			if t.roots[bus] || t.isRoot(s, ancestors) {
				return ancestors, "pci" + bus
			}
			return nil, ""
		}
		if slices.Contains(ancestors, bridge) || bridge == address {
			return nil, "" // A loop: no real machine.
		}
		// Between the bus and the bridge that is known to lead there another one may be missing.
		ancestors = append(ancestors, bridge)
		at = bridge
	}
	return nil, ""
}

// isRoot reports whether the bus of the topmost bridge that is known is a root bus. Without the whole list,
// it is one only if that bridge is a root port.
func (t *tree) isRoot(s *parse.Sink, ancestors []string) bool {
	if t.whole || len(ancestors) == 0 {
		return t.whole
	}
	top := s.KnownDevice(ancestors[0])
	return top != nil && top.PortType == "root-port"
}
