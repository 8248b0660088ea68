package amd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// rocminfoKind are the agents of rocminfo, or what grep leaves of them
// (rocminfo.cc of ROCm/rocminfo: keys padded to 25 columns).
var rocminfoKind = &parse.Kind{
	Name: "rocminfo", Title: "AMD GPUs, from rocminfo", Command: "rocminfo", Gives: []string{"gpus"},
	Anchors:  []string{"HSA System Attributes", "HSA Agents", "Agent 1", "Agent 2", "  Name:  ", "Marketing Name:"},
	Commands: []string{"rocminfo"},
	Begins: func(in *parse.Lines) bool {
		lines := in.Ahead(1)
		if in.After("rocminfo") { // What it says of the kernel's module comes first.
			lines = in.Ahead(12)
		}
		return slices.ContainsFunc(lines, func(l parse.Line) bool { return rocminfoBegins.MatchString(l.Text) || rocminfoName.MatchString(l.Text) })
	},
	Read: rocminfoRead,
}

var (
	rocminfoBegins = lazy.New(`^\s*(?:HSA System Attributes|HSA Agents|Agent \d{1,3})\s*$`)
	rocminfoAgent  = lazy.New(`^Agent (\d{1,3})$`)
	// rocminfoName is the name of an agent that is a GPU; its ISAs have longer ones, further to the right.
	rocminfoName  = lazy.New(`^ *(?:Name: +gfx[0-9a-f]{3,4}\s*|Marketing Name: {2,}\S.*)$`)
	rocminfoEntry = lazy.New(`^( *)([A-Za-z][A-Za-z0-9 ().,/_-]{0,60}?)::? *(.*?)\s*$`)
)

// rocminfoGPU is an agent under way.
type rocminfoGPU struct {
	seen bool
	head parse.Line
	// values are its entries by their keys, and lines those of them.
	values map[string]string
	lines  map[string]parse.Line
}

func rocminfoRead(s *parse.Sink, in *parse.Lines) {
	var a rocminfoGPU
	gpus := 0
	finish := func() {
		if a.finish(s, gpus) {
			gpus++
		}
		a = rocminfoGPU{}
	}
	indent := -1
	in.While(func(l parse.Line) bool {
		text := strings.TrimSpace(l.Text)
		switch m := rocminfoEntry.FindStringSubmatch(l.Text); {
		case gpus >= gpuMax:
			return false
		case rocminfoAgent.MatchString(text):
			finish()
			a.head, a.seen, indent = l, true, -1
		case m != nil:
			// The entries of an agent are at its first indent; those of its caches, pools and ISAs are further in.
			if indent < 0 || len(m[1]) < indent {
				indent = len(m[1])
			}
			return a.entry(l, m[2], m[3], len(m[1]) == indent, finish)
		case text == "" || strings.Trim(text, "*=") == "" || text == "HSA Agents" || text == "HSA System Attributes" ||
			text == "*** Done ***" || strings.HasPrefix(text, "ROCk module") || rocminfoPart.MatchString(text):
		default:
			return false
		}
		return true
	})
	finish()
}

// rocminfoKeys are keys that tell rocminfo's lines from other texts.
var rocminfoKeys = lazy.New(`^(?:Runtime.*|System.*|Sig\.? ?Max.*|Signal.*|Machine Model.*|Mwaitx|XNACK.*|DMAbuf.*|VMM.*|Name|Uuid|Marketing Name|Vendor Name|Feature.*|Profiles?|Float.*|Max.*|Queue.*|Node|Device Type|Cache.*|L[1-4]|Chip ID|ASIC.*|BDFID|Internal Node ID|Compute Unit|SIMDs per CU|Shader.*|WatchPts.*|Coherent.*|Memory Properties|Fast.*|Wavefront.*|Workgroup.*|[xyz]|Grid.*|Packet.*|SDMA.*|IOMMU.*|Pool.*|Segment|Size|Allocatable|Alloc.*|Accessible.*|ISA.*|Default.*|FBarrier.*|Number.*|Clock.*|Timestamp.*|Domain|Device.*|Ext.*)$`)

// entry takes one entry; it is false if rocminfo does not write such entries.
func (a *rocminfoGPU) entry(l parse.Line, key, value string, own bool, finish func()) bool {
	if !rocminfoKeys.MatchString(key) {
		return false
	}
	if !own {
		return true
	}
	marketing := a.values["Marketing Name"]
	if key == "Name" && (a.values[key] != "" || marketing != "" && !a.seen) || key == "Marketing Name" && marketing != "" {
		finish() // What grep left of the next agent.
	}
	if a.head.Number == 0 {
		a.head = l
	}
	facts.Put(&a.values, key, value)
	facts.Put(&a.lines, key, l)
	return true
}

// rocminfoPart begins a pool of memory or an instruction set of an agent.
var rocminfoPart = lazy.New(`^(?:Pool|ISA) \d{1,3}$`)

// rocminfoOther are names of processors and other agents among those of GPUs, where grep left the names alone.
var rocminfoOther = lazy.New(`(?i)processor|EPYC|Xeon|Ryzen(?:.*Core)?|Core\(TM\)|Threadripper|aie2`)

// finish records a GPU; it is false for an agent that is not a GPU.
func (a *rocminfoGPU) finish(s *parse.Sink, index int) bool {
	name, marketing, kind, uuid, memory := a.values["Name"], a.values["Marketing Name"], a.values["Device Type"], a.values["Uuid"], a.values["Memory Properties"]
	gpu := kind == "GPU" || kind == "" && (gpuArchitecture.MatchString(name) || name == "" && marketing != "" && !rocminfoOther.MatchString(marketing))
	if !gpu {
		return false
	}
	g := gpuAt(s, index, rocminfoAddress(a.values["BDFID"]), a.head)
	told := func(key string) { s.Watch("gpus.devices["+g.Address+"]", g, a.lines[key]) }
	told("Name")
	gpuSetArchitecture(g, name)
	told("Marketing Name")
	gpuSetName(g, marketing)
	told("Uuid")
	if g.UUID == "" && strings.HasPrefix(uuid, "GPU-") && uuid != "GPU-XX" {
		g.UUID = escape.Printable(uuid, 64)
	}
	if g.Integrated == nil && memory != "" || strings.Contains(memory, "APU") {
		// Memory Properties is empty for a card.
		told("Memory Properties")
		g.Integrated = new(strings.Contains(memory, "APU"))
	}
	s.Settle()
	return true
}

// rocminfoAddress reads BDFID: bus, device and function in 16 bits. The domain is not among them.
func rocminfoAddress(bdf string) string {
	n, err := strconv.ParseUint(bdf, 10, 16)
	if err != nil || n == 0 {
		return ""
	}
	return fmt.Sprintf("0000:%02x:%02x.%x", n>>8, n>>3&0x1f, n&7)
}
