package host

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestGroupLimits(t *testing.T) {
	const gib = 1 << 30
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  GroupLimit
		ok    bool
	}{
		{"tasks with version 2", map[string]string{"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/pids.max": "2048\n", "/sys/fs/cgroup/a/pids.current": "7\n"}, GroupLimit{2048, 7}, true},
		{"tasks with version 1", map[string]string{"/proc/self/cgroup": "8:pids:/\n", "/sys/fs/cgroup/pids/pids.max": "100\n", "/sys/fs/cgroup/pids/pids.current": "101\n"}, GroupLimit{100, 101}, true},
		{"no limit of tasks", map[string]string{"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/pids.max": "max\n", "/sys/fs/cgroup/pids.current": "7\n"}, GroupLimit{}, false},
		{"nothing can be read", nil, GroupLimit{}, false},
		{"a container with version 2 and a namespace of its own", map[string]string{
			"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "1073741824\n", "/sys/fs/cgroup/memory.current": "536870912\n",
			"/sys/fs/cgroup/memory.stat": "anon 1\nfile 268435456\ninactive_file 268435456\n",
		}, GroupLimit{gib, gib / 4}, true},
		{"no limit", map[string]string{"/proc/self/cgroup": "0::/user.slice\n", "/sys/fs/cgroup/user.slice/memory.max": "max\n", "/sys/fs/cgroup/user.slice/memory.current": "5\n"}, GroupLimit{}, false},
		{"the group above leaves less", map[string]string{
			"/proc/self/cgroup": "0::/pod/one\n", "/sys/fs/cgroup/pod/one/memory.max": "2147483648\n", "/sys/fs/cgroup/pod/one/memory.current": "0\n",
			"/sys/fs/cgroup/pod/memory.max": "2147483648\n", "/sys/fs/cgroup/pod/memory.current": "2147483000\n",
		}, GroupLimit{2 * gib, 2147483000}, true},
		{"version 1", map[string]string{
			"/proc/self/cgroup": "6:memory:/docker/abc\n4:cpu,cpuacct:/x\n0::/\n",
			"/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "9223372036854771712\n", "/sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes": "1\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n", "/sys/fs/cgroup/memory/memory.usage_in_bytes": "1073741824\n",
			"/sys/fs/cgroup/memory/memory.stat": "total_inactive_file 1024\ntotal_inactive_file 5\n",
		}, GroupLimit{gib, gib - 1024}, true},
		{"no list of groups", map[string]string{"/sys/fs/cgroup/memory.max": "4096", "/sys/fs/cgroup/memory.current": "8192"}, GroupLimit{4096, 8192}, true},
		{"nonsense", map[string]string{"/proc/self/cgroup": "x\n0::relative\n0::/\n", "/sys/fs/cgroup/memory.max": "-5", "/sys/fs/cgroup/memory.current": "1e9"}, GroupLimit{}, false},
	} {
		limit := GroupMemory
		if strings.Contains(tt.name, "tasks") {
			limit = GroupTasks
		}
		got, ok := limit(func(name string) (string, error) {
			if text, ok := tt.files[name]; ok {
				return text, nil
			}
			return "", fs.ErrNotExist
		})
		expect.That(t, got == tt.want && ok == tt.ok, "%s: got %+v, %t; want %+v, %t", tt.name, got, ok, tt.want, tt.ok)
	}
}

func FuzzGroupMemory(f *testing.F) {
	f.Add("0::/a/b\n6:memory:/x\n", "4096", "100", "inactive_file 50\n")
	f.Add("0::/../..\n", "max", "-1", "inactive_file -9223372036854775808\n")
	f.Fuzz(func(t *testing.T, groups, limit, usage, stat string) {
		asked := 0
		m, ok := GroupMemory(func(name string) (string, error) {
			asked++
			switch name[len(name)-3:] {
			case "oup":
				return groups, nil
			case "max", "tes":
				return limit, nil
			case "ent":
				return usage, nil
			}
			return stat, nil
		})
		expect.That(t, !ok || m.Limit >= 0 && m.Used >= 0, "got %+v", m)
	})
}
