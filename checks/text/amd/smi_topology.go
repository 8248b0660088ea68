package amd

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// smiTopologyKind are the tables of amd-smi topology and the head of that
// of amd-smi xgmi: GPUs are named by their addresses, each row says how one
// reaches the others (amdsmi_cli/amdsmi_commands.py, topology).
var smiTopologyKind = &parse.Kind{
	Name: "amd-smi-topology", Title: "links between AMD GPUs, from amd-smi topology", Command: "amd-smi topology", Gives: []string{"gpus", "links"},
	Anchors: []string{"ACCESS TABLE", "WEIGHT TABLE", "HOPS TABLE", "LINK TYPE TABLE", "NUMA BW TABLE", "COHERANCY TABLE", "ATOMICS TABLE", "DMA TABLE", "DIRECTIONAL TABLE"},
	Begins:  parse.BeginsLike(smiTopologyTitle),
	Read:    smiTopologyRead,
}

var (
	smiTopologyTitle = lazy.New(`^\s*([A-Z][A-Z -]*) TABLE:?\s*$`)
	smiTopologyNames = lazy.New(`^\s*(?:[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\s*)+$`)
)

// smiTopologyRead takes one table: its title, the names above its columns
// and its rows.
func smiTopologyRead(s *parse.Sink, in *parse.Lines) {
	title, _ := in.Next()
	table := smiTopologyTitle.FindStringSubmatch(title.Text)[1]
	head, ok := in.Peek()
	if !ok || !smiTopologyNames.MatchString(head.Text) {
		return
	}
	in.Next()
	columns := strings.Fields(head.Text)
	columns = columns[:min(len(columns), gpuMax)]
	for i, name := range columns {
		columns[i] = facts.Address(name)
		gpuAt(s, i, columns[i], head)
	}
	for range columns {
		l, ok := in.Peek()
		if !ok {
			return
		}
		cells := strings.Fields(l.Text)
		if len(cells) < 2 || facts.Address(cells[0]) == "" {
			return
		}
		in.Next()
		row := facts.Address(cells[0])
		for i, cell := range cells[1:min(len(cells), len(columns)+1)] {
			if p := gpuPair(s, row, columns[i], l); p != nil {
				smiTopologyCell(p, table, cell)
			}
		}
	}
}

// smiTopologyCell notes what one cell says about a pair.
func smiTopologyCell(p *facts.Pair, table, cell string) {
	switch {
	case strings.HasSuffix(table, "ACCESS"):
		gpuSetAccess(p, cell)
	case strings.HasSuffix(table, "WEIGHT"):
		p.Weight = gpuInt(cell)
	case strings.HasSuffix(table, "HOPS"):
		p.Hops = gpuInt(cell)
	case strings.HasSuffix(table, "LINK TYPE"):
		gpuSetLink(p, cell)
	case strings.HasSuffix(table, "ATOMICS"):
		gpuSetAtomics(p, cell)
	case strings.HasSuffix(table, "DMA"):
		p.DMA = gpuWorst(p.DMA, cell)
	case strings.HasSuffix(table, "DIRECTIONAL"):
		p.Bidirectional = gpuWorst(p.Bidirectional, cell)
	}
}
