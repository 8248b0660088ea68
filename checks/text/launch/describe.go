package launch

import (
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/launch/place"
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
		Begins: func(in *parse.Lines) bool {
			l, ok := in.Peek()
			if !ok || strings.TrimRight(l.Text, " ") != "Containers:" {
				return false
			}
			for _, l := range in.Ahead(40)[1:] {
				if describeField.MatchString(l.Text) {
					return true
				}
			}
			return false
		},
		Read: func(_ *parse.Sink, in *parse.Lines) { describeRead(s, in) },
	}
}

var (
	describeField = lazy.New(`^ {4}(?:Image|Limits|Mounts|Environment|Container ID):`)
	describeLine  = lazy.New(`^( *)(\S.*?)(?::(?: +(.*?))?)?\s*$`)
	describeMount = lazy.New(`^(/\S*) from (\S+) \(`)
)

func describeRead(s *reading, in *parse.Lines) {
	type mount struct{ target, volume string }
	type container struct {
		launch *facts.Launch
		mounts []mount
		at     parse.Line
	}
	var (
		walk       = &yamlWalk{sink: s, first: parse.Line{Number: 1}} // The lines of its nodes are those of the text.
		containers []*container
		volumes    = map[string]map[string]*yaml.Node{}
		// The words above the line: at the left, by two and by four spaces.
		top, item, field string
	)
	for _, l := range in.While(func(l parse.Line) bool { return describeBelongs(l.Text, top) }) {
		m := describeLine.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		key, value := m[2], m[3]
		switch len(m[1]) {
		case 0:
			top, item, field = key, "", ""
			continue
		case 2:
			item, field = key, ""
			if top == "Containers" && len(containers) < maxList {
				containers = append(containers, &container{launch: &facts.Launch{Kind: "kubernetes", Name: key, Lines: map[string]int{}}, at: l})
			}
			continue
		case 4:
			field = key
		}
		switch {
		case top == "Volumes" && item != "" && len(volumes) < maxList:
			describeVolume(volumes, item, key, value, l)
		case top == "Containers" && len(containers) > 0:
			c := containers[len(containers)-1]
			switch {
			case field == "Image":
				c.launch.Image = value
			case len(m[1]) < 6:
			case field == "Command", field == "Args":
				// What looks like a key is still a word of the command.
				c.launch.Command = append(c.launch.Command, strings.TrimSpace(l.Text))
			case field == "Limits", field == "Requests":
				walk.amount(c.launch, strings.ToLower(field), key, value, &yaml.Node{Kind: yaml.ScalarNode, Value: value, Line: l.Number})
			case field == "Environment":
				setVariable(c.launch, key, value)
				place.Note(c.launch, place.Variable(key), l.Number)
			case field == "Mounts":
				if m := describeMount.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil && len(c.mounts) < maxList {
					c.mounts = append(c.mounts, mount{m[1], m[2]})
				}
			}
		}
	}
	for _, c := range containers {
		for _, m := range c.mounts {
			walk.mount(c.launch, map[string]*yaml.Node{"name": yamlScalar(m.volume), "mountPath": yamlScalar(m.target)}, volumes)
		}
		keepLaunch(s, c.launch, c.at, nil)
	}
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

// describeVolume notes a line of a volume in the form of a manifest.
func describeVolume(volumes map[string]map[string]*yaml.Node, name, key, value string, at parse.Line) {
	kind := func(kind string) *yaml.Node {
		if volumes[name] == nil {
			volumes[name] = map[string]*yaml.Node{}
		}
		if volumes[name][kind] == nil {
			volumes[name][kind] = &yaml.Node{Kind: yaml.MappingNode}
		}
		return volumes[name][kind]
	}
	set := func(n *yaml.Node, key string) {
		n.Content = append(n.Content, yamlScalar(key), &yaml.Node{Kind: yaml.ScalarNode, Value: value, Line: at.Number})
	}
	switch {
	case key == "Type" && strings.HasPrefix(value, "EmptyDir"):
		kind("emptyDir")
	case key == "Type" && strings.HasPrefix(value, "HostPath"):
		kind("hostPath")
	case key == "Medium" && value != "" && len(kind("emptyDir").Content) < 8:
		set(kind("emptyDir"), "medium")
	case key == "SizeLimit" && value != "<unset>" && len(kind("emptyDir").Content) < 8:
		set(kind("emptyDir"), "sizeLimit")
	case key == "Path" && volumes[name]["hostPath"] != nil && len(kind("hostPath").Content) < 8:
		set(kind("hostPath"), "path")
	}
}

func yamlScalar(value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: value} }
