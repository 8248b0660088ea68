package amd

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// jsonKind is what amd-smi and rocm-smi print with --json. It may begin in
// the middle, as the lines before the first key hold brackets alone, and may
// be cut at its end.
var jsonKind = &parse.Kind{
	Name: "amd-smi-json", Title: "AMD GPUs, from amd-smi or rocm-smi --json", Command: "amd-smi topology --json", Gives: []string{"gpus", "links"},
	Anchors:  []string{`"gpu":`, `"gpu_data"`, `"card0"`, `"card1"`, `"(Topology)`},
	Commands: []string{"amd-smi", "rocm-smi"},
	Begins: func(in *parse.Lines) bool {
		var text strings.Builder
		for _, l := range in.Ahead(60) {
			text.WriteString(l.Text[:min(len(l.Text), 4096)])
			text.WriteByte('\n')
		}
		return jsonBegin.MatchString(text.String())
	},
	Read: jsonRead,
}

// jsonBegin is the beginning of such a document: a GPU's number and, not far
// from it, a key of amd-smi's; or rocm-smi's name of a card.
var jsonBegin = lazy.New(`^[\s\[{]*(?:"gpu_data"\s*:\s*\[[\s{]*)?(?:"gpu"\s*:\s*\d{1,3}\s*,(?s:.{0,200}?)"(?:bdf|uuid|asic|bus|usage|clock|links|link_accessibility|pcie|ecc|retired|partition|driver|vram|board|power)"\s*:|"card\d{1,3}"\s*:\s*\{|"system"\s*:\s*\{\s*"(?:\(Topology\)|Driver version))`)

// jsonMaxBytes and jsonMaxDepth bound a document. amd-smi static of 64
// partitions has 300 KiB.
const (
	jsonMaxBytes = 4 << 20
	jsonMaxDepth = 32
)

func jsonRead(s *parse.Sink, in *parse.Lines) {
	first, _ := in.Peek()
	var text strings.Builder
	for text.Len() < jsonMaxBytes {
		l, ok := in.Peek()
		if !ok || !jsonBelongs(l.Text) {
			break
		}
		in.Next()
		text.WriteString(l.Text)
		text.WriteByte('\n')
	}
	r := &jsonReader{text: text.String(), line: first.Number}
	entries := r.entries()
	r.pairs = newGPUPairs(s)
	for _, e := range entries {
		jsonGPU(s, r, e)
	}
}

// jsonBelongs reports whether a line may be a line of JSON.
func jsonBelongs(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && (strings.ContainsRune(`{}[]",-0123456789`, rune(text[0])) || text == "null" || text == "null,")
}

// jsonNode is a value: a string, a number's text, an object or an array.
type jsonNode struct {
	text   string
	keys   []string
	fields map[string]*jsonNode
	items  []*jsonNode
	line   parse.Line
}

func (n *jsonNode) at(keys ...string) *jsonNode {
	for _, k := range keys {
		if n == nil {
			return nil
		}
		n = n.fields[k]
	}
	return n
}

// string is the text of a value; of one with a unit, {"value": 32, "unit":
// "GT/s"}, both.
func (n *jsonNode) string() string {
	switch {
	case n == nil:
		return ""
	case n.fields["value"] != nil:
		return strings.TrimSpace(n.at("value").string() + " " + n.at("unit").string())
	}
	return n.text
}

// place is the line of a value; none for a value that is not there.
func (n *jsonNode) place() parse.Line {
	switch {
	case n == nil:
		return parse.Line{}
	case n.fields["value"] != nil:
		return n.fields["value"].line
	}
	return n.line
}

// jsonReader reads JSON that may lack its beginning or its end.
type jsonReader struct {
	text  string
	pos   int
	line  int
	nodes int
	pairs *gpuPairs
}

// entries are the objects of the outermost array, or the one object there is.
// A document whose brackets were cut off begins with the members of the first.
func (r *jsonReader) entries() []*jsonNode {
	var list []*jsonNode
	loose := &jsonNode{}
	for r.nodes < 400000 {
		switch r.skip() {
		case 0:
			if len(loose.keys) > 0 {
				list = slices.Insert(list, 0, loose)
			}
			return list
		case '{':
			list = append(list, r.value(0))
		case '"':
			r.member(loose, 0)
		default:
			r.pos++
		}
	}
	return list
}

// skip passes blanks and commas and returns the next byte, 0 at the end.
func (r *jsonReader) skip() byte {
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; c {
		case '\n':
			r.line++
			r.pos++
		case ' ', '\t', ',', ':', '\r':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

// word reads a string or a bare word.
func (r *jsonReader) word() string {
	from := r.pos
	if r.text[from] != '"' {
		for r.pos < len(r.text) && !strings.ContainsRune(" \t\r\n,:{}[]\"", rune(r.text[r.pos])) {
			r.pos++
		}
		r.pos = max(r.pos, min(from+1, len(r.text)))
		return r.text[from:r.pos]
	}
	for r.pos++; r.pos < len(r.text) && r.text[r.pos] != '"' && r.text[r.pos] != '\n'; r.pos++ {
		if r.text[r.pos] == '\\' {
			r.pos++
		}
	}
	r.pos = min(r.pos, len(r.text))
	if r.pos < len(r.text) && r.text[r.pos] == '"' {
		r.pos++
	}
	quoted := r.text[from:r.pos]
	var s string
	if json.Unmarshal([]byte(quoted), &s) != nil {
		s = strings.Trim(quoted, `"`)
	}
	return s
}

func (r *jsonReader) member(of *jsonNode, depth int) {
	key := r.word()
	if r.skip() == 0 {
		return
	}
	v := r.value(depth + 1)
	if of.fields == nil {
		of.fields = make(map[string]*jsonNode)
	}
	if of.fields[key] == nil {
		of.keys = append(of.keys, key)
		of.fields[key] = v
	}
	if of.line.Number == 0 {
		of.line = v.line
	}
}

func (r *jsonReader) value(depth int) *jsonNode {
	r.nodes++
	n := &jsonNode{}
	c := r.skip()
	n.line = parse.Line{Number: r.line}
	if c != '{' && c != '[' {
		if c != 0 && c != '}' && c != ']' {
			n.text = r.word()
		}
		return n
	}
	r.pos++
	for r.nodes < 400000 {
		switch next := r.skip(); {
		case next == 0:
			return n
		case next == '}' || next == ']':
			r.pos++
			return n
		case depth >= jsonMaxDepth:
			r.pos++
		case c == '{':
			r.member(n, depth)
		default:
			n.items = append(n.items, r.value(depth+1))
		}
	}
	return n
}

// jsonGPU notes what one object says about a GPU, be it amd-smi's or
// rocm-smi's.
func jsonGPU(s *parse.Sink, r *jsonReader, e *jsonNode) {
	if list := e.at("gpu_data"); list != nil { // amd-smi 26 and newer.
		for _, item := range list.items {
			jsonGPU(s, r, item)
		}
	}
	for _, key := range e.keys {
		if index, ok := strings.CutPrefix(key, "card"); ok {
			if n, err := strconv.Atoi(index); err == nil && n >= 0 && n < gpuMax {
				jsonCard(s, n, e.fields[key])
			}
		}
	}
	if system := e.at("system"); system != nil {
		jsonSystem(s, r, system)
	}
	index, err := strconv.Atoi(e.at("gpu").string())
	if err != nil || index < 0 || index >= gpuMax {
		return
	}
	report := smiReport{index: index, head: e.line}
	jsonFlatten(&report, "", e, 0)
	report.finish(s)
	links := e.at("links")
	if links == nil {
		links = e.at("link_metrics", "links")
	}
	if links == nil {
		return
	}
	own := jsonName(s, e)
	for _, link := range links.items[:min(len(links.items), gpuMax)] {
		p := r.pairs.of(own, jsonName(s, link), link.line)
		if p == nil {
			continue
		}
		said := func(key string) string {
			s.Watch("links.pairs["+p.A+" -> "+p.B+"]", p, link.at(key).place())
			return link.at(key).string()
		}
		gpuSetAccess(p, said("link_status"))
		gpuSetLink(p, said("link_type"))
		if n := gpuInt(said("weight")); n != nil {
			p.Weight = n
		}
		if n := gpuInt(said("num_hops")); n != nil {
			p.Hops = n
		}
		gpuSetAtomics(p, said("atomics"))
		p.DMA = gpuWorst(p.DMA, said("dma"))
		p.Bidirectional = gpuWorst(p.Bidirectional, said("bi_dir"))
	}
}

// jsonName is the name of the GPU that an object describes.
func jsonName(s *parse.Sink, e *jsonNode) string {
	address := facts.Address(e.at("bdf").string())
	if address == "" {
		address = facts.Address(e.at("bus", "bdf").string())
	}
	if address != "" {
		return address
	}
	index, err := strconv.Atoi(e.at("gpu").string())
	if err != nil || index < 0 || index >= gpuMax {
		return ""
	}
	return gpuAt(s, index, "", e.line).Address
}

// jsonFlatten writes an object's entries as those of the text form.
func jsonFlatten(r *smiReport, path string, n *jsonNode, depth int) {
	for _, key := range n.keys {
		child := n.fields[key]
		name := path + strings.ToUpper(strings.ReplaceAll(key, " ", "_"))
		switch text := child.string(); {
		case name == "RETIRED" && len(child.items) > 0:
			r.page(len(child.items), child.line)
		case text != "":
			r.set(name, text, child.place())
		case len(child.fields) > 0 && depth < 6:
			jsonFlatten(r, name+"/", child, depth+1)
		}
	}
}

// jsonCard notes what rocm-smi says about a card.
func jsonCard(s *parse.Sink, index int, n *jsonNode) {
	g := gpuAt(s, index, n.at("PCI Bus").string(), n.line)
	for _, key := range n.keys {
		s.Watch("gpus.devices["+g.Address+"]", g, n.fields[key].place())
		rocmSMISet(g, key, n.fields[key].string())
	}
}

// jsonSystem notes what rocm-smi says about all cards.
func jsonSystem(s *parse.Sink, r *jsonReader, n *jsonNode) {
	for _, key := range n.keys {
		value := n.fields[key]
		if key == "Driver version" {
			smiDriver(s, value.string(), value.line)
			continue
		}
		m := jsonTopology.FindStringSubmatch(key)
		if m == nil || parse.Number(m[2]) >= gpuMax || parse.Number(m[3]) >= gpuMax {
			continue
		}
		a, b := gpuAt(s, parse.Number(m[2]), "", value.line), gpuAt(s, parse.Number(m[3]), "", value.line)
		if p := r.pairs.of(a.Address, b.Address, value.line); p != nil {
			rocmSMICell(p, m[1], value.string())
		}
	}
}

// jsonTopology are rocm-smi's keys: "(Topology) Link type between DRM
// devices 0 and 1" (python_smi_tools/rocm_smi.py).
var jsonTopology = lazy.New(`^\(Topology\) (Weight|Hops|Link [Tt]ype|Link accessibility) between DRM devices (\d{1,3}) and (\d{1,3})$`)
