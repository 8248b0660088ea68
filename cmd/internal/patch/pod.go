package patch

import (
	"cmp"
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

// maxDepth bounds how deep a document is followed.
const maxDepth = 60

// container is a container or service of a file.
type container struct {
	// launch is what the reader of texts says of it; nil if it does not know it.
	launch *facts.Launch
	// kind is that of the launch, and of the target of gpudoctor advise --for: "kubernetes" or "compose".
	kind string
	// name is for people.
	name string
	// node describes it, and spec is the pod around it; nil for a service.
	node, spec *yaml.Node
	// from and to are its lines, counted from 1, and line is that by which the reader of texts knows it.
	from, to, line int
}

// change writes the settings into pods, what has a template of pods, and services.
func (d *document) change() error {
	if err := d.parse(); err != nil {
		return err
	}
	all := d.containers
	for _, c := range all { // Another one is not known.
		if i := slices.IndexFunc(d.launches, func(l facts.Launch) bool { return l.Line == c.line && l.Kind == c.kind }); i >= 0 {
			c.launch = &d.launches[i]
		}
	}
	if !slices.ContainsFunc(all, func(c *container) bool { return c.launch != nil }) {
		return ErrKind
	}
	for _, i := range chosen(all) {
		d.where = all[i].name
		made := map[string]bool{} // Of several settings for the same thing, the first counts.
		for j := range d.Wants {
			w := &d.Wants[j]
			thing := string(w.Kind) + " " + w.Name
			if made[thing] || d.isFull() || len(d.containers) != len(all) || !d.concernsContainer(all[i], w) {
				continue
			}
			d.want = w
			before := len(d.changes)
			c := d.containers[i]
			c.launch = all[i].launch
			d.give(c)
			d.finish(c)
			made[thing] = len(d.changes) > before && w.Kind != plan.Unset
		}
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
	return sets && w.concerns(c.launch, c.from, c.to)
}

// find finds containers and services, as the reader of manifests does.
func (d *document) find(n *yaml.Node, depth int) {
	if n.Kind == yaml.AliasNode || depth > maxDepth {
		return
	}
	if _, list := own(n, "containers"); list != nil && list.Kind == yaml.SequenceNode {
		for _, item := range list.Content {
			if node := parse.YAMLResolve(item); node != nil {
				d.keep(&container{kind: "kubernetes", name: text(item, "name"), node: item, spec: n}, item, node.Line)
			}
		}
		return
	}
	if _, services := own(n, "services"); depth == 0 && services != nil && services.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(services.Content); i += 2 {
			key := services.Content[i]
			d.keep(&container{kind: "compose", name: key.Value, node: services.Content[i+1]}, key, key.Line)
		}
		return
	}
	for _, child := range n.Content {
		d.find(child, depth+1)
	}
}

// keep keeps a container that is a mapping, which the reader of texts knows by a line.
func (d *document) keep(c *container, at *yaml.Node, number int) {
	if node := parse.YAMLResolve(c.node); node != nil && node.Kind == yaml.MappingNode {
		c.line, c.from, c.to = number, at.Line, d.limits[at]
		d.containers = append(d.containers, c)
	}
}

// chosen are the numbers of the containers that use GPUs. Where none asks for them, it is the only one that
// could.
func chosen(all []*container) []int {
	var using, silent []int
	for i, c := range all {
		switch {
		case c.launch == nil:
		case usesGPUs(c.launch):
			using = append(using, i)
		case c.launch.GPUs == nil:
			silent = append(silent, i)
		}
	}
	if len(using) == 0 && len(silent) == 1 {
		return silent
	}
	return using
}

// give writes the setting into a container.
func (d *document) give(c *container) {
	w := d.want
	switch {
	case c.node.Kind == yaml.AliasNode:
		d.fail(c.node, "it is an alias of another part of the file")
	case w.Kind == plan.Unset || w.Kind == plan.Variable:
		d.variable(c)
	case w.Kind == plan.Device && c.spec != nil:
		d.noteDevices(c)
	case has(c.launch, w):
	case w.Kind == plan.Capability && !remedies.IsRoot(c.launch.User):
		note := "It runs as user " + c.launch.User + ", for whom an added capability is not in force."
		if c.spec != nil {
			note += " Run it as root, or raise the limits of the container runtime."
		}
		d.note(words(w), note)
	case c.spec == nil:
		d.service(c)
	default:
		d.pod(c)
	}
}

// environment are the keys of a container's variables.
var environment = map[string]string{"kubernetes": "env", "compose": "environment"}

// entryOf is what sets a variable among those of a container itself: the key or item, and the value if it stands there.
func entryOf(env *yaml.Node, name string) (at, by *yaml.Node) {
	at, by = own(env, name)
	for _, item := range items(env) {
		if setting, _, ok := strings.Cut(text(item), "="); ok && setting == name {
			at, by = item, item
		}
		if text(item, "name") == name {
			at = item
			_, by = own(parse.YAMLResolve(item), "value")
		}
	}
	return at, by
}

// variable sets a variable of a container, or removes it.
func (d *document) variable(c *container) {
	w, key, sign := d.want, environment[c.kind], "$"
	if c.spec != nil {
		sign = "$("
	}
	escaped := strings.ReplaceAll(w.Value, sign, "$"+sign)
	_, env := own(c.node, key)
	at, by := entryOf(env, w.Name)
	old, isKnown := c.launch.Variables[w.Name]
	_, isUnknown := c.launch.Unknown["variables["+w.Name+"]"]
	isList := env != nil && env.Kind == yaml.SequenceNode
	fits := isKnown && (same(old, w.Value) || same(old, escaped))
	if w.Kind == plan.Unset {
		fits = !isKnown || len(w.Values) > 0 && !slices.Contains(w.Values, old)
	}
	switch isSet := isKnown || isUnknown || at != nil; {
	case fits:
	case isSet && (at == nil || by == nil || by.Tag == "!!null" || !stated(by.Value) || d.shared[env] || d.shared[at] || at.Kind == yaml.AliasNode):
		d.fail(cmp.Or(at, env, c.node), "its value comes from elsewhere, or other parts of the file share it")
	case w.Kind == plan.Unset:
		d.cut(c.node, key, env, at)
	case at != nil && isList && c.spec == nil:
		d.exchange(by, fresh(strconv.Quote(w.Name+"="+escaped)))
	case at != nil && isList:
		d.exchange(by, fresh(strconv.Quote(escaped)))
	case isList && c.spec == nil:
		d.merge(c.node, fresh("environment: ["+strconv.Quote(w.Name+"="+escaped)+"]"))
	case c.spec == nil:
		d.merge(c.node, serviceOf(d.emitted(c)))
	default:
		d.pod(c)
	}
}

// emitted is what gpudoctor advise --for writes of the setting.
func (d *document) emitted(c *container) *yaml.Node {
	target, _ := emit.Named(c.kind)
	p := &plan.Plan{Settings: []plan.Setting{d.want.Setting}}
	if d.want.Kind == plan.GPUs {
		p.Vendor, p.Ranks = d.Vendor, make([]plan.Rank, d.ranksOf(c.launch))
	}
	return fresh(target.Write(p, ""))
}

// without is a mapping without some keys.
func without(m *yaml.Node, names ...string) *yaml.Node {
	left := &yaml.Node{Kind: yaml.MappingNode, Tag: m.Tag}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if !slices.Contains(names, m.Content[i].Value) {
			left.Content = append(left.Content, m.Content[i:i+2]...)
		}
	}
	return left
}

// pod writes the setting into a container of a pod, and into the pod.
func (d *document) pod(c *container) {
	spec := value(d.emitted(c), "spec")
	node := without(items(spec, "containers")[0], "name", "image")
	spec = without(spec, "restartPolicy", "containers")
	if added, mounts := items(spec, "volumes"), items(node, "volumeMounts"); len(added) > 0 {
		i := slices.IndexFunc(items(c.node, "volumeMounts"), isMemoryMount)
		if i >= 0 && d.want.Kind == plan.SharedMemory {
			d.enlarge(c, items(c.node, "volumeMounts")[i], without(added[0], "name"))
			return
		}
		name, isThere := nameFor(added[0], items(c.spec, "volumes"))
		for _, n := range []*yaml.Node{added[0], mounts[0]} {
			_, v := own(n, "name")
			v.Value = name
		}
		if isThere {
			spec = without(spec, "volumes")
		}
	}
	_ = d.merge(c.node, node) && d.merge(c.spec, spec)
}

// nameFor is the name of a new volume: that of the same folder of the host if it is there already, or else one that is free.
func nameFor(added *yaml.Node, volumes []*yaml.Node) (name string, isThere bool) {
	names := map[string]bool{}
	for _, v := range volumes {
		names[text(v, "name")] = true
		if path := text(added, "hostPath", "path"); path != "" && text(v, "hostPath", "path") == path {
			return text(v, "name"), true
		}
	}
	base, _, _ := strings.Cut(text(added, "name"), "-")
	name = base
	for i := 2; names[name]; i++ {
		name = base + "-" + strconv.Itoa(i)
	}
	return name, false
}

// enlarge makes the volume of a mount larger.
func (d *document) enlarge(c *container, mount, by *yaml.Node) {
	i := slices.IndexFunc(items(c.spec, "volumes"), func(v *yaml.Node) bool { return text(v, "name") == text(mount, "name") })
	if i < 0 {
		d.fail(mount, "its volume is not among those of the pod")
		return
	}
	volume := parse.YAMLResolve(items(c.spec, "volumes")[i])
	if _, empty := own(volume, "emptyDir"); empty == nil { // Of another kind, whose size is not known here.
		return
	}
	d.merge(volume, by)
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

// isMemoryMount reports whether a volume is mounted at /dev/shm.
func isMemoryMount(m *yaml.Node) bool {
	return strings.TrimRight(text(m, "mountPath"), "/") == "/dev/shm"
}
