// Package launch reads how jobs and containers are started: commands, manifests, batch
// scripts and their variables.
package launch

import (
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// New makes the kinds of this package for one reading.
func New(s *parse.Sink) parse.Family {
	script := &script{Sink: s}
	return parse.Family{End: func(t *facts.Text) { ended(s, t) }, Kinds: []*parse.Kind{
		jsonKind, describeKind, yamlKind, objectKind, inspectKind, inspectPartKind, dockerfileKind, scriptKind, nodeKind, enrootKind, commandKind(script), promptKind(script), argumentsKind,
		environmentKind(script), shellKind,
	}}
}
