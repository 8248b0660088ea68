package amd

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/benchmark"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// smiTopologyKind are the tables of amd-smi topology and the head of that of amd-smi xgmi: GPUs are named by their
// addresses, each row says how one reaches the others (amdsmi_cli/amdsmi_commands.py, topology).
var smiTopologyKind = &parse.Kind{
	Name: "amd-smi-topology", Title: "links between AMD GPUs, from amd-smi topology", Command: "amd-smi topology", Gives: []string{"gpus", "links"},
	Anchors: []string{"ACCESS TABLE", "WEIGHT TABLE", "HOPS TABLE", "LINK TYPE TABLE", "NUMA BW TABLE", "COHERANCY TABLE", "ATOMICS TABLE", "DMA TABLE", "DIRECTIONAL TABLE"},
	Begins:  parse.BeginsLike(smiTopologyTitle),
	Read: func(s *parse.Sink, in *parse.Lines) {
		readMatrix(s, in, smiTopologyTitle, func(column int, name string, l parse.Line) string {
			address := facts.Address(name)
			if address != "" {
				gpuAt(s, column, address, l)
			}
			return address
		})
	},
}

var smiTopologyTitle = lazy.New(`^\s*([A-Z][A-Z -]*) TABLE:?\s*$`)

// readMatrix takes one matrix: its title, the names above its columns and its rows. gpu gives the GPU of the name
// above a column; it is empty for another word.
func readMatrix(s *parse.Sink, in *parse.Lines, title *lazy.Regexp, gpu func(column int, name string, l parse.Line) string) {
	first, _ := in.Next()
	head, _ := in.Peek()
	table, gpus := title.FindStringSubmatch(first.Text)[1], make(map[string]string)
	for i, name := range strings.Fields(head.Text) {
		if i < gpuMax {
			gpus[name] = gpu(i, name, head)
		}
	}
	benchmark.Matrix(in, func(name string) bool { return gpus[name] != "" }, func(row, column, cell string, l parse.Line) {
		if p := gpuPair(s, gpus[row], gpus[column], l); p != nil {
			setCell(p, table, cell)
		}
	})
}

// setCell notes what one cell of a matrix says about a pair.
func setCell(p *facts.Pair, table, cell string) {
	switch words := strings.Fields(strings.ToLower(table)); words[len(words)-1] {
	case "access", "accessibility":
		p.Accessible = gpuWorst(p.Accessible, cell)
	case "hops":
		p.Hops = gpuInt(cell)
	case "type":
		gpuSetLink(p, cell)
	}
}
