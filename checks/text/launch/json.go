package launch

import (
	"encoding/json"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/launch/place"
	"github.com/gpudoctor/gpudoctor/checks/text/launch/values"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// jsonKind takes Kubernetes objects in JSON, and the task definitions of
// Amazon ECS, whole or cut at the end.
func jsonKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "manifest-json", Title: "A Kubernetes object or an ECS task definition, in JSON", Command: "kubectl get pod NAME -o json", Gives: []string{"launches", "env"},
		Anchors: []string{`"apiVersion":`, `"containerDefinitions":`, `"taskDefinition":`, `"family":`},
		Begins: func(in *parse.Lines) bool {
			l, ok := in.Peek()
			switch {
			case !ok:
				return false
			case jsonFirst.MatchString(l.Text):
				return true
			case !jsonFamily.MatchString(l.Text):
				return false
			}
			for _, l := range in.Ahead(20) {
				if strings.Contains(l.Text, `"containerDefinitions":`) {
					return true
				}
			}
			return false
		},
		Read: func(_ *parse.Sink, in *parse.Lines) {
			first, _ := in.Peek()
			text := parse.JSONDocument(in)
			if !json.Valid([]byte(text)) {
				text = parse.JSONClosed(text)
			}
			if len(text) > maxDocument {
				return
			}
			var task ecsTask
			if json.Unmarshal([]byte(text), &task) == nil {
				if task.TaskDefinition != nil {
					task.ecsDefinition = *task.TaskDefinition
				}
				nodes := parse.JSONNodes(text)
				if task.TaskDefinition != nil {
					nodes = parse.YAMLBelow(nodes, "TaskDefinition")
				}
				for i := range task.ContainerDefinitions[:min(len(task.ContainerDefinitions), maxList+1)] {
					l := task.launch(&task.ContainerDefinitions[i])
					task.ContainerDefinitions[i].places(l, nodes, i, first.Number)
					l.Object = escape.Printable("task/"+l.Name, 200)
					keepLaunch(s, l, at(first, parse.YAMLItem(parse.YAMLBelow(nodes, "ContainerDefinitions"), i)), nil)
				}
				if len(task.ContainerDefinitions) > 0 {
					return
				}
			}
			// JSON is YAML, but for tabs.
			yamlDocuments(s, strings.ReplaceAll(text, "\t", " "), first, &template{})
		},
	}
}

// at is the line of a node of a document that begins at a line.
func at(first parse.Line, n *yaml.Node) parse.Line {
	if n != nil {
		first.Number += n.Line - 1
	}
	return first
}

var jsonFamily = lazy.New(`^\s*(?:\{\s*)?"family":\s*"`)

var jsonFirst = lazy.New(`^\s*(?:\{\s*)?"(?:apiVersion|containerDefinitions|taskDefinition)":\s*["\[{]`)

// ecsTask is what is read of ECS: a task definition, or the answer to
// aws ecs describe-task-definition (Amazon ECS API, ContainerDefinition).
type ecsTask struct {
	ecsDefinition
	TaskDefinition *ecsDefinition
}

type ecsDefinition struct {
	IPCMode, PIDMode, NetworkMode string
	ContainerDefinitions          []ecsContainer
}

type ecsContainer struct {
	Name, Image          string
	EntryPoint, Command  []string
	Environment          []struct{ Name, Value string }
	Privileged           bool
	ResourceRequirements []struct{ Type, Value string }
	Ulimits              []struct {
		Name      string
		SoftLimit int64
	}
	MountPoints     []struct{ SourceVolume, ContainerPath string }
	LinuxParameters struct {
		// SharedMemorySize is in MiB.
		SharedMemorySize *int64
		Capabilities     struct{ Add, Drop []string }
		Devices          []struct{ HostPath string }
		Tmpfs            []struct{ ContainerPath string }
	}
}

func (t *ecsTask) launch(c *ecsContainer) *facts.Launch {
	l := &facts.Launch{
		Kind: "ecs", Name: c.Name, Image: c.Image, PID: t.PIDMode, Privileged: c.Privileged, Command: append(c.EntryPoint, c.Command...),
	}
	if !unresolved(l, "ipc", t.IPCMode) {
		l.IPC = t.IPCMode
	}
	if !unresolved(l, "network", t.NetworkMode) && t.NetworkMode == "host" {
		l.Network = "host"
	}
	for _, r := range c.ResourceRequirements {
		if r.Type == "GPU" {
			l.GPUVendor = "nvidia"
			if !unresolved(l, "gpus", r.Value) {
				l.GPUs = parseCount(r.Value)
			}
		}
	}
	for _, u := range c.Ulimits {
		setUlimit(l, u.Name+"="+strconv.FormatInt(u.SoftLimit, 10))
	}
	for _, m := range c.MountPoints {
		addMount(l, m.SourceVolume, strings.TrimRight(m.ContainerPath, "/"))
	}
	p := &c.LinuxParameters
	if n := p.SharedMemorySize; n != nil && *n >= 0 && *n < 1<<40 {
		l.SHMBytes = new(*n << 20)
	}
	for _, name := range p.Capabilities.Add {
		if unresolved(l, "cap_add", name) {
			continue
		}
		appendTo(&l.CapAdd, values.Capability(name))
	}
	for _, d := range p.Devices {
		dockerOption(l, "--device", d.HostPath)
	}
	for _, m := range p.Tmpfs {
		addMount(l, "tmpfs", strings.TrimRight(m.ContainerPath, "/"))
	}
	for _, v := range c.Environment {
		setVariable(l, v.Name, v.Value)
	}
	return l
}

// places notes the lines of a container's parts in the task definition, which
// begins at line first.
func (c *ecsContainer) places(l *facts.Launch, definition *yaml.Node, index, first int) {
	l.Lines = map[string]int{}
	container := parse.YAMLItem(parse.YAMLBelow(definition, "ContainerDefinitions"), index)
	note := func(part string, n *yaml.Node) {
		if n != nil {
			place.Note(l, part, first+n.Line-1)
		}
	}
	note("shm_bytes", parse.YAMLBelow(container, "LinuxParameters", "SharedMemorySize"))
	note("devices", parse.YAMLBelow(container, "LinuxParameters", "Devices"))
	note("ipc", parse.YAMLBelow(definition, "IPCMode"))
	note("privileged", parse.YAMLBelow(container, "Privileged"))
	environment := parse.YAMLBelow(container, "Environment")
	for i, v := range c.Environment {
		note(place.Variable(v.Name), parse.YAMLBelow(parse.YAMLItem(environment, i), "Name"))
	}
}

var inspectCommands = []string{"docker inspect", "docker container inspect", "podman inspect"}

// inspectPartKind takes what is left of docker inspect by grep, by
// --format, or by who pasted it.
func inspectPartKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "docker-inspect-part", Title: "A part of a container, from docker inspect", Command: "docker inspect NAME | grep -e Shm -e Ipc -e Memlock", Gives: []string{"launches"},
		Anchors: []string{`"ShmSize":`, `"IpcMode":`, `"Privileged":`}, Commands: inspectCommands,
		Begins: func(in *parse.Lines) bool {
			l, ok := in.Peek()
			return ok && (inspectPart.MatchString(l.Text) || inspectOpen(in) || inspectSize(in) != nil)
		},
		Read: func(_ *parse.Sink, in *parse.Lines) {
			first, _ := in.Peek()
			l := &facts.Launch{Kind: "docker-inspect"}
			if size := inspectSize(in); size != nil {
				in.Next()
				l.SHMBytes = size
				keepLaunch(s, l, first, nil)
				return
			}
			lines := in.While(func(l parse.Line) bool { return inspectLine.MatchString(l.Text) })
			for _, line := range lines {
				for _, m := range inspectField.FindAllStringSubmatch(line.Text, -1) {
					switch value := strings.Trim(m[2], `"`); m[1] {
					case "ShmSize":
						l.SHMBytes = values.Size(value)
					case "IpcMode":
						l.IPC = value
					case "PidMode":
						l.PID = value
					case "NetworkMode":
						l.Network = value
					case "Runtime":
						l.Runtime = value
					case "Privileged":
						l.Privileged = value == "true"
					case "Image":
						l.Image = value
					case "PathOnHost":
						addDevice(l, value)
					}
				}
			}
			place.Find(l, lines)
			keepLaunch(s, l, first, nil)
		},
	}
}

// inspectOpen is true for the brace, or the field, that opens what --format
// or jq took of a container's HostConfig.
func inspectOpen(in *parse.Lines) bool {
	l, _ := in.Peek()
	if !in.After(inspectCommands...) || !inspectLine.MatchString(l.Text) || strings.HasPrefix(strings.TrimSpace(l.Text), "[") {
		return false
	}
	for _, l := range in.Ahead(40) {
		if inspectPart.MatchString(l.Text) {
			return true
		}
		if !inspectLine.MatchString(l.Text) {
			return false
		}
	}
	return false
}

var (
	inspectPart  = lazy.New(`^\s*\{?(?:"[A-Za-z]+":.*,)?\s*"(?:ShmSize|IpcMode|Privileged)":`)
	inspectLine  = lazy.New(`^\s*(?:\{?\s*"[\w./-]*":?|[\]\[{}])`)
	inspectField = lazy.New(`"(ShmSize|IpcMode|PidMode|NetworkMode|Runtime|Privileged|Image|PathOnHost)":\s*("[^"]{0,300}"|\d{1,18}|true|false)`)
)

// inspectSize is the bare number that docker inspect -f
// '{{.HostConfig.ShmSize}}' prints.
func inspectSize(in *parse.Lines) *int64 {
	l, _ := in.Peek()
	if !in.After(inspectCommands...) || !strings.Contains(in.Prompt().Command, ".ShmSize") {
		return nil
	}
	if n, err := strconv.ParseInt(strings.Trim(strings.TrimSpace(l.Text), "'\""), 10, 64); err == nil && n >= 0 {
		return &n
	}
	return nil
}
