package evidence

// pciFamily are the kinds of text of the PCI tree.
func pciFamily(s *Sink) Family {
	t := &pciTree{bridges: make(map[string]string)}
	return Family{Kinds: []*Kind{lspciKind(t), lspciTreeKind(t), setpciKind}, Finish: func() { t.place(s) }}
}
