package topology

import (
	"slices"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// Picture is a machine as a page shows it.
type Picture struct {
	// Joins are the links beside PCIe, and Fabric the GPUs where one of them joins all, each to each.
	Joins  []Join
	Fabric []*Shape
	// Tree is the machine. Beside a fabric it has only the way to what is wrong, and is nil where nothing is.
	Tree *Shape
}

// Shape is a node of a picture.
type Shape struct {
	*Node
	// Class is the kind of the node and the worst severity of what is wrong in it, LinkClass the same of the link above it.
	Class, LinkClass string
	// Marks are the faults of the node and of the link above it.
	Marks []Fault
	// NICs are those near a GPU.
	NICs string
	// Shapes are those below it.
	Shapes []*Shape
}

// Picture draws the machine. Where a fabric joins all GPUs, they stand in it, and of the tree there is only the way to what is wrong.
func (m *Machine) Picture() *Picture {
	gpus := m.Root.all(GPU)
	isFabric := func(j Join) bool { return j.Whole && len(j.GPUs) > 2 && len(j.GPUs) == len(gpus) }
	i := slices.IndexFunc(m.Joins, isFabric)
	if i < 0 {
		return &Picture{Joins: m.Joins, Tree: m.shape(m.Root, func(*Node) bool { return true })}
	}
	p := &Picture{Joins: m.Joins[i : i+1]}
	for _, n := range gpus {
		p.Fabric = append(p.Fabric, m.shape(n, (*Node).hasFaults))
	}
	if m.Root.hasFaults() {
		p.Tree = m.shape(m.Root, (*Node).hasFaults)
	}
	return p
}

// shape draws a node, and those below it that are shown.
func (m *Machine) shape(n *Node, shown func(*Node) bool) *Shape {
	s := &Shape{Node: n, Class: lines.Joined(" ", "node", string(n.Kind), m.worst(n.Faults), n.joined())}
	faults := n.Faults
	if n.Up != nil {
		s.LinkClass = lines.Joined(" ", "link", m.worst(n.Up.Faults), map[bool]string{true: "short"}[n.Up.Short])
		faults = slices.Concat(faults, n.Up.Faults)
	}
	for _, f := range m.Faults {
		if slices.Contains(faults, f.Number) {
			s.Marks = append(s.Marks, f)
		}
	}
	for _, near := range m.Near {
		if near.GPU == n.Name {
			s.NICs = near.NICs
		}
	}
	for _, child := range n.Below {
		if shown(child) {
			s.Shapes = append(s.Shapes, m.shape(child, shown))
		}
	}
	return s
}

// joined is the class of a GPU that is joined to others beside PCIe.
func (n *Node) joined() string { return map[bool]string{true: "joined"}[n.Links != ""] }

// all are the nodes of a kind, from a node on.
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
	return len(n.Faults) > 0 || n.Up != nil && len(n.Up.Faults) > 0 || slices.ContainsFunc(n.Below, (*Node).hasFaults)
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
