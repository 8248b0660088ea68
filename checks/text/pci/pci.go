// Package pci reads what lspci and setpci print about the PCI tree.
package pci

import "github.com/gpudoctor/gpudoctor/checks/text/parse"

// New makes the kinds of this package for one reading.
func New(s *parse.Sink) parse.Family {
	t := &tree{bridges: make(map[string]string)}
	return parse.Family{Kinds: []*parse.Kind{lspciKind(t), lspciTreeKind(t), setpciKind}, Finish: func() { t.place(s) }}
}
