// Package nccl reads the logs and the diagnostics of NCCL and RCCL.
package nccl

import (
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// New makes the kinds of this package for one reading.
func New(s *parse.Sink) parse.Family {
	n, d, c := &log{}, &diag{}, &collectives{}
	return parse.Family{Kinds: []*parse.Kind{diagKind(d), logKind(n), collectivesKind(c)}, End: func(*facts.Text) { c.end(s) }, Finish: func() {
		d.finish(s)
		n.finish(s)
	}}
}
