package topology

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
