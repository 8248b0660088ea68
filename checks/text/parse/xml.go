package parse

import (
	"encoding/xml"
	"strings"
)

// The bounds of an XML document. nvidia-smi -q -x of 72 GPUs takes 2 MB.
const (
	maxXMLBytes = 32 << 20
	maxXMLNodes = 400_000
	maxXMLDepth = 64
	maxXMLText  = 4096
)

// XMLNode is an element of an XML document.
type XMLNode struct {
	Name       string
	Attributes map[string]string
	// Text is what stands before its end, behind the elements in it.
	Text string
	// Line is the one in which it begins.
	Line  Line
	Nodes []*XMLNode
}

// XMLDocument takes the lines of an XML document, up to that which holds its end, and returns
// a node around its elements. whole is false where the text ends before.
func XMLDocument(in *Lines, end string) (document *XMLNode, whole bool) {
	var b strings.Builder
	var lines []Line
	for b.Len() < maxXMLBytes && !whole {
		l, ok := in.Next()
		if !ok {
			break
		}
		lines = append(lines, l)
		b.WriteString(l.Text + "\n")
		whole = strings.Contains(l.Text, end)
	}
	d := xml.NewDecoder(strings.NewReader(b.String()))
	d.Strict = false
	open := []*XMLNode{{}}
	var text strings.Builder
	for nodes := 0; nodes < maxXMLNodes && len(open) <= maxXMLDepth; {
		line, _ := d.InputPos()
		token, err := d.Token()
		if err != nil {
			break // The end, or a document that breaks off.
		}
		last := open[len(open)-1]
		switch t := token.(type) {
		case xml.StartElement:
			n := &XMLNode{Name: t.Name.Local, Attributes: make(map[string]string, len(t.Attr)), Line: lines[min(line, len(lines))-1]}
			for _, a := range t.Attr {
				n.Attributes[a.Name.Local] = a.Value
			}
			last.Nodes, open = append(last.Nodes, n), append(open, n)
			nodes++
			text.Reset()
		case xml.CharData:
			if text.Len()+len(t) < maxXMLText {
				text.Write(t)
			}
		case xml.EndElement:
			last.Text = strings.TrimSpace(text.String())
			text.Reset()
			open = open[:max(1, len(open)-1)]
		}
	}
	return open[0], whole
}
