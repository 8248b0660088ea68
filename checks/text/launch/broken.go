package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// IsManifest reports whether a text should be YAML or JSON from its first line to its last.
func IsManifest(name, text string) bool {
	is, _ := manifestLanguage(name, text)
	return is
}

func manifestLanguage(name, text string) (is, isJSON bool) {
	extension, _, _ := strings.Cut(strings.ToLower(path.Ext(name)), " ") // "pod.yaml (2)" is the second of that name.
	switch extension {
	case ".json":
		return true, true
	case ".yaml", ".yml": // JSON is YAML, but for tabs.
		return true, json.Valid([]byte(text))
	}
	return parse.BeginsObject(text)
}

// checkedWhole reports whether ended says where the text is broken. A template is not YAML before it is filled in.
func checkedWhole(s *reading) bool { return IsManifest(s.Source(), s.Text()) && !isTemplated(s.Text()) }

// ended notes where a manifest is not valid YAML or JSON, or that it was not checked to its end.
func ended(s *reading, t *facts.Text) {
	defer s.units()
	var f fault
	if checkedWhole(s) {
		f = s.fault()
	}
	jobs := slices.ContainsFunc(s.Facts.Launches, func(l facts.Launch) bool { return l.Source == s.Source() })
	switch {
	case f.line > 0:
		t.Problem, t.Unread, t.Document = fmt.Sprintf("not valid %s at line %d: %s", f.language, f.line, escape.Printable(f.why, 100)), facts.UnreadBroken, f.document
	case jobs && t.Bytes > parse.MaxWhole && IsManifest(s.Source(), ""):
		notUnderstood(s, fmt.Sprintf("%s is larger than %s, and was not checked to its end", s.Source(), parse.Size(parse.MaxWhole)), "give its documents in files of their own")
	}
}

type fault struct {
	language, why string
	// line is where it is not valid; 0 if it is. document is the line at which that document begins.
	line, document int
}

// whole parses the text that is being read, once, as YAML.
func (s *reading) whole() ([]*yaml.Node, error) {
	d := &s.documents
	if text := s.Text(); d.text != text {
		d.text = text
		d.nodes, d.err = yamlNodes(text)
	}
	return d.nodes, d.err
}

func (s *reading) fault() fault {
	text := s.Text()
	if _, isJSON := manifestLanguage(s.Source(), text); isJSON {
		return jsonFault(text)
	}
	f := fault{language: "YAML"}
	lines := strings.SplitAfter(text, "\n")
	documents, err := s.whole()
	if err != nil {
		// The parser names the line where the broken part begins, or none. It fails in this way from this line on.
		f.line = 1 + sort.Search(len(lines)-1, func(i int) bool {
			_, sooner := yamlNodes(strings.Join(lines[:i+1], ""))
			return sooner != nil && sooner.Error() == err.Error()
		})
		f.why = yamlPlace.ReplaceAllString(err.Error(), "")
	}
	for _, n := range documents {
		// Of a key that an object of Kubernetes has twice, kubectl takes the last (sigs.k8s.io/yaml, YAMLToJSON).
		last := parse.YAMLMapping(n)["apiVersion"] != nil
		if why, line := rejected(n, nil, last); line > 0 && (f.line == 0 || line < f.line) {
			f.why, f.line = why, line
		}
	}
	if f.line > 0 {
		f.document = documentOf(lines, min(f.line, len(lines))-1).first // A carriage return also ends a line of YAML.
	}
	return f
}

var yamlPlace = lazy.New(`^yaml: (?:line \d+: )?`)

// yamlNodes parses the documents of a text, up to the first that is broken.
func yamlNodes(text string) (documents []*yaml.Node, err error) {
	for d := yaml.NewDecoder(strings.NewReader(text)); len(documents) < maxDocuments; {
		var n yaml.Node
		if err = d.Decode(&n); errors.Is(err, io.EOF) {
			return documents, nil
		} else if err != nil {
			return documents, err
		}
		documents = append(documents, n.Content...) // It holds one node.
	}
	return documents, nil
}

// jsonFault looks for the first fault of JSON: one value, or one after the other.
func jsonFault(text string) fault {
	f := fault{language: "JSON", document: 1}
	var err error
	for d := json.NewDecoder(strings.NewReader(text)); err == nil; {
		err = d.Decode(new(json.RawMessage))
	}
	if !errors.Is(err, io.EOF) {
		at := len(strings.TrimSpace(text))
		if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = min(int(wrong.Offset), len(text))
		}
		f.why, f.line = err.Error(), 1+strings.Count(text[:at], "\n")
	} else if n := parse.JSONNodes(text); n != nil {
		f.why, f.line = rejected(n, nil, parse.YAMLMapping(n)["apiVersion"] != nil)
	}
	return f
}

// rejected looks for what parses but is not valid: a key that a mapping has twice, and an anchor that
// contains itself. above are the nodes around n; with last, a key may be given twice.
func rejected(n *yaml.Node, above []*yaml.Node, last bool) (why string, line int) {
	if n.Kind == yaml.AliasNode && slices.Contains(above, n.Alias) {
		return "the anchor " + n.Value + " contains itself", n.Line
	}
	keys := map[string]bool{}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Kind == yaml.ScalarNode && child.Tag != "!!merge" {
			key := child.ShortTag() + " " + child.Value
			if keys[key] && !last {
				return "the key " + child.Value + " is given twice", child.Line
			}
			keys[key] = true
		}
		if why, line = rejected(child, append(above, n), last); line > 0 {
			return why, line
		}
	}
	return "", 0
}

// workload is the line of an object's kind that has containers.
var workload = lazy.New(`^kind: *["']?(?:Pod|Deployment|StatefulSet|DaemonSet|ReplicaSet|LeaderWorkerSet|\w*Job)\b`)

// objectKind takes Kubernetes objects that hold no containers, as services and config maps
// do: they stand beside a job's pods, and there is nothing in them to judge.
func objectKind() *parse.Kind {
	return &parse.Kind{
		Name: facts.KindObject, Title: "A Kubernetes object without containers", Command: "kubectl get service NAME -o yaml",
		Anchors: []string{"apiVersion:"},
		Begins: func(in *parse.Lines) bool {
			if !begins(in, objectFirst) {
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
				if key := objectFirst.First(l.Text); key != "" {
					named[key] = true
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
}

// objectFirst are the keys that every object has.
var objectFirst = lazy.New(`^(apiVersion|kind): *\S`)
