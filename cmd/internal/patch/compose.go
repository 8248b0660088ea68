package patch

import (
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// service writes the setting into a service of a compose file.
func (d *document) service(c *container) bool {
	w, n := d.want, c.node
	namespace := map[string]string{"ipc": "ipc", "network": "network_mode"}[w.Name]
	key := map[plan.Kind]string{plan.GPUs: "gpus", plan.SharedMemory: "shm_size", plan.Namespace: namespace}[w.Kind]
	if !stated(text(n, key)) {
		return d.fail(value(n, key), "its value refers to a variable")
	}
	switch w.Kind {
	case plan.GPUs:
		return d.set(n, "[{driver: nvidia, count: all, capabilities: [gpu]}]", "deploy", "resources", "reservations", "devices")
	case plan.SharedMemory:
		if slices.Contains(c.launch.Mounts, "tmpfs:/dev/shm") {
			d.byHand(c.from-1, "a tmpfs at /dev/shm has the size")
			return false
		}
		return d.set(n, w.Value, key)
	case plan.Limit:
		return d.serviceLimit(n)
	case plan.Capability:
		return d.set(n, "["+w.Name+"]", "cap_add")
	case plan.Device:
		return d.set(n, "["+w.Name+":"+w.Name+"]", "devices")
	case plan.Group:
		for _, g := range items(n, "group_add") {
			if text(g) == w.Name || strings.Trim(text(g), "0123456789") == "" || !stated(text(g)) { // A number may be that group's.
				return true
			}
		}
		return d.set(n, "["+w.Name+"]", "group_add")
	case plan.Namespace:
		for _, other := range []string{"networks", "ports"} {
			if old := value(n, other); old != nil && w.Name == "network" {
				return d.fail(old, "with network_mode: host, "+other+" must go")
			}
		}
		return d.set(n, w.Value, key)
	case plan.Mount:
		return d.set(n, "["+strconv.Quote(w.Name+":"+w.Value)+"]", "volumes")
	default: // A service cannot set it.
	}
	return true
}

// serviceLimit raises a limit of a service.
func (d *document) serviceLimit(n *yaml.Node) bool {
	w := d.want
	if w.Name == "pids" {
		if text(n, "pids_limit") == w.Value {
			return true
		}
		return d.set(n, w.Value, "pids_limit")
	}
	soft, hard, both := strings.Cut(w.Value, ":")
	if !both {
		hard = soft
	}
	old := value(n, "ulimits", w.Name)
	oldSoft, oldHard := text(old, "soft"), text(old, "hard")
	switch isScalar := old != nil && old.Kind == yaml.ScalarNode; {
	case old == nil && both:
		return d.set(n, "{soft: "+soft+", hard: "+hard+"}", "ulimits", w.Name)
	case !stated(text(old) + oldSoft + oldHard):
		return d.fail(old, "its value refers to a variable")
	case isScalar && text(old) == soft && soft == hard:
		return true
	case isScalar && both:
		return d.fail(old, "its value has another form there")
	case isScalar || old == nil:
		return d.set(n, soft, "ulimits", w.Name)
	case oldHard != hard: // First, since the soft limit must not be above it.
		return d.set(n, hard, "ulimits", w.Name, "hard")
	case oldSoft != soft:
		return d.set(n, soft, "ulimits", w.Name, "soft")
	}
	return true
}
