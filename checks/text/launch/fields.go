package launch

import (
	"cmp"
	"os"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/launch/place"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// field is a field of a description that says what an option of docker run does.
type field struct {
	// path is where it stands: keys, and conditions ("type=GPU") on what has a key with a value. Each entry of a list on
	// the way counts. form is the option's value: "$value" is the field, and "$name" what stands below a key of it.
	path, option, form string
}

var (
	// serviceFields are those of a service of Docker Compose.
	serviceFields = []field{
		{"runtime", "--runtime", ""}, {"ipc", "--ipc", ""}, {"network_mode", "--network", ""}, {"pid", "--pid", ""}, {"user", "--user", ""},
		{"privileged", "--privileged", ""}, {"shm_size", "--shm-size", ""}, {"cap_add", "--cap-add", ""}, {"devices", "--device", ""},
		{"gpus", "--gpus", ""}, {"tmpfs", "--tmpfs", ""},
		{"volumes", "--volume", ""}, {"volumes", "--mount", "type=$type,source=$source,target=$target"},
		{"ulimits.memlock", "--ulimit", "memlock=$value"}, {"ulimits.memlock.soft", "--ulimit", "memlock=$value"},
		{"cpus", "--cpus", ""}, {"deploy.resources.limits.cpus", "--cpus", ""},
		{"mem_limit", "--memory", ""}, {"deploy.resources.limits.memory", "--memory", ""},
	}
	// taskFields are those of a task definition of ECS, and taskContainerFields those of one of its containers (Amazon
	// ECS API, TaskDefinition and ContainerDefinition).
	taskFields          = []field{{"pidMode", "--pid", ""}, {"ipcMode", "--ipc", ""}}
	taskContainerFields = []field{
		{"privileged", "--privileged", ""}, {"linuxParameters.capabilities.add", "--cap-add", ""},
		{"resourceRequirements.type=GPU.value", "--gpus", ""}, {"ulimits.name=memlock.softLimit", "--ulimit", "memlock=$value"},
		{"mountPoints", "--volume", "$sourceVolume:$containerPath"}, {"linuxParameters.tmpfs", "--tmpfs", "$containerPath"},
		{"linuxParameters.sharedMemorySize", "--shm-size", "${value}m"}, {"linuxParameters.devices.hostPath", "--device", ""},
	}
	// inspectFields are those that docker inspect prints (Docker Engine API, ContainerInspect). Count is 0 beside DeviceIDs.
	inspectFields = []field{
		{"HostConfig.Runtime", "--runtime", ""}, {"HostConfig.IpcMode", "--ipc", ""}, {"HostConfig.PidMode", "--pid", ""},
		{"HostConfig.NetworkMode", "--network", ""}, {"HostConfig.Privileged", "--privileged", ""}, {"HostConfig.ShmSize", "--shm-size", ""},
		{"HostConfig.CapAdd", "--cap-add", ""}, {"HostConfig.Devices.PathOnHost", "--device", ""},
		{"HostConfig.DeviceRequests", "--gpus", "device=$DeviceIDs"}, {"HostConfig.DeviceRequests.Count", "--gpus", ""},
		{"HostConfig.Ulimits.Name=memlock.Soft", "--ulimit", "memlock=$value"}, {"Mounts", "--volume", "$Source:$Destination"},
	}
)

// part is the part of a launch that the field sets.
func (f *field) part() string {
	return cmp.Or(dockerParts[f.option], map[string]string{"--ulimit": "memlock_bytes"}[f.option])
}

// fields gives a launch what the fields of a description set.
func (w *yamlWalk) fields(l *facts.Launch, n *yaml.Node, all ...field) {
	n = parse.YAMLResolve(n)
	for _, f := range all {
		key, rest, _ := strings.Cut(f.path, ".")
		name, value, isCondition := strings.Cut(key, "=")
		switch {
		case n == nil:
		case n.Kind == yaml.SequenceNode:
			if !isCondition { // All of the list sets the part.
				w.stands(l, f.part(), n)
			}
			for _, entry := range w.list(n) {
				if w.visits++; w.visits < maxVisits && !isSequence(parse.YAMLResolve(entry)) {
					w.fields(l, entry, f)
				}
			}
		case key == "":
			w.option(l, n, f)
		case !isCondition:
			openNodes(l, n, f.part())
			w.fields(l, child(n, key), field{rest, f.option, f.form})
		case yamlText(child(n, name)) == value:
			w.fields(l, n, field{rest, f.option, f.form})
		}
	}
}

// child is what stands below a key. As in Go's JSON, its case does not matter.
func child(n *yaml.Node, key string) *yaml.Node {
	return cmp.Or(yamlMapping(n)[key], parse.YAMLBelow(n, key))
}

// option reads a field as the option, and notes its line.
func (w *yamlWalk) option(l *facts.Launch, n *yaml.Node, f field) {
	text := yamlText(n)
	if at := n; f.form != "" {
		n = nil
		text = strings.TrimRight(os.Expand(f.form, func(key string) string {
			value := at
			if key != "value" {
				value = child(at, key)
			}
			n = cmp.Or(n, value)
			return strings.Join(w.texts(value), ",")
		}), "/") // A folder may end in it.
	}
	w.stands(l, f.part(), n)
	switch {
	case text == "":
	case f.option == "--volume" && !strings.Contains(text, ":"): // The engine names it.
		unresolved(l, "mounts", text)
	default:
		dockerOption(l, f.option, text)
	}
}

// environment reads variables: a mapping, or a list of "NAME=value". One without a value has that of the shell.
func (w *yamlWalk) environment(l *facts.Launch, n *yaml.Node) {
	for _, entry := range w.list(n) {
		dockerVariable(l, yamlText(entry))
		if name, _, _ := strings.Cut(yamlText(entry), "="); name != "" {
			w.stands(l, place.Variable(name), entry)
		}
	}
	for name, value := range yamlMapping(n) {
		if value == nil || value.Tag == "!!null" {
			dockerVariable(l, name)
		} else {
			setVariable(l, name, yamlText(value))
		}
		w.stands(l, place.Variable(name), value)
	}
}
