package patch

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// service writes a want into a service of a compose file.
func (e *edit) service(c *container) error {
	w, n := e.want, c.node
	if n.Kind == yaml.AliasNode {
		return unsafeAt(n, "it is an alias of another part of the file")
	}
	switch w.Kind {
	case plan.Unset:
		return e.serviceUnset(c)
	case plan.Variable:
		return e.serviceVariable(c)
	default: // What a launch states.
	}
	if has(c.launch, w) {
		return nil
	}
	for _, key := range map[plan.Kind][]string{plan.SharedMemory: {"shm_size"}, plan.Namespace: {"ipc", "network_mode"}, plan.GPUs: {"gpus"}}[w.Kind] {
		if old := value(n, key); old != nil && !stated(text(old)) && (w.Kind != plan.Namespace || (key == "ipc") == (w.Name == "ipc")) {
			return unsafeAt(old, "its value refers to a variable")
		}
	}
	switch w.Kind {
	case plan.GPUs:
		device := mapping("driver", scalar("nvidia"), "count", scalar("all"), "capabilities", list(scalar("gpu")))
		return e.set(n, list(device), "deploy", "resources", "reservations", "devices")
	case plan.SharedMemory:
		if slices.Contains(c.launch.Mounts, "tmpfs:/dev/shm") {
			return errUnsafe{c.from - 1, "a tmpfs at /dev/shm has the size"}
		}
		return e.set(n, scalar(w.Value), "shm_size")
	case plan.Limit:
		return e.serviceLimit(n)
	case plan.Capability:
		if !isRoot(c.launch.User) {
			e.note(c.name, words(w), "It runs as user "+c.launch.User+", for whom an added capability is not in force.")
			return nil
		}
		return e.set(n, list(scalar(w.Name)), "cap_add")
	case plan.Device:
		return e.set(n, list(scalar(w.Name+":"+w.Name)), "devices")
	case plan.Group:
		for _, g := range items(value(n, "group_add")) {
			if text(g) == w.Name || strings.Trim(text(g), "0123456789") == "" || !stated(text(g)) { // A number may be that group's.
				return nil
			}
		}
		return e.set(n, list(scalar(w.Name)), "group_add")
	case plan.Namespace:
		key := map[string]string{"ipc": "ipc", "network": "network_mode"}[w.Name]
		for _, other := range []string{"networks", "ports"} {
			if old := value(n, other); old != nil && w.Name == "network" {
				return unsafeAt(old, "with network_mode: host, "+other+" must go")
			}
		}
		return e.set(n, scalar(w.Value), key)
	case plan.Mount:
		return e.set(n, list(scalar(quoted(w.Name+":"+w.Value))), "volumes")
	default: // A service cannot set it.
	}
	return nil
}

// serviceLimit raises a limit of a service.
func (e *edit) serviceLimit(n *yaml.Node) error {
	w := e.want
	if w.Name == "pids" {
		if text(value(n, "pids_limit")) == w.Value {
			return nil
		}
		return e.set(n, scalar(w.Value), "pids_limit")
	}
	soft, hard, both := strings.Cut(w.Value, ":")
	if !both {
		hard = soft
	}
	old := value(n, "ulimits", w.Name)
	switch {
	case old == nil:
		if both {
			return e.set(n, mapping("soft", scalar(soft), "hard", scalar(hard)), "ulimits", w.Name)
		}
		return e.set(n, scalar(soft), "ulimits", w.Name)
	case !stated(text(old)) || !stated(text(value(old, "soft"))) || !stated(text(value(old, "hard"))):
		return unsafeAt(old, "its value refers to a variable")
	case old.Kind == yaml.ScalarNode && (text(old) == soft && soft == hard):
		return nil
	case old.Kind == yaml.ScalarNode && both:
		return unsafeAt(old, "its value has another form there")
	case old.Kind == yaml.ScalarNode:
		return e.set(n, scalar(soft), "ulimits", w.Name)
	case text(value(old, "hard")) != hard: // First, since the soft limit must not be above it.
		return e.set(n, scalar(hard), "ulimits", w.Name, "hard")
	case text(value(old, "soft")) != soft:
		return e.set(n, scalar(soft), "ulimits", w.Name, "soft")
	}
	return nil
}

// serviceVariable sets a variable of a service, which has its variables as a mapping or as a
// list.
func (e *edit) serviceVariable(c *container) error {
	w := e.want
	escaped := strings.ReplaceAll(w.Value, "$", "$$")
	fits := func(old string) bool { return same(old, w.Value) || same(old, escaped) }
	env := value(c.node, "environment")
	if env != nil && env.Kind == yaml.SequenceNode {
		for _, item := range env.Content {
			name, old, set := strings.Cut(text(item), "=")
			switch {
			case name != w.Name || set && fits(old):
				if name == w.Name {
					return nil
				}
				continue
			case !set || !stated(old):
				return unsafeAt(item, "its value comes from elsewhere")
			case item.Kind == yaml.AliasNode:
				return unsafeAt(item, "it is an alias of another part of the file")
			}
			return e.replace(item, plainOr(item, w.Name+"="+escaped))
		}
		return e.set(c.node, list(scalar(quoted(w.Name+"="+escaped))), "environment")
	}
	if old := value(env, w.Name); old != nil {
		switch {
		case fits(text(old)) && old.Tag != "!!null":
			return nil
		case old.Tag == "!!null" || !stated(text(old)):
			return unsafeAt(old, "its value comes from elsewhere")
		}
	}
	return e.set(c.node, scalar(quoted(escaped)), "environment", w.Name)
}

// plainOr is a text as it stands where the scalar before was plain and it may be, else quoted.
func plainOr(n *yaml.Node, s string) string {
	if n.Style == 0 && !strings.ContainsAny(s, "#:,[]{}&*!|>'\"%@` ") {
		return s
	}
	return quoted(s)
}

// serviceUnset removes a variable of a service.
func (e *edit) serviceUnset(c *container) error {
	key, env, merged := entry(c.node, "environment")
	if merged || env != nil && env.Kind == yaml.AliasNode { // It goes where it stands, for all that share it.
		key, env = nil, value(c.node, "environment")
	}
	return e.unsetIn(env, key, 0)
}

// unsetIn removes a variable from a mapping or list of them, or from one merged in.
func (e *edit) unsetIn(env, key *yaml.Node, depth int) error {
	env = parse.YAMLResolve(env)
	if env == nil || depth > 4 {
		return nil
	}
	if env.Kind == yaml.SequenceNode && depth == 0 {
		for _, item := range env.Content {
			name, old, _ := strings.Cut(text(item), "=")
			if !e.want.removes(name, old) {
				continue
			}
			dash, ok := e.dash(item)
			if !ok || env.Style&yaml.FlowStyle != 0 || item.Kind == yaml.AliasNode || item.Anchor != "" {
				return unsafeAt(item, "it does not stand on a line of its own")
			}
			return e.remove(item, dash, key, env)
		}
		return nil
	}
	if env.Kind != yaml.MappingNode {
		for _, part := range items(env) {
			if err := e.unsetIn(part, nil, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	for i := 0; i+1 < len(env.Content); i += 2 {
		k, v := env.Content[i], env.Content[i+1]
		if k.Value == "<<" {
			if err := e.unsetIn(v, nil, depth+1); err != nil {
				return err
			}
			continue
		}
		if !e.want.removes(k.Value, text(v)) {
			continue
		}
		if env.Style&yaml.FlowStyle != 0 || !e.alone(k, k.Column-1) || v.Anchor != "" {
			return unsafeAt(k, "it does not stand on a line of its own")
		}
		return e.remove(k, k.Column-1, key, env)
	}
	return nil
}
