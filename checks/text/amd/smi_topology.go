package amd

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// smiTopologyKind are the tables of amd-smi topology and the head of that of amd-smi xgmi: GPUs are named by their
// addresses, each row says how one reaches the others (amdsmi_cli/amdsmi_commands.py, topology).
var smiTopologyKind = &parse.Kind{
	Name: "amd-smi-topology", Title: "links between AMD GPUs, from amd-smi topology", Command: "amd-smi topology", Gives: []string{"gpus", "links"},
	Anchors: []string{"ACCESS TABLE", "WEIGHT TABLE", "HOPS TABLE", "LINK TYPE TABLE", "NUMA BW TABLE", "COHERANCY TABLE", "ATOMICS TABLE", "DMA TABLE", "DIRECTIONAL TABLE"},
	Begins:  parse.BeginsLike(smiTopologyTitle),
	Read: func(s *parse.Sink, in *parse.Lines) {
		readMatrix(s, in, smiTopologyTitle, smiTopologyNames, func(column int, text string, l parse.Line) string {
			address := facts.Address(text)
			if column >= 0 {
				gpuAt(s, column, address, l)
			}
			return address
		})
	},
}

var (
	smiTopologyTitle = lazy.New(`^\s*([A-Z][A-Z -]*) TABLE:?\s*$`)
	smiTopologyNames = lazy.New(`^\s*(?:[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\s*)+$`)
)

// readMatrix takes one matrix: its title, the names above its columns and its rows. gpu gives the GPU
// of a name, at the head of a column, or, for -1, of a row; it is empty for another word.
func readMatrix(s *parse.Sink, in *parse.Lines, title, names *lazy.Regexp, gpu func(column int, text string, l parse.Line) string) {
	first, _ := in.Next()
	table := title.FindStringSubmatch(first.Text)[1]
	head, ok := in.Peek()
	if !ok || !names.MatchString(head.Text) {
		return
	}
	in.Next()
	columns := strings.Fields(head.Text)
	columns = columns[:min(len(columns), gpuMax)]
	for i, name := range columns {
		columns[i] = gpu(i, name, head)
	}
	for range columns {
		l, ok := in.Peek()
		cells := strings.Fields(l.Text)
		if !ok || len(cells) < 2 {
			return
		}
		row := gpu(-1, cells[0], l)
		if row == "" {
			return
		}
		in.Next()
		for i, cell := range cells[1:min(len(cells), len(columns)+1)] {
			if p := gpuPair(s, row, columns[i], l); p != nil {
				setCell(p, table, cell)
			}
		}
	}
}

// setCell notes what one cell of a matrix says about a pair.
func setCell(p *facts.Pair, table, cell string) {
	switch words := strings.Fields(strings.ToLower(table)); words[len(words)-1] {
	case "access", "accessibility":
		p.Accessible = gpuWorst(p.Accessible, cell)
	case "weight":
		p.Weight = gpuInt(cell)
	case "hops":
		p.Hops = gpuInt(cell)
	case "type":
		gpuSetLink(p, cell)
	case "atomics":
		gpuSetAtomics(p, cell)
	case "directional":
		p.Bidirectional = gpuWorst(p.Bidirectional, cell)
	}
}
