package launch

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// describeKind takes kubectl describe pod (k8s.io/kubectl pkg/describe/describe.go, describeContainers and describeVolumes),
// from its list of containers on, whose fields are by four spaces. The pod's namespaces are not shown there.
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
	describeMount = lazy.New(`^( *)(/\S*) from (\S+) \(.*`)
)

// describeForms are the lines of a manifest that say the same as fields of a container or a volume, and as those below a field.
var describeForms = map[string]string{
	"Image": "  image: {value}", "Limits": "  limits:", "Requests": "  requests:", "Type": "  {value}:",
	"Command": "  command:", "Args": "  args:", "Environment": "  env:", "Mounts": "  volumeMounts:",

	"below Limits": "    {key}: {value}", "below Requests": "    {key}: {value}", "below Type": "    {key}: {value}",
	"below Command": "  - {line}", "below Args": "  - {line}", // What looks like a key is still a word of the command.
	"below Environment": "  - {name: {key}, value: {value}}", "below Mounts": "  - {mountPath: {key}, name: {value}}",
}

// describedNames are types of volumes, and their fields, as a manifest names them.
var describedNames = map[string]string{"EmptyDir": "emptyDir", "HostPath": "hostPath", "Medium": "medium", "SizeLimit": "sizeLimit", "Path": "path"}

// describedPod stands for the kind of an object that kubectl describes: its containers have their limits as fields.
const describedPod = "described pod"

// describeRead makes of each line one of a manifest.
func describeRead(s *reading, in *parse.Lines) {
	var manifest strings.Builder
	top, field, isNamed := "", "", false // The words at the left and by four spaces, and whether a container or a volume is under way.
	in.While(func(l parse.Line) bool {
		text := l.Text
		if field == "Mounts" {
			text = describeMount.ReplaceAllString(text, "$1$2: $3")
		}
		m := append(describeLine.FindStringSubmatch(text), "", "", "", "") // Of an empty line they are empty.
		indent, key, value, form := len(m[1]), m[2], m[3], ""
		switch isOfType := top == "Volumes" && indent == 4 && key != "Type"; {
		case key == "":
		case indent == 0 && top != "" && (top == "Volumes" || key != "Volumes" && key != "Conditions"):
			return false
		case indent == 0:
			top, field, isNamed = key, "", false
			if key != "Conditions" {
				form = strings.ToLower(key) + ":"
			}
		case indent == 2:
			if field, isNamed = "", top != "Conditions"; isNamed {
				form = "- name: {key}"
			}
		case !isNamed || isOfType && (describedNames[key] == "" || value == "" || value == "<unset>"):
		case indent == 4 && !isOfType:
			field, form = key, describeForms[key]
		default:
			form = describeForms["below "+field]
		}
		if top == "Volumes" {
			value, _, _ = strings.Cut(value, " (") // "EmptyDir (a temporary directory ...)"
			key, value = cmp.Or(describedNames[key], key), cmp.Or(describedNames[value], value)
		}
		if manifest.Len() < maxDocument {
			quoted := strings.NewReplacer("{key}", strconv.Quote(key), "{value}", strconv.Quote(value), "{line}", strconv.Quote(strings.TrimSpace(text)))
			manifest.WriteString(quoted.Replace(form) + "\n")
		}
		return true
	})
	pods, _ := yamlNodes(manifest.String())
	for _, pod := range pods {
		(&yamlWalk{sink: s, first: in.First()}).pod(parse.YAMLMapping(pod), yamlContext{kind: describedPod})
	}
}
