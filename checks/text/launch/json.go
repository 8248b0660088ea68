package launch

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// jsonKind takes Kubernetes objects in JSON, whole or cut at the end.
func jsonKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "manifest-json", Title: "A Kubernetes object, in JSON", Command: "kubectl get pod NAME -o json", Gives: []string{"launches", "env"},
		Anchors: []string{`"apiVersion":`}, Begins: func(in *parse.Lines) bool { return begins(in, jsonFirst) },
		Read: func(_ *parse.Sink, in *parse.Lines) {
			text := parse.JSONDocument(in)
			if !json.Valid([]byte(text)) {
				text = parse.JSONClosed(text)
			}
			if len(text) <= maxDocument { // JSON is YAML, but for tabs.
				yamlDocuments(s, strings.ReplaceAll(text, "\t", " "), in.First(), false)
			}
		},
	}
}

var jsonFirst = lazy.New(`^\s*(?:\{\s*)?"apiVersion":\s*"`)

// begins reports whether the next line has a form, and follows whether one of those behind it has.
func begins(in *parse.Lines, form *lazy.Regexp) bool { return form.MatchString(in.First().Text) }

func follows(in *parse.Lines, lines int, form *lazy.Regexp) bool {
	return slices.ContainsFunc(in.Ahead(lines)[1:], func(l parse.Line) bool { return form.MatchString(l.Text) })
}

// inspectKind takes the JSON of docker inspect.
func inspectKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "docker-inspect", Title: "A container, from docker inspect", Command: "docker inspect NAME", Gives: []string{"launches", "env"},
		Anchors: []string{"["}, Commands: []string{"docker inspect", "docker container inspect", "podman inspect"},
		Skips: func(line []byte) bool { // What may stand around it: see parse.Line.
			return !bytes.HasSuffix(bytes.TrimRight(line, " \t`*<br/>"), []byte("["))
		},
		Begins: func(in *parse.Lines) bool {
			return begins(in, inspectFirst) && (begins(in, inspectConfig) || follows(in, 200, inspectConfig))
		},
		Read: func(_ *parse.Sink, in *parse.Lines) {
			w := &yamlWalk{sink: s, first: in.First()}
			for _, n := range w.list(parse.JSONNodes(parse.JSONDocument(in))) {
				w.inspected(n)
			}
		},
	}
}

var (
	inspectFirst  = lazy.New(`^\s*\[\s*$`)
	inspectConfig = lazy.New(`"HostConfig": \{`)
)

func (w *yamlWalk) inspected(n *yaml.Node) {
	l := &facts.Launch{Kind: "docker-inspect", Name: strings.TrimPrefix(parse.YAMLText(child(n, "Name")), "/"), Image: parse.YAMLText(parse.YAMLBelow(n, "Config", "Image")), Lines: map[string]int{}}
	if l.Name != "" {
		l.Object = escape.Printable("container/"+l.Name, 200)
	}
	if path := parse.YAMLText(child(n, "Path")); path != "" {
		l.Command = append([]string{path}, w.texts(child(n, "Args"))...)
	}
	w.fields(l, n, inspectFields...)
	w.environment(l, parse.YAMLBelow(n, "Config", "Env"))
	w.keep(l, n, n)
}
