package amd

import (
	"cmp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// jsonKind is what amd-smi and rocm-smi print with --json. It may begin in the middle, as the lines before the first
// key hold brackets alone, and may be cut at its end.
var jsonKind = &parse.Kind{
	Name: "amd-smi-json", Title: "AMD GPUs, from amd-smi or rocm-smi --json", Command: "amd-smi topology --json", Gives: []string{"gpus", "links"},
	Anchors:  []string{`"gpu":`, `"gpu_data"`, `"card0"`, `"card1"`},
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
var jsonBegin = lazy.New(`^[\s\[{]*(?:"gpu_data"\s*:\s*\[[\s{]*)?(?:"gpu"\s*:\s*\d{1,3}\s*,(?s:.{0,200}?)"(?:bdf|uuid|asic|bus|usage|clock|links|link_accessibility|pcie|ecc|retired|partition|driver|vram|board|power)"\s*:|"card\d{1,3}"\s*:\s*\{)`)

// jsonMaxBytes bounds a document. amd-smi static of 64 partitions has 300 KiB.
const jsonMaxBytes = 4 << 20

// jsonBrackets is a line between the documents that remain where the brackets around all are left out.
var jsonBrackets = lazy.New(`^[\s\[\]{},]*$`)

func jsonRead(s *parse.Sink, in *parse.Lines) {
	for {
		in.While(func(l parse.Line) bool { return jsonBrackets.MatchString(l.Text) && strings.TrimSpace(l.Text) != "" })
		first, ok := in.Peek()
		if !ok || !parse.IsJSON(first.Text) {
			return
		}
		text := parse.JSONDocument(in)
		r := &jsonReader{sink: s, first: first.Number}
		document := parse.JSONNodes(parse.JSONClosed(text[:min(len(text), jsonMaxBytes)] + ","))
		r.gpu(document)
		for _, item := range parse.YAMLItems(document) {
			r.gpu(item)
		}
	}
}

// jsonReader reads a document that begins in a line.
type jsonReader struct {
	sink  *parse.Sink
	first int
}

// line is where a part of the document stands; no line if the document lacks it.
func (r *jsonReader) line(n *yaml.Node) parse.Line {
	if n == nil {
		return parse.Line{}
	}
	return parse.Line{Number: r.first + n.Line - 1}
}

// text is the text of a value and its line; of one with a unit, {"value": 32, "unit": "GT/s"}, both.
func (r *jsonReader) text(n *yaml.Node, keys ...string) (string, parse.Line) {
	n = parse.YAMLBelow(n, keys...)
	if value := parse.YAMLBelow(n, "value"); value != nil {
		return strings.TrimSpace(parse.YAMLText(value) + " " + parse.YAMLText(parse.YAMLBelow(n, "unit"))), r.line(value)
	}
	return parse.YAMLText(n), r.line(n)
}

// members calls take with each key of an object and its value. What the text makes an alias of YAML is no JSON.
func members(n *yaml.Node, take func(key string, value *yaml.Node)) {
	if n == nil || n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i+1].Kind != yaml.AliasNode {
			take(n.Content[i].Value, n.Content[i+1])
		}
	}
}

// gpu notes what one object says about a GPU, be it amd-smi's or rocm-smi's.
func (r *jsonReader) gpu(e *yaml.Node) {
	for _, item := range parse.YAMLItems(parse.YAMLBelow(e, "gpu_data")) { // amd-smi 26 and newer.
		r.gpu(item)
	}
	members(e, func(key string, value *yaml.Node) {
		if index, ok := strings.CutPrefix(key, "card"); ok {
			if n, err := strconv.Atoi(index); err == nil && n >= 0 && n < gpuMax {
				r.card(n, value)
			}
		}
	})
	index, ok := r.index(e)
	if !ok {
		return
	}
	report := smiReport{index: index, head: r.line(e)}
	r.flatten(&report, "", e, 0)
	report.finish(r.sink)
	links := cmp.Or(parse.YAMLBelow(e, "links"), parse.YAMLBelow(e, "link_metrics", "links"))
	own := r.name(e)
	items := parse.YAMLItems(links)
	for _, link := range items[:min(len(items), gpuMax)] {
		r.link(own, link)
	}
}

// index is the number of the GPU that an object describes.
func (r *jsonReader) index(e *yaml.Node) (index int, ok bool) {
	index, err := strconv.Atoi(parse.YAMLText(parse.YAMLBelow(e, "gpu")))
	return index, err == nil && index >= 0 && index < gpuMax
}

// link notes what a GPU says about its link to another one.
func (r *jsonReader) link(own string, link *yaml.Node) {
	p := gpuPair(r.sink, own, r.name(link), r.line(link))
	if p == nil {
		return
	}
	said := func(key string) string {
		text, l := r.text(link, key)
		r.sink.Watch("links.pairs["+p.A+" -> "+p.B+"]", p, l)
		return text
	}
	p.Accessible = gpuWorst(p.Accessible, said("link_status"))
	gpuSetLink(p, said("link_type"))
	p.Hops = cmp.Or(gpuInt(said("num_hops")), p.Hops)
}

// name is the name of the GPU that an object describes.
func (r *jsonReader) name(e *yaml.Node) string {
	own, _ := r.text(e, "bdf")
	ofBus, _ := r.text(e, "bus", "bdf")
	if address := cmp.Or(facts.Address(own), facts.Address(ofBus)); address != "" {
		return address
	}
	index, ok := r.index(e)
	if !ok {
		return ""
	}
	return gpuAt(r.sink, index, "", r.line(e)).Address
}

// flatten writes an object's entries as those of the text form.
func (r *jsonReader) flatten(report *smiReport, path string, n *yaml.Node, depth int) {
	members(n, func(key string, value *yaml.Node) {
		name := path + strings.ToUpper(strings.ReplaceAll(key, " ", "_"))
		switch text, l := r.text(value); {
		case name == "RETIRED" && value.Kind == yaml.SequenceNode && len(value.Content) > 0:
			report.page(len(value.Content), r.line(value))
		case text != "":
			report.set(name, text, l)
		case depth < 6:
			r.flatten(report, name+"/", value, depth+1)
		}
	})
}

// card notes what rocm-smi says about a card.
func (r *jsonReader) card(index int, n *yaml.Node) {
	address, _ := r.text(n, "PCI Bus")
	g := gpuAt(r.sink, index, address, r.line(n))
	members(n, func(key string, value *yaml.Node) {
		text, l := r.text(value)
		r.sink.Watch("gpus.devices["+g.Address+"]", g, l)
		rocmSMISet(g, key, text)
	})
}
