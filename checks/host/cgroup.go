package host

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// GroupLimit is the limit with the least left of the control group of a process and of those above it.
type GroupLimit struct {
	// Used is what counts against the limit. Of memory, it is what cannot be reclaimed at once: without
	// the inactive page cache. Tasks include threads.
	Limit, Used int64
}

const maxGroupDepth = 16

type groupLayout struct {
	// controller is the name of the controller in version 1; empty for version 2.
	controller, root, limit, usage string
	// inactive is the value of memory.stat that can be reclaimed; empty for tasks.
	inactive string
}

var (
	// Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst and cgroup-v1/pids.rst.
	groupMemory = []groupLayout{
		{"", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
		{"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
	}
	groupTasks = []groupLayout{
		{"", "/sys/fs/cgroup", "pids.max", "pids.current", ""},
		{"pids", "/sys/fs/cgroup/pids", "pids.max", "pids.current", ""},
	}
)

// noGroupLimit is a limit of version 1 that stands for none: PAGE_COUNTER_MAX pages, 2^63 less a page.
const noGroupLimit = 1 << 60

// GroupMemory reads the limit on the memory of this process with the least left, in bytes, by a function
// that reads a file as text. In a container, groups above may lie outside of what is mounted; what is not
// there is passed over. ok is false if none has a limit.
func GroupMemory(read func(name string) (string, error)) (l GroupLimit, ok bool) {
	return leastOfGroups(read, groupMemory)
}

// GroupTasks reads the same of tasks.
func GroupTasks(read func(name string) (string, error)) (l GroupLimit, ok bool) {
	return leastOfGroups(read, groupTasks)
}

func leastOfGroups(read func(name string) (string, error), layouts []groupLayout) (least GroupLimit, ok bool) {
	groups, err := read("/proc/self/cgroup")
	if err != nil {
		groups = "0::/\n"
	}
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3) // See cgroups(7).
		if len(parts) != 3 || !path.IsAbs(parts[2]) {
			continue
		}
		i := slices.IndexFunc(layouts, func(l groupLayout) bool {
			return l.controller == "" && parts[0] == "0" && parts[1] == "" || l.controller != "" && slices.Contains(strings.Split(parts[1], ","), l.controller)
		})
		if i < 0 {
			continue
		}
		group := path.Clean(parts[2])
		for range maxGroupDepth {
			if l, limited := layouts[i].read(read, group); limited && (!ok || l.Limit-l.Used < least.Limit-least.Used) {
				least, ok = l, true
			}
			if group == "/" {
				break
			}
			group = path.Dir(group)
		}
	}
	return least, ok
}

func (l groupLayout) read(read func(name string) (string, error), group string) (GroupLimit, bool) {
	dir := path.Join(l.root, group)
	number := func(name string) (int64, bool) {
		text, err := read(path.Join(dir, name))
		if err != nil {
			return 0, false
		}
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64) // "max" is no number.
		return n, err == nil && n >= 0
	}
	most, limited := number(l.limit)
	used, known := number(l.usage)
	if !limited || !known || most >= noGroupLimit {
		return GroupLimit{}, false
	}
	if l.inactive == "" {
		return GroupLimit{most, used}, true
	}
	if stat, err := read(path.Join(dir, "memory.stat")); err == nil {
		inactive, _ := strconv.ParseInt(Value(stat, l.inactive), 10, 64) // Where it is not told, it is 0.
		used -= min(max(inactive, 0), used)
	}
	return GroupLimit{most, used}, true
}
