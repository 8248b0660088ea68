package patch

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// service writes the setting into a service of a compose file.
func (d *document) service(c *container) {
	w, n := d.want, c.node
	namespace := map[string]string{"ipc": "ipc", "network": "network_mode"}[w.Name]
	key := map[plan.Kind]string{plan.GPUs: "gpus", plan.SharedMemory: "shm_size", plan.Namespace: namespace}[w.Kind]
	if !stated(text(n, key)) {
		d.fail(value(n, key), "its value refers to a variable")
		return
	}
	switch w.Kind {
	case plan.GPUs:
		d.set(n, "[{driver: nvidia, count: all, capabilities: [gpu]}]", "deploy", "resources", "reservations", "devices")
	case plan.SharedMemory:
		if slices.Contains(c.launch.Mounts, "tmpfs:/dev/shm") {
			d.byHand(c.from-1, "a tmpfs at /dev/shm has the size")
			return
		}
		d.set(n, w.Value, key)
	case plan.Limit:
		d.serviceLimit(n)
	case plan.Capability:
		d.set(n, "["+w.Name+"]", "cap_add")
	case plan.Device:
		d.set(n, "["+w.Name+":"+w.Name+"]", "devices")
	case plan.Group:
		for _, g := range items(n, "group_add") {
			if text(g) == w.Name || strings.Trim(text(g), "0123456789") == "" || !stated(text(g)) { // A number may be that group's.
				return
			}
		}
		d.set(n, "["+w.Name+"]", "group_add")
	case plan.Namespace:
		for _, other := range []string{"networks", "ports"} {
			if old := value(n, other); old != nil && w.Name == "network" {
				d.fail(old, "with network_mode: host, "+other+" must go")
				return
			}
		}
		d.set(n, w.Value, key)
	case plan.Mount:
		d.set(n, "["+strconv.Quote(w.Name+":"+w.Value)+"]", "volumes")
	default: // A service cannot set it.
	}
}

// serviceLimit raises a limit of a service.
func (d *document) serviceLimit(n *yaml.Node) {
	w := d.want
	if w.Name == "pids" {
		d.set(n, w.Value, "pids_limit")
		return
	}
	soft, hard, both := strings.Cut(w.Value, ":")
	if !both {
		hard = soft
	}
	old := value(n, "ulimits", w.Name)
	switch isScalar := old != nil && old.Kind == yaml.ScalarNode; {
	case old == nil && both:
		d.set(n, "{soft: "+soft+", hard: "+hard+"}", "ulimits", w.Name)
	case !stated(text(old) + text(old, "soft") + text(old, "hard")):
		d.fail(old, "its value refers to a variable")
	case isScalar && both:
		d.fail(old, "its value has another form there")
	case isScalar || old == nil:
		d.set(n, soft, "ulimits", w.Name)
	default:
		d.set(n, soft, "ulimits", w.Name, "soft")
		d.set(n, hard, "ulimits", w.Name, "hard")
	}
}
