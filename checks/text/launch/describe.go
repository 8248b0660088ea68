package launch

import (
	"cmp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// describeKind takes kubectl describe pod, from its list of containers on:
//
//	Containers:
//	  main:
//	    Image:         nvcr.io/nvidia/pytorch:25.06-py3
//	    Limits:
//	      nvidia.com/gpu:  8
//	    Environment:
//	      NCCL_DEBUG:  INFO
//	    Mounts:
//	      /dev/shm from dshm (rw)
//	Volumes:
//	  dshm:
//	    Type:       EmptyDir (a temporary directory that shares a pod's lifetime)
//	    Medium:     Memory
//	    SizeLimit:  <unset>
//
// (k8s.io/kubectl pkg/describe/describe.go, describeContainers and
// describeVolumes). The pod's namespaces are not shown there.
func describeKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "kubectl-describe", Title: "A pod, from kubectl describe", Command: "kubectl describe pod NAME", Gives: []string{"launches", "env"},
		Anchors: []string{"Containers:"},
		Begins:  func(in *parse.Lines) bool { return begins(in, describeFirst) && follows(in, 40, describeField) },
		Read:    func(_ *parse.Sink, in *parse.Lines) { describeRead(s, in) },
	}
}

var (
	describeFirst = lazy.New(`^Containers: *$`)
	describeField = lazy.New(`^ {4}(?:Image|Limits|Mounts|Environment|Container ID):`)
	describeLine  = lazy.New(`^( *)(\S.*?)(?::(?: +(.*?))?)?\s*$`)
	describeMount = lazy.New(`^(/\S*) from (\S+) \(`)
)

// describeRead makes of the lines a pod as a manifest describes it.
func describeRead(s *reading, in *parse.Lines) {
	pod := &yaml.Node{Kind: yaml.MappingNode}
	var entry *yaml.Node          // The container or the volume under way.
	var top, field, source string // The words at the left and by four spaces, and the kind of the volume.
	for _, l := range in.While(func(l parse.Line) bool { return describeBelongs(l.Text, top) }) {
		m := describeLine.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		key, value := m[2], m[3]
		set := func(n *yaml.Node, value string, keys ...string) {
			*nodeAt(n, keys...) = yaml.Node{Kind: yaml.ScalarNode, Value: value, Line: l.Number}
		}
		switch indent := len(m[1]); {
		case indent == 0:
			top, entry = key, nil
		case indent == 2:
			field, source, entry = "", "", nodeAt(pod, strings.ToLower(top), "")
			entry.Line = l.Number
			set(entry, key, "name")
		case entry == nil:
		case top == "Volumes" && key == "Type":
			kind, _, _ := strings.Cut(value, " ")
			source = cmp.Or(describedNames[kind], kind)
			nodeAt(entry, source)
		case top == "Volumes" && source != "" && describedNames[key] != "" && value != "" && value != "<unset>":
			set(entry, value, source, describedNames[key])
		case indent == 4:
			if field = key; field == "Image" {
				set(entry, value, "image")
			}
		case field == "Command", field == "Args": // What looks like a key is still a word of the command.
			set(entry, strings.TrimSpace(l.Text), "command", "")
		case field == "Limits", field == "Requests":
			set(entry, value, "resources", strings.ToLower(field), key)
		case field == "Environment":
			variable := nodeAt(entry, "env", "")
			set(variable, key, "name")
			set(variable, value, "value")
		case field == "Mounts":
			if m := describeMount.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil {
				mount := nodeAt(entry, "volumeMounts", "")
				set(mount, m[1], "mountPath")
				set(mount, m[2], "name")
			}
		}
	}
	walk := &yamlWalk{sink: s, first: parse.Line{Number: 1}} // The lines of its nodes are those of the text.
	walk.pod(yamlMapping(pod), yamlContext{})
}

// describedNames are types of volumes, and their fields, as a manifest names them.
var describedNames = map[string]string{"EmptyDir": "emptyDir", "HostPath": "hostPath", "Medium": "medium", "SizeLimit": "sizeLimit", "Path": "path"}

// nodeAt is what stands below some keys of a manifest. It is added where there is none, and an empty key adds an
// entry to a list.
func nodeAt(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		below := parse.YAMLBelow(n, key)
		if key == "" || below == nil {
			below = &yaml.Node{Kind: yaml.MappingNode}
			switch {
			case len(n.Content) >= 2*maxList:
			case key == "":
				n.Kind, n.Content = yaml.SequenceNode, append(n.Content, below)
			default:
				n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, below)
			}
		}
		n = below
	}
	return n
}

// describeBelongs takes the containers, and what follows up to the
// volumes' end.
func describeBelongs(text, top string) bool {
	if strings.HasPrefix(text, " ") || strings.TrimSpace(text) == "" {
		return true
	}
	word, _, _ := strings.Cut(text, ":")
	return top == "" || top != "Volumes" && (word == "Conditions" || word == "Volumes" || word == "Containers")
}
