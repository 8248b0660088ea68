package nvidia

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// nvsmiQueryKind is the long listing of nvidia-smi, whole, of one section (-d), or what grep left of it:
//
//	==============NVSMI LOG==============
//	Driver Version                            : 580.159.04
//	Attached GPUs                             : 2
//	GPU 00000000:00:06.0
//	    Product Name                          : NVIDIA H200
//	    Fabric
//	        State                             : Completed
var nvsmiQueryKind = &parse.Kind{
	Name: "nvidia-smi-q", Title: "all attributes of NVIDIA GPUs, from nvidia-smi -q",
	Command: "nvidia-smi -q", Gives: []string{"gpus"},
	Anchors: []string{
		"NVSMI LOG", "Attached GPUs", "GPU 0000", "GPU 0001", "Product Name   ", "  Fabric", "FB Memory Usage", "BAR1 Memory Usage",
		"  ECC Mode", "  ECC Errors", "  MIG Mode", "Remapped Rows", "GPU Link Info", "GPU Recovery Action", "  Persistence Mode",
		"GPU UUID  ", "  Compute Mode", "Retired Pages", "GPU Virtualization Mode",
	},
	Begins: nvsmiQueryBegins,
	Read:   nvsmiQueryRead,
}

var (
	// nvsmiQueryPair is "    Product Name    : NVIDIA H200"; the colon stands in a column of its own.
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
	return m != nil && (nvsmiByPath[nvsmiPath(m[2])] != nil || m[2] == "Attached GPUs")
}

// nvsmiQueryDepth counts the blanks at a line's beginning.
func nvsmiQueryDepth(text string) int { return len(text) - len(strings.TrimLeft(text, " \t")) }

// nvsmiQueryReader is the reading of one listing.
type nvsmiQueryReader struct {
	sink *parse.Sink
	// gpu is what the listing says about the GPU under way, known the GPU itself:
	// what one listing tells replaces what another told, it does not add to it.
	gpu, known *facts.GPU
	// attached is how many GPUs there are by its own words, found those that were listed.
	attached int
	found    []*facts.GPU
	headings []string
	depths   []int
	// nameless is true while lines of a GPU come whose heading was cut off;
	// opening is the first of its lines, which marks the next GPU, and next the index of that.
	nameless bool
	opening  string
	next     int
}

func nvsmiQueryRead(s *parse.Sink, in *parse.Lines) {
	r := &nvsmiQueryReader{sink: s, next: max(nvsmiCommandIndex(in.Prompt().Command), 0)}
	blank := false
	in.While(func(l parse.Line) bool {
		if blank && !nvsmiQueryGoesOn(l.Text) {
			return false
		}
		text := strings.ReplaceAll(l.Text, "\t", "    ")
		blank = strings.TrimSpace(text) == ""
		switch {
		case blank, strings.Contains(text, "==NVSMI LOG=="), text == "--":
		case nvsmiQueryGPU.MatchString(text):
			r.headings, r.depths, r.nameless = nil, nil, false
			r.begin(nvsmiQueryGPU.FindStringSubmatch(text)[1], l)
		default:
			return r.line(text, l)
		}
		return true
	})
	r.commit()
	r.finish(in)
}

// finish gives the GPUs their indexes where all of them are listed: in NVML's order.
func (r *nvsmiQueryReader) finish(in *parse.Lines) {
	if r.attached <= 0 || len(r.found) != r.attached {
		return
	}
	for i, g := range r.found {
		g.Index = cmp.Or(g.Index, &i)
	}
	nvsmiAnswered(r.sink, in.First())
}

// nvsmiQueryGoesOn reports whether the listing goes on behind an empty line.
func nvsmiQueryGoesOn(text string) bool {
	return strings.TrimSpace(text) == "" || nvsmiQueryGPU.MatchString(text) || nvsmiQueryPair.MatchString(text) ||
		text == "--" || strings.HasPrefix(text, "    ") && nvsmiQueryHead.MatchString(text)
}

// nvsmiCommandIndex is the one GPU that a command asks for (-i 3), or -1.
func nvsmiCommandIndex(command string) int {
	return *cmp.Or(parse.Optional(nvsmiIndexOption.First(command)), new(-1))
}

var nvsmiIndexOption = lazy.New(`\s(?:-i|--id)[= ]?(\d{1,3})(?:\s|$)`)

// line reads a line below a GPU's heading, or at the top. It reports whether it belongs to the listing.
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
		r.version(m[2], m[3], l)
		return true
	}
	path := strings.Join(append(slices.Clip(r.headings), m[2]), "/")
	if len(r.headings) == 0 && nvsmiByPath[nvsmiPath(path)] != nil {
		r.nextNameless(m[2], l)
	}
	r.attribute(path, m[3], l)
	return true
}

// nextNameless begins a GPU whose heading is not there: grep took it away, and the lines of one GPU follow those of
// another. Each time the first heading comes again, it is of the next GPU.
func (r *nvsmiQueryReader) nextNameless(heading string, l parse.Line) {
	if r.gpu != nil && !r.nameless || r.nameless && heading != r.opening {
		return
	}
	r.opening = cmp.Or(r.opening, heading)
	r.commit()
	if r.next < 1024 {
		r.gpu, r.known, r.nameless = &facts.GPU{}, nvsmiGPU(r.sink, "", r.next, l), true
		r.next++
	}
}

// begin begins a GPU.
func (r *nvsmiQueryReader) begin(busID string, l parse.Line) {
	r.commit()
	if len(r.found) < parse.MaxEntries {
		r.gpu, r.known = &facts.GPU{}, nvsmiGPU(r.sink, busID, -1, l)
		r.found = append(r.found, r.known)
	}
}

// commit enters what was read of a GPU.
func (r *nvsmiQueryReader) commit() {
	nvsmiReplace(r.known, r.gpu)
	r.gpu, r.known = nil, nil
}

// nvsmiReplace enters what one listing says about a GPU: it replaces what was known, and what it does not tell stays.
func nvsmiReplace(known, told *facts.GPU) {
	if known == nil || told == nil {
		return
	}
	parse.MergeGPU(told, known)
	*known = *told
}

// version reads what stands above the GPUs.
func (r *nvsmiQueryReader) version(name, value string, l parse.Line) {
	switch nvsmiPath(name) {
	case "driverversion", "kmdversion":
		nvsmiDriver(r.sink, value, "", l)
	case "cudaversion", "cudaumdversion":
		nvsmiDriver(r.sink, "", value, l)
	case "attachedgpus":
		r.attached = parse.Number(strings.TrimSpace(value))
	}
}

// attribute reads an attribute of the GPU under way.
func (r *nvsmiQueryReader) attribute(path, text string, l parse.Line) {
	if r.gpu == nil {
		return
	}
	a := nvsmiByPath[nvsmiPath(path)]
	if a == nil {
		r.process(path, text)
		return
	}
	r.sink.Watch("gpus.devices["+r.known.Address+"]", r.gpu, l)
	v := nvsmiValueOf(text)
	a.set(r.gpu, v)
	if v.added { // A sum has no line of its own.
		r.sink.Unwatch(r.gpu)
	}
	r.sink.Settle()
}

// process reads an attribute of a process: its number comes first.
func (r *nvsmiQueryReader) process(path, text string) {
	last := len(r.gpu.Processes) - 1
	switch nvsmiPath(path) {
	case "processes/processid", "processes/processinfo/pid":
		if pid, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && last+1 < parse.MaxEntries {
			r.gpu.Processes = append(r.gpu.Processes, facts.GPUProcess{PID: pid})
		}
	case "processes/name", "processes/processinfo/processname":
		if last >= 0 {
			r.gpu.Processes[last].Name = nvsmiProgram(text)
		}
	}
}

// nvsmiProgram is a program's name without its path.
func nvsmiProgram(text string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return escape.Printable(name[strings.LastIndexByte(name, '/')+1:], 64)
}
