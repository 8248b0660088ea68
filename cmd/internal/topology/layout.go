package topology

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// Drawing is the picture as shapes, in pixels from the left upper corner.
type Drawing struct {
	Width, Height int
	Strokes       []Stroke
	Boxes         []Box
	Labels        []Label
	Badges        []Badge
}

// Box is a rectangle. Class is the kind of the node, and the severity of the worst
// fault in it.
type Box struct {
	X, Y, W, H int
	Class      string
	// Title is all that is known of it; its labels may be cut.
	Title string
}

// Stroke is a line. Class is "link" or "rail", the width of the link, and the
// severity of the worst fault on it.
type Stroke struct {
	X1, Y1, X2, Y2 int
	Class          string
}

// Label is a text that begins at X and stands on Y.
type Label struct {
	X, Y  int
	Class string
	Text  string
}

// Badge marks a fault: a disk around X and Y with the number of the finding.
type Badge struct {
	X, Y int
	Fault
}

// The measures of the picture in pixels. Texts are of 12 and 11 pixels in the page's
// style sheet.
const (
	gap          = 12
	inset        = 10 // Between the edge of a box and what is in it.
	lineHeight   = 16
	barGap       = 4
	badgeSpace   = 20
	BadgeRadius  = 8
	charWidth    = 7.2 // A letter of 11 pixels in a wide font (DejaVu Sans: 0.6 em on average).
	joinWidth    = 6.2 // The same in the sentence of a join, which has more narrow letters than an address.
	boldWidth    = 8.4 // One of 12 pixels, bold.
	linkColumn   = 400 // Where links stand beside the names.
	noteColumn   = 620
	narrowColumn = 600 // Narrower pictures have links below the names, and two GPUs in a row.
)

// painter draws one picture.
type painter struct {
	*Drawing
	machine  *Machine
	isNarrow bool
}

// Draw lays the picture out in a width: the tree as bars below each other. Where a fabric joins all GPUs, they stand below it, and of the tree there
// is only the way to what is wrong.
func (m *Machine) Draw(width int) *Drawing {
	p := &painter{Drawing: &Drawing{Width: width}, machine: m, isNarrow: width < narrowColumn}
	gpus := m.Root.all(GPU)
	isFabric := func(j Join) bool { return j.Whole && len(j.GPUs) > 2 && len(j.GPUs) == len(gpus) }
	if i := slices.IndexFunc(m.Joins, isFabric); i >= 0 {
		p.fabric(m.Joins[i], gpus)
		p.tree(m.Root, 0, 0, (*Node).hasFaults)
		p.sentence("note", "PCIe without a problem is not drawn. The topology as text has all of it.", joinWidth)
	} else {
		p.tree(m.Root, 0, 0, func(*Node) bool { return true })
		for _, j := range m.Joins {
			p.join(j)
		}
	}
	p.Height -= barGap
	return p.Drawing
}

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

// tree draws a node as a bar, and below it those below it that are shown. It hangs at a rail that begins at a height.
func (p *painter) tree(n *Node, depth, from int, shown func(*Node) bool) {
	if !shown(n) {
		return
	}
	indent := 24
	if p.isNarrow {
		indent = 14
	}
	x, y, height := depth*indent, p.Height, lineHeight+inset
	link, address := n.link(), n.Address
	if strings.HasPrefix(address, "GPU") {
		address = ""
	}
	notes := strings.Join(filled(n.Detail, n.Links), ", ")
	if second := strings.Join(filled(link, notes), ", "); p.isNarrow && second != "" {
		height += lineHeight
		p.label(x+inset, y+17+lineHeight, "note", second, p.Width-x-2*inset, charWidth)
	}
	if depth > 0 {
		rail := x - indent/2
		class, middle := "rail", y+height/2
		if n.Up != nil {
			class = p.linkClass(n.Up)
		}
		p.Strokes = append(p.Strokes, Stroke{rail, from, rail, middle, "rail"}, Stroke{rail, middle, x, middle, class})
	}
	faults := n.marks()
	p.Boxes = append(p.Boxes, Box{X: x, Y: y, W: p.Width - x, H: height, Class: p.boxClass(n, n.Faults), Title: n.title()})
	room := p.Width - x - 2*inset - badgeSpace*len(faults)
	p.label(x+inset, y+17, "name", n.Name, room, boldWidth)
	beside := inset + int(boldWidth*float64(utf8.RuneCountInString(n.Name)))
	if p.isNarrow || link == "" && address == "" {
		p.label(x+beside+inset, y+17, "mono", address, room-beside, charWidth)
	} else {
		p.label(x+beside+inset, y+17, "mono", address, linkColumn-x-beside-inset, charWidth)
		p.label(linkColumn, y+17, "speed", link, noteColumn-linkColumn, charWidth)
	}
	if !p.isNarrow {
		p.label(noteColumn, y+17, "note", notes, p.Width-noteColumn-inset-badgeSpace*len(faults), charWidth)
	}
	p.badges(p.Width-inset, y+inset+3, faults)
	p.Height += height + barGap
	for _, child := range n.Below {
		p.tree(child, depth+1, y+height, shown)
	}
}

// fabric draws what joins all GPUs, and the GPUs below it.
func (p *painter) fabric(j Join, gpus []*Node) {
	p.join(j)
	bottom, inRow := p.Height-barGap, 4
	if p.isNarrow {
		inRow = 2
	}
	near := map[string]string{}
	for _, n := range p.machine.Near {
		near[n.GPU] = n.NICs
	}
	w, height := (p.Width-inRow*gap)/inRow, 4*lineHeight+inset
	for i, n := range gpus {
		x, y := i%inRow*(w+gap), bottom+gap*3/2+i/inRow*(height+gap*3/2)
		middle, beside, above := x+w/2, x+w+gap/2, y-gap/2
		class := "link joined"
		if i < inRow {
			p.Strokes = append(p.Strokes, Stroke{middle, bottom, middle, y, class})
		} else {
			p.Strokes = append(p.Strokes, Stroke{beside, bottom, beside, above, class}, Stroke{beside, above, middle, above, class}, Stroke{middle, above, middle, y, class})
		}
		faults := n.marks()
		title := strings.Join(filled(n.title(), near[n.Name]), ", NIC ")
		p.Boxes = append(p.Boxes, Box{X: x, Y: y, W: w, H: height, Class: p.boxClass(n, faults), Title: title})
		room := w - 2*inset
		p.label(x+inset, y+19, "name", n.Name, room-badgeSpace*len(faults), boldWidth)
		for k, text := range filled(n.Address, strings.Join(filled(n.Links, n.Detail), ", "), near[n.Name]) {
			p.label(x+inset, y+19+(k+1)*lineHeight, map[bool]string{true: "mono", false: "note"}[text == n.Address], text, room, charWidth)
		}
		p.badges(x+w-inset, y+inset+5, faults)
		p.Height = y + height + gap
	}
}

// join draws a bar that says which GPUs are joined.
func (p *painter) join(j Join) {
	y := p.Height + inset
	p.Height += inset
	p.sentence("note", j.String(), joinWidth)
	p.Height += inset
	p.Boxes = append(p.Boxes, Box{Y: y - inset, W: p.Width, H: p.Height - barGap - y + inset, Class: "box join", Title: j.String()})
}

// sentence writes a text over lines.
func (p *painter) sentence(kind, text string, letter float64) {
	for _, l := range lines.Wrap(text, int(float64(p.Width-2*inset)/letter)) {
		p.Labels = append(p.Labels, Label{X: inset, Y: p.Height + inset, Class: kind, Text: l})
		p.Height += lineHeight
	}
}

// marks are the faults at a node and on the link above it.
func (n *Node) marks() []int {
	all := slices.Clone(n.Faults)
	if n.Up != nil {
		all = append(all, n.Up.Faults...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// link is the link above a node: "5.0 x16, 63 GB/s".
func (n *Node) link() string {
	if n.Up == nil {
		return ""
	}
	return strings.Join(filled(n.Up.Speed, n.Up.Rate), ", ")
}

// title is all that is known of a node.
func (n *Node) title() string {
	link := n.link()
	if link != "" {
		link = "link " + link
	}
	return strings.Join(slices.Compact(filled(n.Name, n.Address, n.Detail, n.Links, link)), ", ")
}

// filled are the texts that are not empty.
func filled(all ...string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// boxClass are the classes of a node with faults, linkClass those of a link.
func (p *painter) boxClass(n *Node, faults []int) string {
	joined := ""
	if n.Links != "" {
		joined = "joined"
	}
	return strings.Join(filled("box", string(n.Kind), p.machine.worst(faults), joined), " ")
}

func (p *painter) linkClass(l *Link) string {
	short := ""
	if l.Short {
		short = "short"
	}
	return strings.Join(filled("link", p.machine.worst(l.Faults), short), " ")
}

// label writes a text as far as there is room for it.
func (p *painter) label(x, y int, kind, text string, room int, letter float64) {
	if text == "" {
		return
	}
	if most := int(float64(room) / letter); utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:max(most-1, 1)]) + "…"
	}
	p.Labels = append(p.Labels, Label{X: x, Y: y, Class: kind, Text: text})
}

// badges mark faults, from the right.
func (p *painter) badges(right, y int, numbers []int) {
	for i, number := range numbers {
		for _, f := range p.machine.Faults {
			if f.Number == number {
				p.Badges = append(p.Badges, Badge{X: right - BadgeRadius/2 - badgeSpace*i, Y: y, Fault: f})
			}
		}
	}
}
