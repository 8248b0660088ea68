package amd

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// smiKind are the reports of amd-smi by GPU: list, static, metric and bad-pages, as text (amdsmi_cli/amdsmi_logger.py
// of ROCm/amdsmi: nested keys in capitals, indented by four blanks).
var smiKind = &parse.Kind{
	Name: "amd-smi", Title: "AMD GPUs, from amd-smi", Command: "amd-smi static", Gives: []string{"gpus"},
	Anchors:  []string{"GPU: ", "MARKET_NAME:"},
	Commands: []string{"amd-smi list", "amd-smi static", "amd-smi metric", "amd-smi bad-pages"},
	Begins: func(in *parse.Lines) bool {
		first, ahead := in.First().Text, in.Ahead(2)
		return smiModel.MatchString(first) || len(ahead) > 1 && smiHead.MatchString(first) && smiEntry.MatchString(ahead[1].Text)
	},
	Read: smiRead,
}

var (
	smiHead  = lazy.New(`^ *(?:- )?GPU: (\d{1,3})$`)
	smiEntry = lazy.New(`^( +)(?:- )?([A-Za-z0-9_ -]{1,60}):(?: (.*))?$`)
	smiModel = lazy.New(`^ +MARKET_NAME: \S`)
)

// smiRead takes the reports of consecutive GPUs. Without their heads, as
// grep leaves them, each model begins the next GPU.
func smiRead(s *parse.Sink, in *parse.Lines) {
	var report smiReport
	next, headless := 0, true
	in.While(func(l parse.Line) bool {
		text := strings.TrimRight(l.Text, " \t")
		if index := smiHead.First(text); index != "" {
			report.finish(s)
			headless = false
			report = smiReport{index: parse.Number(index), head: l}
			return true
		}
		m := smiEntry.FindStringSubmatch(text)
		if m == nil { // A blank line stands between two GPUs.
			return text == "" && slices.ContainsFunc(in.Ahead(3)[1:], func(l parse.Line) bool { return smiHead.MatchString(strings.TrimSpace(l.Text)) })
		}
		if headless && strings.TrimSpace(m[2]) == "MARKET_NAME" {
			report.finish(s)
			report = smiReport{index: next, head: l}
			next++
		}
		report.take(len(m[1]), m[2], m[3], l)
		return next <= gpuMax
	})
	report.finish(s)
}

// smiReport is what amd-smi says about one GPU.
type smiReport struct {
	index int
	head  parse.Line
	// path are the keys above the entry under way, with their indents.
	path   []string
	indent []int
	// values are the entries by their keys, "/" between them, and lines those in which they stand.
	values map[string]string
	lines  map[string]parse.Line
	// pages counts the pages that are listed as retired, and listed is where the list begins.
	pages  int
	listed parse.Line
}

// smiMaxValues bounds the entries of one GPU.
const smiMaxValues = 1000

func (r *smiReport) take(indent int, key, value string, l parse.Line) {
	for len(r.indent) > 0 && r.indent[len(r.indent)-1] >= indent {
		r.indent, r.path = r.indent[:len(r.indent)-1], r.path[:len(r.path)-1]
	}
	key = strings.ToUpper(strings.ReplaceAll(strings.TrimSpace(key), " ", "_"))
	if len(r.path) > 8 {
		return
	}
	if value == "" {
		r.indent, r.path = append(r.indent, indent), append(r.path, key)
		return
	}
	name := strings.Join(append(r.path, key), "/")
	if strings.HasPrefix(name, "RETIRED/") && key == "PAGE_ADDRESS" {
		r.page(1, l)
	}
	r.set(name, strings.TrimSpace(value), l)
}

// page counts pages that are listed as retired.
func (r *smiReport) page(count int, l parse.Line) {
	if r.pages == 0 {
		r.listed = l
	}
	r.pages += count
}

// set keeps the first value of an entry.
func (r *smiReport) set(name, value string, l parse.Line) {
	if _, ok := r.values[name]; !ok && len(r.values) < smiMaxValues {
		facts.Put(&r.values, name, value)
		facts.Put(&r.lines, name, l)
	}
}

// smiFields says which entry fills what, for text and JSON alike. Of several for one fact the first counts: the name of the board is worth
// less than that of the model.
var smiFields = []struct {
	name string
	set  func(g *facts.GPU, value string)
}{
	{"ASIC/MARKET_NAME", gpuSetName},
	{"MARKET_NAME", gpuSetName},
	{"BOARD/PRODUCT_NAME", gpuSetName},
	{"ASIC/TARGET_GRAPHICS_VERSION", gpuSetArchitecture},
	{"BUS/MAX_PCIE_WIDTH", func(g *facts.GPU, v string) { smiWidth(&smiLink(g).MaxWidth, v) }},
	{"BUS/MAX_PCIE_SPEED", func(g *facts.GPU, v string) { smiSpeed(&smiLink(g).MaxGeneration, v) }},
	{"PCIE/WIDTH", func(g *facts.GPU, v string) { smiWidth(&smiLink(g).Width, v) }},
	{"PCIE/SPEED", func(g *facts.GPU, v string) { smiSpeed(&smiLink(g).Generation, v) }},
	{"VRAM/SIZE", func(g *facts.GPU, v string) {
		if mb, ok := gpuNumber(v); ok && g.MemoryBytes == 0 {
			g.MemoryBytes = int64(mb) << 20 // amd-smi says MB and divides by 1024 * 1024.
		}
	}},
	{"ECC/TOTAL_UNCORRECTABLE_COUNT", smiErrors},
	{"ECC_BLOCKS/XGMI_WAFL/UNCORRECTABLE_COUNT", gpuSetXGMIErrors},
	{"XGMI_ERR", func(g *facts.GPU, v string) {
		// amdsmi_xgmi_status_t.
		if n := slices.Index([]string{"NO_ERRORS", "ERROR", "MULTIPLE_ERRORS"}, strings.TrimPrefix(v, "AMDSMI_XGMI_STATUS_")); n >= 0 {
			g.XGMIErrors = &n
		}
	}},
	{"RETIRED", func(g *facts.GPU, v string) {
		if v == "No bad pages found." {
			g.RetiredPages = cmp.Or(g.RetiredPages, new(0))
		}
	}},
}

func smiLink(g *facts.GPU) *facts.GPULink {
	g.PCIe = cmp.Or(g.PCIe, &facts.GPULink{})
	return g.PCIe
}

// smiErrors notes uncorrectable errors of the memory. amd-smi counts zero for cards
// without ECC as well, so that zero says nothing.
func smiErrors(g *facts.GPU, value string) {
	if v, ok := gpuNumber(value); ok && v > 0 {
		g.ECC = cmp.Or(g.ECC, &facts.ECC{Enabled: true})
		g.ECC.VolatileUncorrected = new(int64(v))
	}
}

func smiWidth(to *int, value string) {
	if n := gpuInt(value); n != nil && *n <= 32 && *to == 0 {
		*to = *n
	}
}

func smiSpeed(to *int, value string) {
	v, ok := gpuNumber(value)
	if strings.Contains(value, "MT/s") {
		v /= 1000
	}
	if ok && *to == 0 {
		*to = gpuGeneration(v)
	}
}

// finish writes a GPU's entries down.
func (r *smiReport) finish(s *parse.Sink) {
	if len(r.values) == 0 || r.index >= gpuMax {
		return
	}
	g := gpuAt(s, r.index, cmp.Or(r.values["BDF"], r.values["BUS/BDF"]), r.head)
	for _, f := range smiFields {
		if v, ok := r.values[f.name]; ok && v != "N/A" {
			s.Watch("gpus.devices["+g.Address+"]", g, r.lines[f.name])
			f.set(g, v)
		}
	}
	if pages := r.pages; pages > 0 { // The report goes on to the next GPU.
		s.Watch("gpus.devices["+g.Address+"]", g, r.listed)
		g.RetiredPages = &pages
	}
	s.Settle()
}

// smiTableKind is what amd-smi prints without arguments, since version 26.
var smiTableKind = &parse.Kind{
	Name: "amd-smi-table", Title: "AMD GPUs, the table of amd-smi", Command: "amd-smi", Gives: []string{"gpus"},
	Anchors: []string{"| AMD-SMI", "GPU-Name | Mem-Uti"}, Commands: []string{"amd-smi", "amd-smi monitor"},
	Begins: func(in *parse.Lines) bool {
		return slices.ContainsFunc(in.Ahead(3), func(l parse.Line) bool {
			return strings.Contains(l.Text, "| AMD-SMI") || strings.Contains(l.Text, "GPU-Name | Mem-Uti")
		})
	},
	Read: smiTableRead,
}

var (
	smiROCm   = lazy.New(`ROCm version: ?(\d[\w.+-]*)`)
	smiFirst  = lazy.New(`^\s*\|\s*([0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\s+(.*?)\s*\|\s*\S+(?: %)?\s+\S+(?: °C)?\s+(\d+|N/A)\s+\S+\s`)
	smiSecond = lazy.New(`^\s*\|\s*(\d{1,3})\s+(\d{1,3}|N/A)\s+(\d{1,3}|N/A)\s+(\S+)\s*\|`)
)

func smiTableRead(s *parse.Sink, in *parse.Lines) {
	var g *facts.GPU
	rows := 0
	in.While(func(l parse.Line) bool {
		text := strings.TrimSpace(l.Text)
		if text == "" || text[0] != '|' && text[0] != '+' {
			return false
		}
		if version := smiROCm.First(l.Text); version != "" {
			s.Package("rocm", version, "", "amd-smi", l)
		}
		if m := smiFirst.FindStringSubmatch(l.Text); m != nil && rows < gpuMax {
			rows++
			g = s.GPU(facts.Address(m[1]), l)
			g.Vendor = gpuVendor
			gpuSetName(g, m[2])
			smiErrors(g, m[3])
		} else if m := smiSecond.FindStringSubmatch(l.Text); m != nil && g != nil {
			gpuSetIndex(s, g, parse.Number(m[1]))
			g = nil
		}
		return true
	})
}
