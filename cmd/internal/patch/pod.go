package patch

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/cmd/internal/emit"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// yamlForm changes pods, what has a template of pods, and compose files.
type yamlForm struct{}

// container is a container or service of a file.
type container struct {
	launch *facts.Launch
	// name is for people.
	name string
	// key is the name of a service, node what describes it, spec the pod around it.
	key, node, spec *yaml.Node
	// from and to are its lines, counted from 1.
	from, to int
}

func (yamlForm) propose(f *file) error {
	d, err := parseYAML(f)
	if err != nil {
		return err
	}
	var all []*container
	for _, root := range d.roots {
		d.containers(root, 0, &all)
	}
	if len(all) == 0 {
		return ErrKind
	}
	for _, c := range chosen(all) {
		for _, w := range f.concerning(c) {
			before := len(f.splices)
			e := &edit{document: d, want: w, where: c.name}
			var err error
			if c.spec == nil {
				err = e.service(c)
			} else {
				err = e.pod(c)
			}
			if unsafe, ok := errors.AsType[errUnsafe](err); ok {
				f.byHand(w, c.name, unsafe.at, unsafe.note)
			}
			if len(f.splices) > before {
				break // The next one is written when the file was read again.
			}
		}
	}
	return nil
}

// concerning returns the settings that concern a container and that its form can set.
func (f *file) concerning(c *container) []*Want {
	name := "kubernetes"
	if c.spec == nil {
		name = "compose"
	}
	target, _ := emit.Named(name)
	var all []*Want
	gpus := false
	for i := range f.Wants {
		w := &f.Wants[i]
		gpus = gpus || w.Kind == plan.GPUs
		// A variable of the machine's own does not reach a container; of its own, any can lose one.
		sets := target.Sets(w.Setting)
		if w.Kind == plan.Unset {
			sets = len(w.Values) > 0
		}
		if name == "kubernetes" && w.Kind == plan.Device {
			sets = w.IsFor(name)
		}
		if sets && f.concerns(w, c.launch, c.from, c.to) {
			all = append(all, w)
		}
	}
	if name == "kubernetes" && !gpus && f.Vendor != "" { // Of AMD's GPUs, plans have the device nodes.
		all = append([]*Want{{Setting: plan.Setting{Kind: plan.GPUs, Value: "all", Reason: "The device plugin gives the container its GPUs."}}}, all...)
	}
	return all
}

// containers finds containers and services, as the reader of manifests does.
func (d *document) containers(n *yaml.Node, depth int, all *[]*container) {
	if n == nil || n.Kind == yaml.AliasNode || depth > maxDepth || len(*all) >= maxLines {
		return
	}
	if n.Kind == yaml.MappingNode {
		if _, list, _ := entry(n, "containers"); list != nil && list.Kind == yaml.SequenceNode {
			for _, item := range list.Content {
				d.keep(all, &container{name: text(value(item, "name")), node: item, spec: n}, item, "kubernetes")
			}
			return
		}
		if _, services, _ := entry(n, "services"); depth == 0 && services != nil && services.Kind == yaml.MappingNode {
			for i := 0; i+1 < len(services.Content); i += 2 {
				key := services.Content[i]
				d.keep(all, &container{name: key.Value, key: key, node: services.Content[i+1]}, key, "compose")
			}
			return
		}
	}
	for _, child := range n.Content {
		d.containers(child, depth+1, all)
	}
}

// keep keeps a container that the reader of texts knows.
func (d *document) keep(all *[]*container, c *container, at *yaml.Node, kind string) {
	node := parse.YAMLResolve(c.node)
	if node == nil || node.Kind != yaml.MappingNode {
		return
	}
	begins := at.Line
	if kind == "kubernetes" {
		begins = node.Line
	}
	if c.launch = d.launchAt(begins, kind); c.launch == nil {
		return
	}
	c.from, c.to = at.Line, d.limits[at]
	*all = append(*all, c)
}

// chosen are the containers that use GPUs. Where none asks for them, it is the only one that
// could.
func chosen(all []*container) []*container {
	var using, silent []*container
	for _, c := range all {
		switch {
		case usesGPUs(c.launch):
			using = append(using, c)
		case c.launch.GPUs == nil:
			silent = append(silent, c)
		}
	}
	if len(using) == 0 && len(silent) == 1 {
		return silent
	}
	return using
}

// pod writes a want into a container of a pod.
func (e *edit) pod(c *container) error {
	if c.node.Kind == yaml.AliasNode {
		return errUnsafe{c.node.Line - 1, "it is an alias of another part of the file"}
	}
	w := e.want
	switch w.Kind {
	case plan.Unset:
		return e.podUnset(c)
	case plan.Variable:
		return e.podVariable(c)
	case plan.Device:
		e.noteDevices(c)
		return nil
	default: // What a launch states.
	}
	if has(c.launch, w) {
		return nil
	}
	switch w.Kind {
	case plan.GPUs:
		return e.set(c.node, scalar(strconv.Itoa(e.ranksOf(c.launch))), "resources", "limits", e.Vendor+".com/gpu")
	case plan.SharedMemory:
		return e.podMemory(c)
	case plan.Capability:
		if !isRoot(c.launch.User) {
			e.note(c.name, words(w), "It runs as user "+c.launch.User+", for whom an added capability is not in force. Run it as root, or raise the limits of the container runtime.")
			return nil
		}
		return e.set(c.node, list(scalar(w.Name)), "securityContext", "capabilities", "add")
	case plan.Namespace:
		if w.Value != "host" {
			return nil
		}
		return e.set(c.spec, scalar("true"), map[string]string{"ipc": "hostIPC", "network": "hostNetwork"}[w.Name])
	case plan.Mount:
		return e.podMount(c)
	default: // A pod cannot set it.
	}
	return nil
}

// noteDevices tells that a pod gets RDMA devices from a plugin of the cluster, unless it asks
// for a device of one already.
func (e *edit) noteDevices(c *container) {
	if e.want.Name != "/dev/infiniband" || has(c.launch, e.want) {
		return
	}
	for name := range c.launch.Resources {
		if !strings.HasSuffix(name, ".com/gpu") {
			return
		}
	}
	e.note(c.name, "RDMA devices", "A pod gets them from the RDMA device plugin of the cluster or the SR-IOV network operator: add its resource to the limits. Its name is the cluster's own.")
}

// podVariable sets a variable of a container.
func (e *edit) podVariable(c *container) error {
	w, v := e.want, scalar(quoted(strings.ReplaceAll(e.want.Value, "$(", "$$(")))
	for _, item := range items(value(c.node, "env")) {
		if text(value(item, "name")) != w.Name {
			continue
		}
		_, old, _ := entry(parse.YAMLResolve(item), "value")
		switch {
		case old == nil:
			return unsafeAt(item, "its value comes from elsewhere")
		case same(text(old), w.Value) || same(text(old), strings.ReplaceAll(w.Value, "$(", "$$(")):
			return nil
		case !stated(text(old)):
			return unsafeAt(item, "its value refers to others")
		case item.Kind == yaml.AliasNode:
			return unsafeAt(item, "it is an alias of another part of the file")
		}
		return e.replace(old, v.scalar)
	}
	return e.set(c.node, list(mapping("name", scalar(w.Name), "value", v)), "env")
}

// podUnset removes a variable of a container.
func (e *edit) podUnset(c *container) error {
	key, env, _ := entry(c.node, "env")
	if env == nil {
		return nil
	}
	if env.Kind == yaml.AliasNode {
		key, env = nil, env.Alias
	}
	for _, item := range items(env) {
		if !e.want.removes(text(value(item, "name")), text(value(item, "value"))) {
			continue
		}
		dash, ok := e.dash(item)
		if !ok || env.Style&yaml.FlowStyle != 0 || item.Kind == yaml.AliasNode || item.Anchor != "" {
			return unsafeAt(item, "it does not stand on lines of its own")
		}
		return e.remove(item, dash, key, env)
	}
	return nil
}

// podMemory gives a container /dev/shm of a size: its own volume is made larger, or one is
// added and mounted.
func (e *edit) podMemory(c *container) error {
	quantity := remedies.SizeQuantity(e.want.Value)
	volumes := map[string]*yaml.Node{}
	for _, v := range items(value(c.spec, "volumes")) {
		volumes[text(value(v, "name"))] = parse.YAMLResolve(v)
	}
	mounts := items(value(c.node, "volumeMounts"))
	i := slices.IndexFunc(mounts, isMemoryMount)
	if i < 0 {
		name := e.sharedVolume(c, volumes)
		if name != "" {
			return e.set(c.node, list(mapping("name", scalar(name), "mountPath", scalar("/dev/shm"))), "volumeMounts")
		}
		name = free("shm", volumes)
		if err := e.possible(c.node, mapping("name", scalar(name), "mountPath", scalar("/dev/shm")), "volumeMounts"); err != nil {
			return err
		}
		return e.set(c.spec, list(mapping("name", scalar(name), "emptyDir", mapping("medium", scalar("Memory"), "sizeLimit", scalar(quantity)))), "volumes")
	}
	volume := volumes[text(value(mounts[i], "name"))]
	_, empty, _ := entry(volume, "emptyDir")
	switch {
	case volume == nil:
		return unsafeAt(mounts[i], "its volume is not among those of the pod")
	case empty == nil: // Of another kind, whose size is not known here.
		return nil
	case empty.Kind == yaml.ScalarNode && empty.Tag != "!!null":
		return unsafeAt(empty, "emptyDir has another form there")
	case !strings.EqualFold(text(value(empty, "medium")), "Memory"):
		if empty.Kind == yaml.MappingNode && len(empty.Content) == 0 {
			return e.inFlow(empty, mapping("medium", scalar("Memory"), "sizeLimit", scalar(quantity)).pairs())
		}
		return e.set(volume, scalar("Memory"), "emptyDir", "medium")
	}
	return e.set(volume, scalar(quantity), "emptyDir", "sizeLimit")
}

// possible says why an item cannot be added to a list, so that no half of a setting is
// written.
func (e *edit) possible(m *yaml.Node, item *tree, path string) error {
	proposed, said := len(e.splices), maps.Clone(e.said)
	err := e.set(m, list(item), path)
	e.splices, e.said = e.splices[:proposed], said
	return err
}

// isMemoryMount reports whether a volume is mounted at /dev/shm.
func isMemoryMount(m *yaml.Node) bool {
	return strings.TrimRight(text(value(m, "mountPath")), "/") == "/dev/shm"
}

// sharedVolume is a volume in memory that another container of the pod has at /dev/shm, or
// none has mounted; empty where there is none.
func (e *edit) sharedVolume(c *container, volumes map[string]*yaml.Node) string {
	elsewhere := map[string]bool{}
	for _, key := range []string{"containers", "initContainers"} {
		for _, other := range items(value(c.spec, key)) {
			for _, m := range items(value(other, "volumeMounts")) {
				name := text(value(m, "name"))
				elsewhere[name] = elsewhere[name] || !isMemoryMount(m)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(volumes)) {
		if strings.EqualFold(text(value(volumes[name], "emptyDir", "medium")), "Memory") && !elsewhere[name] {
			return name
		}
	}
	return ""
}

// free is a name that no volume has.
func free(name string, taken map[string]*yaml.Node) string {
	for i := 1; ; i++ {
		candidate := name
		if i > 1 {
			candidate += "-" + strconv.Itoa(i)
		}
		if taken[candidate] == nil {
			return candidate
		}
	}
}

// podMount mounts a folder of the host.
func (e *edit) podMount(c *container) error {
	path, options, _ := strings.Cut(e.want.Value, ":")
	volumes := map[string]*yaml.Node{}
	name := ""
	for _, v := range items(value(c.spec, "volumes")) {
		volumes[text(value(v, "name"))] = v
		if text(value(v, "hostPath", "path")) == e.want.Name {
			name = text(value(v, "name"))
		}
	}
	if name == "" {
		name = free("host", volumes)
		if err := e.possible(c.node, mapping("name", scalar(name), "mountPath", scalar(path)), "volumeMounts"); err != nil {
			return err
		}
		return e.set(c.spec, list(mapping("name", scalar(name), "hostPath", mapping("path", scalar(e.want.Name)))), "volumes")
	}
	mount := mapping("name", scalar(name), "mountPath", scalar(path))
	if options == "ro" {
		mount = mapping("name", scalar(name), "mountPath", scalar(path), "readOnly", scalar("true"))
	}
	return e.set(c.node, list(mount), "volumeMounts")
}
