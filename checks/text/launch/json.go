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
	"github.com/gpudoctor/gpudoctor/checks/text/shell"
)

// jsonKind takes Kubernetes objects in JSON, and the task definitions of Amazon ECS, whole or cut at the end.
func jsonKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "manifest-json", Title: "A Kubernetes object or an ECS task definition, in JSON", Command: "kubectl get pod NAME -o json", Gives: []string{"launches", "env"},
		Anchors: []string{`"apiVersion":`, `"containerDefinitions":`, `"taskDefinition":`, `"family":`},
		Begins: func(in *parse.Lines) bool {
			return begins(in, jsonFirst) || begins(in, jsonFamily) && (begins(in, jsonContainers) || follows(in, 20, jsonContainers))
		},
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

var (
	jsonFirst      = lazy.New(`^\s*(?:\{\s*)?"(?:apiVersion|containerDefinitions|taskDefinition)":\s*["\[{]`)
	jsonFamily     = lazy.New(`^\s*(?:\{\s*)?"family":\s*"`)
	jsonContainers = lazy.New(`"containerDefinitions":`)
)

// begins reports whether the next line has a form, and follows whether one of those behind it has.
func begins(in *parse.Lines, form *lazy.Regexp) bool {
	return form.MatchString(in.First().Text)
}

func follows(in *parse.Lines, lines int, form *lazy.Regexp) bool {
	return slices.ContainsFunc(in.Ahead(lines)[1:], func(l parse.Line) bool { return form.MatchString(l.Text) })
}

// task reads a container of a task definition, or of the answer to aws ecs describe-task-definition.
func (w *yamlWalk) task(definition, container *yaml.Node) {
	l := &facts.Launch{Kind: "ecs", Name: parse.YAMLText(child(container, "name")), Image: parse.YAMLText(child(container, "image")), Lines: map[string]int{}}
	l.Object = escape.Printable("task/"+l.Name, 200)
	l.Command = append(w.texts(child(container, "entryPoint")), w.texts(child(container, "command"))...)
	w.fields(l, definition, taskFields...)
	if mode := parse.YAMLText(child(definition, "networkMode")); mode == "host" || shell.Refers(mode) {
		set(l, "network", mode)
	}
	w.fields(l, container, taskContainerFields...)
	w.environment(l, child(container, "environment"))
	w.keep(l, container, container)
}

var inspectCommands = []string{"docker inspect", "docker container inspect", "podman inspect"}

// inspectPartKind takes what is left of docker inspect by grep, by --format, or by who pasted it.
func inspectPartKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "docker-inspect-part", Title: "A part of a container, from docker inspect", Command: "docker inspect NAME | grep -e Shm -e Ipc -e Memlock", Gives: []string{"launches"},
		Anchors: []string{`"ShmSize":`, `"IpcMode":`, `"Privileged":`}, Commands: inspectCommands,
		Begins: func(in *parse.Lines) bool {
			isSize := in.After(inspectCommands...) && strings.Contains(in.Prompt().Command, ".ShmSize") && begins(in, inspectSize)
			isOpen := in.After(inspectCommands...) && begins(in, inspectOpen) && follows(in, 40, inspectPart)
			return isSize || isOpen || begins(in, inspectPart)
		},
		Read: func(_ *parse.Sink, in *parse.Lines) {
			var lines strings.Builder
			for _, l := range in.While(func(l parse.Line) bool { return l.Number == in.First().Number || inspectLine.MatchString(l.Text) }) {
				if lines.Len() < maxDocument {
					lines.WriteString(l.Text + "\n")
				}
			}
			text := strings.TrimSpace(lines.String())
			if inspectSize.MatchString(text) {
				text = `"ShmSize": ` + text
			}
			if !strings.HasPrefix(text, "{") {
				text = "{" + text
			}
			if n := parse.JSONNodes(parse.JSONClosed(text + ",")); n != nil {
				key := func(name string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: name} }
				(&yamlWalk{sink: s, first: in.First()}).inspected(&yaml.Node{Kind: yaml.MappingNode, Line: 1, Content: []*yaml.Node{key("HostConfig"), n, key("Config"), n}})
			}
		},
	}
}

var (
	inspectPart = lazy.New(`^\s*\{?(?:"[A-Za-z]+":.*,)?\s*"(?:ShmSize|IpcMode|Privileged)":`)
	// inspectOpen is the brace, or the field, that opens what --format or jq took of a container's HostConfig.
	inspectOpen = lazy.New(`^\s*(?:\{|"[\w./-]*":)`)
	inspectLine = lazy.New(`^\s*(?:\{?\s*"[\w./-]*":?|[\]\[{}])`)
	// inspectSize is the bare number that docker inspect -f '{{.HostConfig.ShmSize}}' prints.
	inspectSize = lazy.New(`^\s*['"]?\d{1,18}['"]?\s*$`)
)

// inspectKind takes the JSON of docker inspect.
func inspectKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "docker-inspect", Title: "A container, from docker inspect", Command: "docker inspect NAME", Gives: []string{"launches", "env"},
		Anchors: []string{"["}, Commands: inspectCommands,
		Prefilter: func(line []byte) parse.Relevance {
			if bytes.HasSuffix(bytes.TrimRight(line, " \t`*<br/>"), []byte("[")) { // What may stand around it: see parse.Line.
				return parse.Relevant
			}
			return parse.Irrelevant
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

// inspected reads a container.
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
