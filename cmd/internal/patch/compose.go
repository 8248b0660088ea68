package patch

import (
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// serviceOf is the service of a compose file that was written, without its image.
func serviceOf(root *yaml.Node) *yaml.Node { return without(value(root, "services", "job"), "image") }

// service writes the setting into a service of a compose file.
func (d *document) service(c *container) {
	w, n := d.want, c.node
	by := serviceOf(d.emitted(c))
	switch w.Kind {
	case plan.GPUs:
		if !stated(text(n, "gpus")) {
			d.fail(value(n, "gpus"), "its value refers to a variable")
			return
		}
	case plan.SharedMemory:
		if slices.Contains(c.launch.Mounts, "tmpfs:/dev/shm") {
			d.byHand(c.from-1, "a tmpfs at /dev/shm has the size")
			return
		}
	case plan.Limit:
		limit := value(by, "ulimits", w.Name)
		if old := value(n, "ulimits", w.Name); old != nil && limit != nil && old.Kind == yaml.MappingNode && limit.Kind == yaml.ScalarNode {
			*limit = *fresh("{soft: " + w.Value + ", hard: " + w.Value + "}")
		}
	case plan.Group:
		if slices.ContainsFunc(items(n, "group_add"), func(g *yaml.Node) bool { return mayBe(text(g), w.Name) }) {
			return
		}
	case plan.Namespace:
		for _, other := range []string{"networks", "ports"} {
			if old := value(n, other); old != nil && w.Name == "network" {
				d.fail(old, "with network_mode: host, "+other+" must go")
				return
			}
		}
	default:
	}
	d.merge(n, by)
}
