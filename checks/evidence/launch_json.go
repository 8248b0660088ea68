package evidence

import (
	"encoding/json"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// launchJSONKind takes Kubernetes objects in JSON, and the task definitions of
// Amazon ECS, whole or cut at the end.
var launchJSONKind = &Kind{
	Name: "manifest-json", Title: "A Kubernetes object or an ECS task definition, in JSON", Command: "kubectl get pod NAME -o json", Gives: []string{"launches", "env"},
	Anchors: []string{`"apiVersion":`, `"containerDefinitions":`, `"taskDefinition":`, `"family":`},
	Begins: func(in *Lines) bool {
		l, ok := in.Peek()
		switch {
		case !ok:
			return false
		case launchJSONFirst.MatchString(l.Text):
			return true
		case !launchJSONFamily.MatchString(l.Text):
			return false
		}
		for _, l := range in.Ahead(20) {
			if strings.Contains(l.Text, `"containerDefinitions":`) {
				return true
			}
		}
		return false
	},
	Read: func(s *Sink, in *Lines) {
		first, _ := in.Peek()
		text := jsonDocument(in)
		if !json.Valid([]byte(text)) {
			text = jsonClosed(text)
		}
		if len(text) > launchMaxDocument {
			return
		}
		var task launchTask
		if json.Unmarshal([]byte(text), &task) == nil {
			if task.TaskDefinition != nil {
				task.launchTaskDefinition = *task.TaskDefinition
			}
			nodes := jsonNodes(text)
			if task.TaskDefinition != nil {
				nodes = yamlBelow(nodes, "TaskDefinition")
			}
			for i := range task.ContainerDefinitions[:min(len(task.ContainerDefinitions), launchMaxList)] {
				l := task.launch(&task.ContainerDefinitions[i])
				task.ContainerDefinitions[i].places(l, nodes, i, first.Number)
				launchKeep(s, l, first, nil)
			}
			if len(task.ContainerDefinitions) > 0 {
				return
			}
		}
		// JSON is YAML, but for tabs.
		launchYAMLDocuments(s, strings.ReplaceAll(text, "\t", " "), first)
	},
}

var launchJSONFamily = lazy.New(`^\s*(?:\{\s*)?"family":\s*"`)

var launchJSONFirst = lazy.New(`^\s*(?:\{\s*)?"(?:apiVersion|containerDefinitions|taskDefinition)":\s*["\[{]`)

// launchTask is what is read of ECS: a task definition, or the answer to
// aws ecs describe-task-definition (Amazon ECS API, ContainerDefinition).
type launchTask struct {
	launchTaskDefinition
	TaskDefinition *launchTaskDefinition
}

type launchTaskDefinition struct {
	IPCMode, PIDMode, NetworkMode string
	ContainerDefinitions          []launchTaskContainer
}

type launchTaskContainer struct {
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

func (t *launchTask) launch(c *launchTaskContainer) *facts.Launch {
	l := &facts.Launch{
		Kind: "ecs", Name: c.Name, Image: c.Image, IPC: t.IPCMode, PID: t.PIDMode, Privileged: c.Privileged, Command: append(c.EntryPoint, c.Command...),
	}
	if t.NetworkMode == "host" {
		l.Network = "host"
	}
	for _, r := range c.ResourceRequirements {
		if r.Type == "GPU" {
			l.GPUs, l.GPUVendor = launchCount(r.Value), "nvidia"
		}
	}
	for _, u := range c.Ulimits {
		launchUlimit(l, u.Name+"="+strconv.FormatInt(u.SoftLimit, 10))
	}
	for _, m := range c.MountPoints {
		launchMount(l, m.SourceVolume, strings.TrimRight(m.ContainerPath, "/"))
	}
	p := &c.LinuxParameters
	if n := p.SharedMemorySize; n != nil && *n >= 0 && *n < 1<<40 {
		l.SHMBytes = new(*n << 20)
	}
	for _, name := range p.Capabilities.Add {
		launchAppend(&l.CapAdd, launchCapability(name))
	}
	for _, name := range p.Capabilities.Drop {
		launchAppend(&l.CapDrop, launchCapability(name))
	}
	for _, d := range p.Devices {
		launchDevice(l, d.HostPath)
	}
	for _, m := range p.Tmpfs {
		launchMount(l, "tmpfs", strings.TrimRight(m.ContainerPath, "/"))
	}
	for _, v := range c.Environment {
		launchSet(l, v.Name, v.Value)
	}
	return l
}

// places notes the lines of a container's parts in the task definition, which
// begins at line first.
func (c *launchTaskContainer) places(l *facts.Launch, definition *yaml.Node, index, first int) {
	l.Lines = map[string]int{}
	container := yamlItem(yamlBelow(definition, "ContainerDefinitions"), index)
	note := func(part string, n *yaml.Node) {
		if n != nil {
			launchStands(l, part, first+n.Line-1)
		}
	}
	note("shm_bytes", yamlBelow(container, "LinuxParameters", "SharedMemorySize"))
	note("devices", yamlBelow(container, "LinuxParameters", "Devices"))
	note("ipc", yamlBelow(definition, "IPCMode"))
	note("privileged", yamlBelow(container, "Privileged"))
	environment := yamlBelow(container, "Environment")
	for i, v := range c.Environment {
		note(launchVariable(v.Name), yamlBelow(yamlItem(environment, i), "Name"))
	}
}

var launchInspectCommands = []string{"docker inspect", "docker container inspect", "podman inspect"}

// launchInspectPartKind takes what is left of docker inspect by grep, by
// --format, or by who pasted it.
var launchInspectPartKind = &Kind{
	Name: "docker-inspect-part", Title: "A part of a container, from docker inspect", Command: "docker inspect NAME | grep -e Shm -e Ipc -e Memlock", Gives: []string{"launches"},
	Anchors: []string{`"ShmSize":`, `"IpcMode":`, `"Privileged":`}, Commands: launchInspectCommands,
	Begins: func(in *Lines) bool {
		l, ok := in.Peek()
		return ok && (launchInspectPart.MatchString(l.Text) || launchInspectOpen(in) || launchInspectSize(in) != nil)
	},
	Read: func(s *Sink, in *Lines) {
		first, _ := in.Peek()
		l := &facts.Launch{Kind: "docker-inspect"}
		if size := launchInspectSize(in); size != nil {
			in.Next()
			l.SHMBytes = size
			launchKeep(s, l, first, nil)
			return
		}
		lines := in.While(func(l Line) bool { return launchInspectLine.MatchString(l.Text) })
		for _, line := range lines {
			for _, m := range launchInspectField.FindAllStringSubmatch(line.Text, -1) {
				switch value := strings.Trim(m[2], `"`); m[1] {
				case "ShmSize":
					l.SHMBytes = launchSize(value)
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
					launchDevice(l, value)
				}
			}
		}
		launchFind(l, lines)
		launchKeep(s, l, first, nil)
	},
}

// launchInspectOpen is true of the brace, or the field, that opens what --format
// or jq took of a container's HostConfig.
func launchInspectOpen(in *Lines) bool {
	l, _ := in.Peek()
	if !in.After(launchInspectCommands...) || !launchInspectLine.MatchString(l.Text) || strings.HasPrefix(strings.TrimSpace(l.Text), "[") {
		return false
	}
	for _, l := range in.Ahead(40) {
		if launchInspectPart.MatchString(l.Text) {
			return true
		}
		if !launchInspectLine.MatchString(l.Text) {
			return false
		}
	}
	return false
}

var (
	launchInspectPart  = lazy.New(`^\s*\{?(?:"[A-Za-z]+":.*,)?\s*"(?:ShmSize|IpcMode|Privileged)":`)
	launchInspectLine  = lazy.New(`^\s*(?:\{?\s*"[\w./-]*":?|[\]\[{}])`)
	launchInspectField = lazy.New(`"(ShmSize|IpcMode|PidMode|NetworkMode|Runtime|Privileged|Image|PathOnHost)":\s*("[^"]{0,300}"|\d{1,18}|true|false)`)
)

// launchInspectSize is the bare number that docker inspect -f
// '{{.HostConfig.ShmSize}}' prints.
func launchInspectSize(in *Lines) *int64 {
	l, _ := in.Peek()
	if !in.After(launchInspectCommands...) || !strings.Contains(in.Prompt().Command, ".ShmSize") {
		return nil
	}
	if n, err := strconv.ParseInt(strings.Trim(strings.TrimSpace(l.Text), "'\""), 10, 64); err == nil && n >= 0 {
		return &n
	}
	return nil
}
