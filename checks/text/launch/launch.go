// Package launch reads how jobs and containers are started: commands, manifests, batch scripts and their variables.
package launch

import (
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// New makes the kinds of this package for one reading.
func New(sink *parse.Sink) parse.Family {
	s := &reading{Sink: sink}
	kinds := []*parse.Kind{
		jsonKind(s), describeKind(s), yamlKind(s), objectKind(), inspectKind(s), dockerfileKind(s), scriptKind(s), nodeKind(s),
		commandKind(s), promptKind(s), argumentsKind(s), environmentKind(s), shellKind(s),
	}
	for _, k := range kinds {
		k.Files = true
	}
	return parse.Family{End: func(t *facts.Text) { ended(s, t) }, Kinds: kinds}
}
