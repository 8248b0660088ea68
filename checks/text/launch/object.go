package launch

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// objectKind takes Kubernetes objects that hold no containers, as services and config maps
// do: they stand beside a job's pods, and there is nothing in them to judge.
var objectKind = &parse.Kind{
	Name: facts.KindObject, Title: "A Kubernetes object without containers", Command: "kubectl get service NAME -o yaml",
	Anchors: []string{"apiVersion:"},
	Begins: func(in *parse.Lines) bool {
		first, ok := in.Peek()
		if !ok || !objectFirst.MatchString(first.Text) {
			return false
		}
		named := map[string]bool{}
		for _, l := range in.Ahead(200) {
			if strings.HasPrefix(l.Text, "---") {
				break
			}
			if workload.MatchString(l.Text) { // It should have some.
				return false
			}
			if m := objectFirst.FindStringSubmatch(l.Text); m != nil {
				named[m[1]] = true
			}
		}
		return len(named) == 2
	},
	Read: func(_ *parse.Sink, in *parse.Lines) {
		in.While(func(l parse.Line) bool {
			return !strings.HasPrefix(l.Text, "---") && (strings.TrimSpace(l.Text) == "" || indentation(l.Text) > 0 || yamlKey.MatchString(l.Text))
		})
	},
}

// objectFirst are the keys that every object has.
var objectFirst = lazy.New(`^(apiVersion|kind): *\S`)
