package topology

import (
	"cmp"
	"slices"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Picture is a machine as a page shows it.
type Picture struct {
	// Joins are the links beside PCIe, and Fabric the GPUs where one of them joins all, each to each.
	Joins  []Join
	Fabric []*Node
	// Tree is the machine. Beside a fabric it has only the way to what is wrong, and is nil where nothing is.
	Tree *Node
}

// Picture draws the machine.
func (m *Machine) Picture() *Picture {
	gpus := m.Root.all(GPU)
	isFabric := func(j Join) bool { return j.Whole && len(j.GPUs) > 2 && len(j.GPUs) == len(gpus) }
	i := slices.IndexFunc(m.Joins, isFabric)
	if i < 0 {
		return &Picture{Joins: m.Joins, Tree: m.Root}
	}
	p := &Picture{Joins: m.Joins[i : i+1], Fabric: gpus}
	if m.Root.hasFaults() {
		p.Tree = m.Root.toFaults()
	}
	return p
}

// Class is the kind of the node and the worst severity of what is wrong in it, LinkClass the same of the link above it.
func (n *Node) Class() string {
	return lines.Joined(" ", "node", string(n.Kind), worst(n.Faults), map[bool]string{true: "joined"}[n.Links != ""])
}

// LinkClass is empty where nothing is known of the link.
func (n *Node) LinkClass() string {
	if n.Up == nil {
		return ""
	}
	return lines.Joined(" ", "link", worst(n.Up.Faults), map[bool]string{true: "short"}[n.Up.Short])
}

func worst(all []Fault) string {
	if len(all) == 0 {
		return ""
	}
	return slices.MinFunc(all, func(a, b Fault) int {
		return cmp.Compare(rules.Severity(a.Severity).Rank(), rules.Severity(b.Severity).Rank())
	}).Severity
}

// Marks are the faults of the node and of the link above it.
func (n *Node) Marks() []Fault {
	all := slices.Clone(n.Faults)
	if n.Up != nil {
		all = append(all, n.Up.Faults...)
	}
	slices.SortFunc(all, func(a, b Fault) int { return cmp.Compare(a.Number, b.Number) })
	return slices.CompactFunc(all, func(a, b Fault) bool { return a.Number == b.Number })
}

func (n *Node) all(kind Kind) (found []*Node) {
	if n.Kind == kind {
		found = append(found, n)
	}
	for _, child := range n.Below {
		found = append(found, child.all(kind)...)
	}
	return found
}

// hasFaults reports whether something is wrong at a node, above it, or below it.
func (n *Node) hasFaults() bool {
	return len(n.Marks()) > 0 || slices.ContainsFunc(n.Below, (*Node).hasFaults)
}

// toFaults is a node with those below it on the way to what is wrong.
func (n *Node) toFaults() *Node {
	out := *n
	out.Below = lines.Map(lines.Filter(n.Below, (*Node).hasFaults), (*Node).toFaults)
	return &out
}

// Link is the link above a node: "5.0 x16, 63 GB/s".
func (n *Node) Link() string {
	if n.Up == nil {
		return ""
	}
	return lines.Joined(", ", n.Up.Speed, n.Up.Rate)
}

// More is what else is known of a node.
func (n *Node) More() string { return lines.Joined(", ", n.Detail, n.Links) }

// Row is one line of the picture as a tree.
type Row struct {
	*Node
	// Lead stands before the node, Under before further lines that belong to it.
	Lead, Under string
}

type strokes struct{ tee, corner, pass, none string }

var (
	boxes = strokes{"├─ ", "└─ ", "│  ", "   "}
	ascii = strokes{"|- ", "`- ", "|  ", "   "}
)

// Rows lists the nodes from top to bottom, each with the lines before it. With plain the lines are of ASCII.
func (m *Machine) Rows(plain bool) []Row {
	s := boxes
	if plain {
		s = ascii
	}
	return rowsOf(nil, m.Root, "", "", s)
}

func rowsOf(all []Row, n *Node, lead, under string, s strokes) []Row {
	row := Row{Node: n, Lead: lead, Under: under + s.none}
	if len(n.Below) > 0 {
		row.Under = under + s.pass
	}
	all = append(all, row)
	for i, child := range n.Below {
		if i == len(n.Below)-1 {
			all = rowsOf(all, child, under+s.corner, under+s.none, s)
		} else {
			all = rowsOf(all, child, under+s.tee, under+s.pass, s)
		}
	}
	return all
}
