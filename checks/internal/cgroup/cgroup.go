// Package cgroup reads the control groups of this process, of version 1 and 2: how much memory and how
// many tasks they leave.
package cgroup

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/host"
)

// Memory is what the memory controller says of this process.
type Memory struct {
	// LimitBytes is the limit with the least left, and UsedBytes what counts against it and cannot be
	// reclaimed at once: without the inactive page cache.
	LimitBytes int64
	UsedBytes  int64
}

// Left is what may still be allocated.
func (m Memory) Left() int64 { return max(m.LimitBytes-m.UsedBytes, 0) }

// maxDepth bounds the groups above that of the process.
const maxDepth = 16

// Tasks is what the controller of processes says: how many tasks, threads included, there may be and are.
type Tasks struct{ Limit, Used int64 }

// Reader reads a file as text.
type Reader func(name string) (string, error)

// layout is where a version of control groups keeps what.
type layout struct {
	// controller is the name of the controller in version 1; empty for version 2.
	controller, root, limit, usage string
	// inactive is the value of memory.stat that can be reclaimed; empty for tasks.
	inactive string
}

var (
	// Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst and cgroup-v1/pids.rst.
	memory = []layout{
		{"", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
		{"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
	}
	tasks = []layout{
		{"", "/sys/fs/cgroup", "pids.max", "pids.current", ""},
		{"pids", "/sys/fs/cgroup/pids", "pids.max", "pids.current", ""},
	}
)

// noLimit is a limit of version 1 that stands for none: PAGE_COUNTER_MAX pages, 2^63 less a page.
const noLimit = 1 << 60

// MemoryOf reads the limits of the group of this process and of those above it. In a container, these may
// lie outside of what is mounted; what is not there is passed over. ok is false if none has a limit.
func MemoryOf(read Reader) (m Memory, ok bool) {
	limit, used, ok := least(read, memory)
	return Memory{limit, used}, ok
}

// TasksOf reads the same of tasks.
func TasksOf(read Reader) (t Tasks, ok bool) {
	limit, used, ok := least(read, tasks)
	return Tasks{limit, used}, ok
}

// least returns the limit with the least left.
func least(read Reader, layouts []layout) (limit, used int64, ok bool) {
	groups, err := read("/proc/self/cgroup")
	if err != nil {
		groups = "0::/\n"
	}
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3) // See cgroups(7).
		if len(parts) != 3 || !path.IsAbs(parts[2]) {
			continue
		}
		i := slices.IndexFunc(layouts, func(l layout) bool {
			return l.controller == "" && parts[0] == "0" && parts[1] == "" || l.controller != "" && slices.Contains(strings.Split(parts[1], ","), l.controller)
		})
		if i < 0 {
			continue
		}
		group := path.Clean(parts[2])
		for range maxDepth {
			if most, now, is := layouts[i].read(read, group); is && (!ok || most-now < limit-used) {
				limit, used, ok = most, now, true
			}
			if group == "/" {
				break
			}
			group = path.Dir(group)
		}
	}
	return limit, used, ok
}

// read reads one group.
func (l layout) read(read Reader, group string) (limit, used int64, ok bool) {
	dir := path.Join(l.root, group)
	number := func(name string) (int64, bool) {
		text, err := read(path.Join(dir, name))
		if err != nil {
			return 0, false
		}
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64) // "max" is no number.
		return n, err == nil && n >= 0
	}
	limit, limited := number(l.limit)
	used, known := number(l.usage)
	if !limited || !known || limit >= noLimit {
		return 0, 0, false
	}
	if l.inactive == "" {
		return limit, used, true
	}
	if stat, err := read(path.Join(dir, "memory.stat")); err == nil {
		inactive, _ := strconv.ParseInt(host.Value(stat, l.inactive), 10, 64) // Where it is not told, it is 0.
		used -= min(max(inactive, 0), used)
	}
	return limit, used, true
}
