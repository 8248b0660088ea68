package patch

import (
	"fmt"
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

// container is a container or service of a file.
type container struct {
	launch *facts.Launch
	// kind is that of the launch, and of the target of gpudoctor advise --for: "kubernetes" or "compose".
	kind string
	// name is for people.
	name string
	// node describes it, and spec is the pod around it; nil for a service.
	node, spec *yaml.Node
	// from and to are its lines, counted from 1.
	from, to int
}

// proposeYAML changes pods, what has a template of pods, and compose files.
func proposeYAML(f *file) error {
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
		f.write(c.name, func(w *Want) {
			if f.concernsContainer(c, w) {
				d.setting(c)
			}
		})
	}
	return nil
}

// concernsContainer reports whether a setting concerns a container, and its form can set it.
func (f *file) concernsContainer(c *container, w *Want) bool {
	target, _ := emit.Named(c.kind)
	sets := target.Sets(w.Setting)
	switch {
	case w.Kind == plan.Unset: // A variable of the machine's own does not reach a container; of its own, any can lose one.
		sets = len(w.Values) > 0
	case w.Kind == plan.Device && c.spec != nil:
		sets = w.IsFor(c.kind)
	}
	return sets && f.concerns(w, c.launch, c.from, c.to)
}

// containers finds containers and services, as the reader of manifests does.
func (d *document) containers(n *yaml.Node, depth int, all *[]*container) {
	if n.Kind == yaml.AliasNode || depth > maxDepth {
		return
	}
	if _, list := own(n, "containers"); list != nil && list.Kind == yaml.SequenceNode {
		for _, item := range list.Content {
			if node := parse.YAMLResolve(item); node != nil {
				d.keep(all, &container{kind: "kubernetes", name: text(item, "name"), node: item, spec: n}, item, node.Line)
			}
		}
		return
	}
	if _, services := own(n, "services"); depth == 0 && services != nil && services.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(services.Content); i += 2 {
			key := services.Content[i]
			d.keep(all, &container{kind: "compose", name: key.Value, node: services.Content[i+1]}, key, key.Line)
		}
		return
	}
	for _, child := range n.Content {
		d.containers(child, depth+1, all)
	}
}

// keep keeps a container that the reader of texts knows at a line.
func (d *document) keep(all *[]*container, c *container, at *yaml.Node, number int) {
	i := slices.IndexFunc(d.launches, func(l facts.Launch) bool { return l.Line == number && l.Kind == c.kind })
	if node := parse.YAMLResolve(c.node); i >= 0 && node != nil && node.Kind == yaml.MappingNode {
		c.launch, c.from, c.to = &d.launches[i], at.Line, d.limits[at]
		*all = append(*all, c)
	}
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

// setting writes the setting into a container.
func (d *document) setting(c *container) bool {
	w := d.want
	switch {
	case c.node.Kind == yaml.AliasNode:
		return d.fail(c.node, "it is an alias of another part of the file")
	case w.Kind == plan.Unset:
		return d.unset(c)
	case w.Kind == plan.Variable:
		return d.variable(c)
	case w.Kind == plan.Device && c.spec != nil:
		d.noteDevices(c)
		return true
	case has(c.launch, w):
		return true
	case w.Kind == plan.Capability && !isRoot(c.launch.User):
		note := "It runs as user " + c.launch.User + ", for whom an added capability is not in force."
		if c.spec != nil {
			note += " Run it as root, or raise the limits of the container runtime."
		}
		d.note(words(w), note)
		return true
	case c.spec == nil:
		return d.service(c)
	}
	return d.pod(c)
}

// environment are the keys of a container's variables.
var environment = map[string]string{"kubernetes": "env", "compose": "environment"}

// variable is where a container sets a variable.
type variable struct {
	name, value string
	// at is the key or item that sets it, holder what holds that, and by the node of the value; nil where it comes from elsewhere.
	at, holder, by *yaml.Node
}

// variablesOf are the variables of a mapping, of a list of texts or of mappings, and behind them those that are merged in.
func variablesOf(env *yaml.Node, depth int) (all []variable) {
	env = parse.YAMLResolve(env)
	if env == nil || depth > 4 {
		return nil
	}
	var merged []variable
	for i, n := range env.Content {
		v := variable{at: n, holder: env}
		switch isMapping := env.Kind == yaml.MappingNode; {
		case isMapping && i%2 == 0:
			continue
		case isMapping && env.Content[i-1].Value == "<<" || depth > 0 && !isMapping:
			merged = append(merged, variablesOf(n, depth+1)...)
			continue
		case isMapping:
			v.at, v.name, v.value = env.Content[i-1], env.Content[i-1].Value, text(n)
			if n.Tag != "!!null" {
				v.by = n
			}
		case text(n) != "":
			var isSet bool
			if v.name, v.value, isSet = strings.Cut(text(n), "="); isSet {
				v.by = n
			}
		default:
			v.name, v.value = text(n, "name"), text(n, "value")
			_, v.by = own(parse.YAMLResolve(n), "value")
		}
		all = append(all, v)
	}
	return append(all, merged...)
}

// variable sets a variable of a container.
func (d *document) variable(c *container) bool {
	w, key, sign := d.want, environment[c.kind], "$"
	if c.spec != nil {
		sign = "$("
	}
	escaped := strings.ReplaceAll(w.Value, sign, "$"+sign)
	env, by := value(c.node, key), strconv.Quote(escaped)
	all := variablesOf(env, 0)
	i := slices.IndexFunc(all, func(v variable) bool { return v.name == w.Name })
	var v variable
	if i >= 0 {
		v = all[i]
	}
	switch isMapping := c.spec == nil && (env == nil || env.Kind != yaml.SequenceNode); {
	case i >= 0 && v.by != nil && (same(v.value, w.Value) || same(v.value, escaped)):
		return true
	case i >= 0 && (v.by == nil || !stated(v.value)):
		return d.fail(v.at, "its value comes from elsewhere")
	case isMapping:
		return d.set(c.node, by, key, w.Name)
	case i < 0 && c.spec != nil:
		return d.set(c.node, fmt.Sprintf("[{name: %s, value: %s}]", w.Name, by), key)
	case i < 0:
		return d.set(c.node, "["+strconv.Quote(w.Name+"="+escaped)+"]", key)
	case v.at.Kind == yaml.AliasNode:
		return d.fail(v.at, "it is an alias of another part of the file")
	case c.spec == nil:
		by = w.Name + "=" + escaped
		if v.at.Style != 0 || strings.ContainsAny(by, "#:,[]{}&*!|>'\"%@` ") {
			by = strconv.Quote(by)
		}
	}
	return d.replace(v.by, by)
}

// unset removes a variable of a container where it stands, for all that share it.
func (d *document) unset(c *container) bool {
	key, env := own(c.node, environment[c.kind])
	for _, v := range variablesOf(value(c.node, environment[c.kind]), 0) {
		if !d.want.removes(v.name, v.value) {
			continue
		}
		if v.holder != env {
			key = nil // It stands elsewhere.
		}
		return d.cut(v.at, key, v.holder)
	}
	return true
}

// pod writes the setting into a container of a pod.
func (d *document) pod(c *container) bool {
	switch w := d.want; w.Kind {
	case plan.GPUs:
		return d.set(c.node, strconv.Itoa(d.ranksOf(c.launch)), "resources", "limits", d.Vendor+".com/gpu")
	case plan.SharedMemory:
		return d.podMemory(c)
	case plan.Capability:
		return d.set(c.node, "["+w.Name+"]", "securityContext", "capabilities", "add")
	case plan.Namespace:
		if w.Value == "host" {
			return d.set(c.spec, "true", map[string]string{"ipc": "hostIPC", "network": "hostNetwork"}[w.Name])
		}
	case plan.Mount:
		isThere := func(volume *yaml.Node) bool { return text(volume, "hostPath", "path") == w.Name }
		path, options, _ := strings.Cut(w.Value, ":")
		if options == "ro" {
			path += ", readOnly: true"
		}
		volumes := volumesOf(c.spec)
		return d.mount(c, lastOf(volumes, isThere), "host", path, "hostPath: {path: "+w.Name+"}")
	default: // A pod cannot set it.
	}
	return true
}

// noteDevices tells that a pod gets RDMA devices from a plugin of the cluster, unless it asks
// for a device of one already.
func (d *document) noteDevices(c *container) {
	asks := func(name string) bool { return !strings.HasSuffix(name, ".com/gpu") }
	if d.want.Name == "/dev/infiniband" && !has(c.launch, d.want) && !slices.ContainsFunc(slices.Collect(maps.Keys(c.launch.Resources)), asks) {
		d.note("RDMA devices", "A pod gets them from the RDMA device plugin of the cluster or the SR-IOV network operator: "+
			"add its resource to the limits. Its name is the cluster's own.")
	}
}

// volumesOf are the volumes of a pod, by name.
func volumesOf(spec *yaml.Node) map[string]*yaml.Node {
	volumes := map[string]*yaml.Node{}
	for _, v := range items(spec, "volumes") {
		volumes[text(v, "name")] = parse.YAMLResolve(v)
	}
	return volumes
}

// lastOf is the name of the volume for which something holds; empty if there is none.
func lastOf(volumes map[string]*yaml.Node, holds func(*yaml.Node) bool) string {
	for _, name := range slices.Sorted(maps.Keys(volumes)) {
		if holds(volumes[name]) {
			return name
		}
	}
	return ""
}

// podMemory gives a container /dev/shm of a size: its own volume is made larger, or one is
// added and mounted.
func (d *document) podMemory(c *container) bool {
	size := remedies.SizeQuantity(d.want.Value)
	both := "medium: Memory, sizeLimit: " + size
	volumes, mounts := volumesOf(c.spec), items(c.node, "volumeMounts")
	i := slices.IndexFunc(mounts, isMemoryMount)
	if i < 0 {
		return d.mount(c, sharedVolume(c.spec, volumes), "shm", "/dev/shm", "emptyDir: {"+both+"}")
	}
	volume := volumes[text(mounts[i], "name")]
	_, empty := own(volume, "emptyDir")
	switch {
	case volume == nil:
		return d.fail(mounts[i], "its volume is not among those of the pod")
	case empty == nil: // Of another kind, whose size is not known here.
		return true
	case empty.Kind == yaml.ScalarNode && empty.Tag != "!!null":
		return d.fail(empty, "emptyDir has another form there")
	case strings.EqualFold(text(empty, "medium"), "Memory"):
		return d.set(volume, size, "emptyDir", "sizeLimit")
	case empty.Kind == yaml.MappingNode && len(empty.Content) == 0:
		d.place = "volumes"
		return d.inFlow(empty, both)
	}
	return d.set(volume, "Memory", "emptyDir", "medium")
}

// isMemoryMount reports whether a volume is mounted at /dev/shm.
func isMemoryMount(m *yaml.Node) bool {
	return strings.TrimRight(text(m, "mountPath"), "/") == "/dev/shm"
}

// sharedVolume is a volume in memory that another container of the pod has at /dev/shm, or
// none has mounted; empty where there is none.
func sharedVolume(spec *yaml.Node, volumes map[string]*yaml.Node) string {
	elsewhere := map[string]bool{}
	for _, key := range []string{"containers", "initContainers"} {
		for _, other := range items(spec, key) {
			for _, m := range items(other, "volumeMounts") {
				name := text(m, "name")
				elsewhere[name] = elsewhere[name] || !isMemoryMount(m)
			}
		}
	}
	return lastOf(volumes, func(v *yaml.Node) bool {
		return strings.EqualFold(text(v, "emptyDir", "medium"), "Memory") && !elsewhere[text(v, "name")]
	})
}

// mount mounts a volume of the pod, which is added first where it has none: of a name that is free, and not if it cannot be mounted.
func (d *document) mount(c *container, volume, name, path, source string) bool {
	if volume != "" {
		return d.set(c.node, "[{name: "+volume+", mountPath: "+path+"}]", "volumeMounts")
	}
	volumes := volumesOf(c.spec)
	free := name
	for i := 2; volumes[free] != nil; i++ {
		free = name + "-" + strconv.Itoa(i)
	}
	proposed, said := len(d.splices), maps.Clone(d.said)
	isPossible := d.mount(c, free, name, path, source)
	if d.splices, d.said = d.splices[:proposed], said; !isPossible {
		return false
	}
	return d.set(c.spec, "[{name: "+free+", "+source+"}]", "volumes")
}
