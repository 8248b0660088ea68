package host

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// lspciTreeKind is the tree of lspci -t, whole or cut (pciutils, ls-tree.c).
func lspciTreeKind(t *tree) *parse.Kind {
	return &parse.Kind{
		Name: "lspci-tree", Title: "PCI tree, from lspci -tv", Command: "sudo lspci -tvnn", Gives: []string{"pci"},
		Anchors: []string{"-[0000:", "-+-0", "-+-1", "+-0", "+-1", "\\-0", "\\-1", "]----", "]--+-"},
		Begins:  parse.BeginsLike(lspciTreeLine),
		Read:    func(s *parse.Sink, in *parse.Lines) { lspciTreeRead(s, t, in) },
	}
}

var (
	// lspciTreeLine is a line of the tree: its connectors, and a function or a root bus among them.
	lspciTreeLine = lazy.New(`^[ |]*(?:[-+\\]{1,4}\[[0-9a-f]{4,8}:[0-9a-f]{2}(?:-[0-9a-f]{2})?\]|[+\\]-[0-9a-f]{2}\.[0-7])`)
	// lspciTreeToken is what stands in a line, from left to right: a root bus
	// "[0000:3a]", buses below a bridge "[3b-3d]", a function "00.0", a fork.
	lspciTreeToken = lazy.New(`^(?:\[([0-9a-f]{4,8}):([0-9a-f]{2})(?:-[0-9a-f]{2})?\]|\[([0-9a-f]{2})(?:-([0-9a-f]{2}))?\]|([0-9a-f]{2}\.[0-7])|([+\\])|[- |])`)
)

// lspciTreeBus is a bus at which a line of the tree is: "0000:3a". Without a root bus to the left, only what is below a bridge is known.
type lspciTreeBus struct{ domain, bus string }

func lspciTreeRead(s *parse.Sink, t *tree, in *parse.Lines) {
	columns := make(map[int]lspciTreeBus)
	lines, hasRoot, whole := 0, false, true
	in.While(func(l parse.Line) bool {
		if !lspciTreeLine.MatchString(l.Text) || len(l.Text) > 1024 {
			return false
		}
		lines++
		root, placed := lspciTreeWalk(s, t, l, columns)
		hasRoot, whole = hasRoot || root, whole && placed
		return true
	})
	if whole && hasRoot && lines > 2 {
		s.WholePCI()
	}
}

// lspciTreeWalk reads one line. root is true when a root bus begins there, and
// placed when it is known on which bus its functions are.
func lspciTreeWalk(s *parse.Sink, t *tree, l parse.Line, columns map[int]lspciTreeBus) (root, placed bool) {
	var at lspciTreeBus
	last := "" // The function read last, where its bus is known.
	placed = true
	for i, text := 0, l.Text; i < len(text); {
		m := lspciTreeToken.FindStringSubmatch(text[i:])
		if m == nil {
			return root, placed
		}
		switch {
		case m[2] != "":
			at, root, last = lspciTreeBus{lspciDomain(m[1]), m[2]}, true, ""
			if len(t.roots) < parse.MaxDevices {
				t.roots[at.domain+":"+at.bus] = true
			}
		case m[3] != "":
			at = lspciTreeBus{cmp.Or(at.domain, "0000"), m[3]}
			if bus := at.domain + ":" + at.bus; last != "" && t.bridges[bus] == "" && len(t.bridges) < 4*parse.MaxDevices {
				t.bridges[bus] = last
			}
			last = ""
		case m[5] != "" && at.bus == "":
			placed, last = false, ""
		case m[5] != "":
			last = lspciTreeFunction(s, l, at, m[5], text[i+len(m[0]):])
		case m[6] != "" && at.bus != "":
			columns[i] = at // The same column stands for the same bus in the lines below, up to its last branch.
		case m[6] != "":
			at = columns[i]
		}
		i += len(m[0])
		if m[5] != "" && strings.HasPrefix(text[i:], "  ") {
			return root, placed // A description follows.
		}
	}
	return root, placed
}

// lspciDomain writes a domain as addresses do.
func lspciDomain(s string) string { return strings.TrimSuffix(facts.Address(s+":00:00.0"), ":00:00.0") }

// lspciTreeFunction notes a function and returns its address.
func lspciTreeFunction(s *parse.Sink, l parse.Line, at lspciTreeBus, function, rest string) string {
	address := facts.Address(at.domain + ":" + at.bus + ":" + function)
	if address == "" {
		return ""
	}
	d := s.Device(address, l)
	if strings.HasPrefix(rest, "-[") {
		d.Class = cmp.Or(d.Class, "0x060400")
		return address
	}
	if rest = strings.TrimSpace(rest); rest != "" && d.Vendor == "" {
		d.Vendor, d.Device = lspciMaker(rest)
		if d.Class == "" && lspciTreeGPU(d, rest) {
			d.Class = "0x030000"
			lspciGPUName(s, d, rest, l)
		}
	}
	return address
}

// lspciTreeModels are trade names of NVIDIA's GPUs.
var lspciTreeModels = sync.OnceValue(func() *lazy.Regexp { return lazy.New(data.GPUModels().NVIDIA.Names) })

// lspciTreeGPU reports whether a function is surely an NVIDIA GPU: the tree shows no class, but the model, or the id.
// NVIDIA's other functions are the sound, USB and serial ones of the same card, which are functions 1 to 3,
// NVSwitches, whose names begin with GV100GL or bear the word, and chipsets of before 2010, whose ids are below
// 0x0fc0 (PCI ID database, vendor 10de).
func lspciTreeGPU(d *facts.PCIDevice, rest string) bool {
	if d.Vendor != "0x10de" || !strings.HasSuffix(d.Address, ".0") || strings.Contains(rest, "NVSwitch") ||
		strings.Contains(rest, "Audio") || strings.Contains(rest, "Bridge") {
		return false
	}
	if d.Device != "" {
		known := data.GPUModels().NVIDIA
		return d.Device >= known.FirstGPUID && !slices.Contains(known.NVSwitchIDs, d.Device)
	}
	return lspciTreeModels().MatchString(rest)
}
