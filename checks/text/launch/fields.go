package launch

import (
	"cmp"
	"os"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// The fields of descriptions that say what an option of docker run does: "PATH --option" or "PATH --option=FORM". A path
// is keys, and conditions ("Name=memlock") on what has a key with a value; each entry of a list on the way counts. A form is
// the option's value: "$value" is the field, and "$name" what stands below a key of it.
var (
	// serviceFields are those of a service of Docker Compose.
	serviceFields = []string{
		"runtime --runtime", "ipc --ipc", "network_mode --network", "pid --pid", "user --user", "privileged --privileged", "shm_size --shm-size",
		"cap_add --cap-add", "devices --device", "gpus --gpus", "tmpfs --tmpfs", "volumes --volume",
		"volumes --mount=type=$type,source=$source,target=$target", "ulimits.memlock --ulimit=memlock=$value",
		"ulimits.memlock.soft --ulimit=memlock=$value", "env_file --env-file=env_file", "cpus --cpus", "deploy.resources.limits.cpus --cpus",
		"mem_limit --memory", "deploy.resources.limits.memory --memory",
	}
	// podFields are those of a container of a pod.
	podFields = []string{"securityContext.capabilities.add --cap-add", "envFrom --env-file=envFrom"}
	// inspectFields are those that docker inspect prints (Docker Engine API, ContainerInspect). Count is 0 beside DeviceIDs.
	inspectFields = []string{
		"HostConfig.Runtime --runtime", "HostConfig.IpcMode --ipc", "HostConfig.PidMode --pid", "HostConfig.NetworkMode --network",
		"HostConfig.Privileged --privileged", "HostConfig.ShmSize --shm-size", "HostConfig.CapAdd --cap-add",
		"HostConfig.Devices.PathOnHost --device", "HostConfig.DeviceRequests --gpus=device=$DeviceIDs", "HostConfig.DeviceRequests.Count --gpus",
		"HostConfig.Ulimits.Name=memlock.Soft --ulimit=memlock=$value", "Mounts --volume=$Source:$Destination",
	}
)

// fields gives a launch what the fields of a description set.
func (w *yamlWalk) fields(l *facts.Launch, n *yaml.Node, all ...string) {
	n = parse.YAMLResolve(n)
	m := parse.YAMLMapping(n) // Once for all fields: it may be made of many others.
	for _, field := range all {
		path, option, _ := strings.Cut(field, " ")
		key, rest, _ := strings.Cut(path, ".")
		name, value, isCondition := strings.Cut(key, "=")
		below := cmp.Or(m[name], parse.YAMLBelow(n, name))
		switch {
		case n == nil:
		case n.Kind == yaml.SequenceNode:
			if !isCondition && setBy(option) != "gpus" { // All of the list sets the part.
				w.stands(l, setBy(option), n)
			}
			for _, entry := range w.list(n) {
				if w.visits++; w.visits < maxVisits && !isSequence(parse.YAMLResolve(entry)) {
					w.fields(l, entry, field)
				}
			}
		case key == "":
			w.option(l, n, option)
		case !isCondition:
			unresolved(l, setBy(option), parse.YAMLText(n))
			w.fields(l, below, rest+" "+option)
		case parse.YAMLText(below) == value:
			w.fields(l, n, rest+" "+option)
		}
	}
}

// setBy is the part of a launch that an option sets.
func setBy(option string) string {
	name, _, _ := strings.Cut(option, "=")
	if part := familyOf("docker").Sets[name]; isPart(part) {
		return part
	}
	return map[string]string{"--ulimit": "memlock_bytes", "--env-file": "variables"}[name]
}

// child is what stands below a key. As in Go's JSON, its case does not matter.
func child(n *yaml.Node, key string) *yaml.Node {
	return cmp.Or(parse.YAMLMapping(n)[key], parse.YAMLBelow(n, key))
}

// option reads a field as the option, and notes its line.
func (w *yamlWalk) option(l *facts.Launch, n *yaml.Node, option string) {
	at, text := n, parse.YAMLText(n)
	name, form, hasForm := strings.Cut(option, "=")
	if hasForm {
		at = nil
		text = strings.TrimRight(os.Expand(form, func(key string) string {
			value := n
			if key != "value" {
				value = child(n, key)
			}
			at = cmp.Or(at, value)
			return strings.Join(w.texts(value), ",")
		}), "/") // A folder may end in it.
		if at == nil && strings.Contains(form, "$") { // It has none of them.
			return
		}
	}
	w.stands(l, setBy(name), cmp.Or(at, n))
	switch {
	case text == "":
	case name == "--volume" && !strings.Contains(text, ":"): // The engine names it.
		unresolved(l, "mounts", text)
	default:
		setOption(l, familyOf("docker").Sets[name], text)
	}
}

// environment reads variables: a mapping, a list of "NAME=value", or one of mappings with a name and a value.
func (w *yamlWalk) environment(l *facts.Launch, n *yaml.Node) {
	openNodes(l, n, "variables")
	for _, entry := range w.list(n) {
		at, value := child(entry, "name"), child(entry, "value")
		name, _, _ := strings.Cut(cmp.Or(parse.YAMLText(at), parse.YAMLText(entry)), "=")
		switch {
		case at == nil && parse.YAMLText(entry) != "":
			dockerVariable(l, parse.YAMLText(entry))
		case value != nil:
			setVariable(l, name, kubernetesReference.Get().ReplaceAllStringFunc(parse.YAMLText(value), func(reference string) string {
				if known, ok := l.Variables[reference[2:len(reference)-1]]; ok {
					return known
				}
				return reference
			}))
		case child(entry, "valueFrom") != nil && variableName.MatchString(name):
			leaveOpen(l, "valueFrom", VariablePart(name))
		default:
			openNodes(l, entry, "variables")
			continue
		}
		w.stands(l, VariablePart(name), cmp.Or(at, entry))
	}
	for name, value := range parse.YAMLMapping(n) {
		if value == nil || value.Tag == "!!null" {
			dockerVariable(l, name)
		} else {
			setVariable(l, name, parse.YAMLText(value))
		}
		w.stands(l, VariablePart(name), value)
	}
}
