package topology

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// Drawing is the picture as shapes, in pixels from the left upper corner.
type Drawing struct {
	Width, Height int
	Frames        []Box
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
	tileHeight   = 62
	headHeight   = 44
	stubHeight   = 44 // Of a link that says how fast it is.
	bareHeight   = 18 // Of one of which no speed is known.
	gap          = 12
	gutter       = 16 // Left of several rows: the rail to them runs in it.
	inset        = 10 // Between a frame, or a box, and what is in it.
	attach       = 18 // From the left edge of a box to the link above it.
	lineHeight   = 16
	badgeSpace   = 20
	BadgeRadius  = 8
	charWidth    = 7.2 // A letter of 11 pixels in a wide font (DejaVu Sans: 0.6 em on average).
	joinWidth    = 6.2 // The same in the sentence of a join, which has more narrow letters than an address.
	boldWidth    = 8.4 // One of 12 pixels, bold.
	leastJoin    = 360 // A bar of one line or two.
	narrowColumn = 400 // Widths below it take two tiles in a row, which are wider for it.
)

// Draw lays the picture out in a width. A device stands below the bridge that it hangs
// at; what does not fit beside each other goes into further rows.
func (m *Machine) Draw(width int) *Drawing {
	p := &painter{machine: m, d: &Drawing{Width: width}, tile: 124}
	if width < narrowColumn {
		p.tile = (width - 3*gutter - 2*inset - gap) / 2 // Beside a rail on each of three levels.
	}
	root := p.measure(m.Root, width)
	root.align()
	across := max(root.w, min(width, leastJoin)) // Bridges below bridges may need more than width.
	p.d.Width = root.w
	if len(m.Joins) > 0 {
		p.d.Width = across
	}
	p.paint(root, 0, 0)
	y := root.h + gap
	for _, j := range m.Joins {
		y += p.join(j, y, across) + gap
	}
	p.d.Height = y - gap
	return p.d
}

// painter draws one picture.
type painter struct {
	machine *Machine
	d       *Drawing
	tile    int // The width of a device.
}

// block is a node with what is below it, measured.
type block struct {
	*Node
	w, h int
	rows [][]*block
	// indent is where rows begin.
	indent int
}

// measure finds out how large a node is that may be so wide.
func (p *painter) measure(n *Node, width int) *block {
	b := &block{Node: n, w: p.tile, h: tileHeight}
	if len(n.Below) == 0 {
		return b
	}
	inner := width
	if n.Kind == NUMANode {
		b.indent, inner = inset, width-2*inset
	}
	b.rows = p.fill(n.Below, inner)
	if len(b.rows) > 1 {
		b.indent += gutter
		b.rows = p.fill(n.Below, inner-gutter)
	}
	b.h = headHeight
	for _, row := range b.rows {
		right, height := b.indent, 0
		for _, child := range row {
			right += child.w + gap
			height = max(height, child.h)
		}
		b.w = max(b.w, right-gap)
		b.h += stubOf(row) + height
	}
	if n.Kind == NUMANode {
		b.w, b.h = b.w+inset, b.h+inset
	}
	return b
}

// stubOf is the height of the links above a row.
func stubOf(row []*block) int {
	for _, b := range row {
		if b.Up != nil && (b.Up.Speed != "" || len(b.Up.Faults) > 0) {
			return stubHeight
		}
	}
	return bareHeight
}

// align makes the NUMA nodes below each other equally wide.
func (b *block) align() {
	widest := 0
	for _, row := range b.rows {
		if len(row) == 1 && row[0].Kind == NUMANode {
			widest = max(widest, row[0].w)
		}
	}
	for _, row := range b.rows {
		if len(row) == 1 && row[0].Kind == NUMANode {
			row[0].w = widest
		}
	}
}

// fill puts nodes into rows of at most that width. Rows of one size are equally long
// where that takes no more of them: four and four, not six and two.
func (p *painter) fill(nodes []*Node, width int) [][]*block {
	var blocks []*block
	for _, n := range nodes {
		blocks = append(blocks, p.measure(n, width))
	}
	rows := rowsIn(blocks, width, len(blocks))
	if even := rowsIn(blocks, width, (len(blocks)+len(rows)-1)/len(rows)); len(even) == len(rows) {
		return even
	}
	return rows
}

// rowsIn puts blocks into rows of at most that width and number.
func rowsIn(blocks []*block, width, most int) [][]*block {
	var rows [][]*block
	used := width
	for _, b := range blocks {
		if used += gap + b.w; used > width || len(rows[len(rows)-1]) == most {
			rows, used = append(rows, nil), b.w
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], b)
	}
	return rows
}

// paint draws a block at a place.
func (p *painter) paint(b *block, x, y int) {
	p.box(b, x, y)
	if b.Kind == NUMANode {
		p.d.Frames = append(p.d.Frames, Box{X: x, Y: y, W: b.w, H: b.h, Class: "frame"})
	}
	bottom := y + headHeight
	for i, row := range b.rows {
		previous := bottom
		if i > 0 {
			rail := x + b.indent - gutter/2
			last := row[len(row)-1]
			end := x + b.indent + attach
			for _, child := range row {
				if child != last {
					end += child.w + gap
				}
			}
			p.d.Strokes = append(p.d.Strokes,
				Stroke{X1: rail, Y1: y + headHeight, X2: rail, Y2: bottom + gap/2, Class: "rail"},
				Stroke{X1: rail, Y1: bottom + gap/2, X2: end, Y2: bottom + gap/2, Class: "rail"})
			bottom += gap / 2
		}
		left, height := x+b.indent, 0
		top := previous + stubOf(row)
		for _, child := range row {
			p.link(child, left+attach, bottom, top)
			p.paint(child, left, top)
			left += child.w + gap
			height = max(height, child.h)
		}
		bottom = top + height
	}
}

// box draws a node itself: its name, its address, and what else is known.
func (p *painter) box(b *block, x, y int) {
	height := headHeight
	if len(b.rows) == 0 {
		height = tileHeight
	}
	d := p.d
	d.Boxes = append(d.Boxes, Box{
		X: x, Y: y, W: b.w, H: height, Class: class("box", string(b.Kind), p.machine.worst(b.Faults), joined(b.Node)), Title: b.title(),
	})
	room := b.w - 2*inset
	second, third := b.Address, b.Detail
	if second == "" || strings.HasPrefix(second, "GPU") {
		second, third = b.Detail, ""
	}
	if b.Links != "" {
		third = b.Links
	}
	kind := "mono"
	if second != b.Address {
		kind = "note"
	}
	p.label(x+inset, y+19, "name", b.Name, room-badgeSpace*len(b.Faults), boldWidth)
	p.label(x+inset, y+19+lineHeight, kind, second, room, charWidth)
	if len(b.rows) == 0 {
		p.label(x+inset, y+19+2*lineHeight, "note", third, room, charWidth)
	}
	for i, number := range b.Faults {
		p.badge(x+b.w-inset-BadgeRadius/2-badgeSpace*i, y+15, number)
	}
}

// joined is a class for GPUs that are joined beside PCIe.
func joined(n *Node) string {
	if n.Links == "" {
		return ""
	}
	return "joined"
}

// link draws the way from a node up to the one above it.
func (p *painter) link(b *block, x, top, bottom int) {
	l := b.Up
	if l == nil {
		p.d.Strokes = append(p.d.Strokes, Stroke{X1: x, Y1: top, X2: x, Y2: bottom, Class: "rail"})
		return
	}
	short := ""
	if l.Short {
		short = "short"
	}
	p.d.Strokes = append(p.d.Strokes, Stroke{X1: x, Y1: top, X2: x, Y2: bottom, Class: class("link", p.machine.worst(l.Faults), short)})
	text := x + 8
	for i, number := range l.Faults {
		p.badge(x+badgeSpace*i, bottom-stubHeight/2, number)
		text = x + badgeSpace*i + BadgeRadius + 5
	}
	room := max(p.tile, b.w) + gap - 4 - (text - x) - attach/2
	p.label(text, bottom-24, "speed", l.Speed, room, charWidth)
	p.label(text, bottom-10, "rate", l.Rate, room, charWidth)
}

// join draws a bar that says which GPUs are joined, and returns its height.
func (p *painter) join(j Join, y, width int) int {
	said := lines.Wrap(j.String(), int(float64(width-2*inset)/joinWidth))
	height := len(said)*lineHeight + inset + 4
	p.d.Boxes = append(p.d.Boxes, Box{Y: y, W: width, H: height, Class: "box join", Title: j.String()})
	for i, line := range said {
		p.d.Labels = append(p.d.Labels, Label{X: inset, Y: y + inset + 8 + i*lineHeight, Class: "note", Text: line})
	}
	return height
}

// label writes a text as far as there is room for it.
func (p *painter) label(x, y int, kind, text string, room int, letter float64) {
	if text == "" {
		return
	}
	if most := int(float64(room) / letter); utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:max(most-1, 1)]) + "…"
	}
	p.d.Labels = append(p.d.Labels, Label{X: x, Y: y, Class: kind, Text: text})
}

func (p *painter) badge(x, y, number int) {
	for _, f := range p.machine.Faults {
		if f.Number == number {
			p.d.Badges = append(p.d.Badges, Badge{X: x, Y: y, Fault: f})
		}
	}
}

// title is all that is known of a node.
func (n *Node) title() string {
	parts := []string{n.Name}
	for _, s := range []string{n.Address, n.Detail, n.Links} {
		if s != "" && s != n.Name {
			parts = append(parts, s)
		}
	}
	if n.Up != nil && n.Up.Speed != "" {
		parts = append(parts, fmt.Sprintf("link %s, %s", n.Up.Speed, n.Up.Rate))
	}
	return strings.Join(parts, ", ")
}

// class joins the names of classes that are not empty.
func class(names ...string) string {
	return strings.Join(strings.Fields(strings.Join(names, " ")), " ")
}
