package host_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestLimits(t *testing.T) {
	number := func(n *int64) int64 {
		if n == nil {
			return 0
		}
		return *n
	}
	text := strings.Join([]string{
		"$ ulimit -a",
		"max locked memory           (kbytes, -l) 8192",
		"open files                          (-n) 1024",
		"$ ulimit -l",
		"64",
		"$ cat /proc/self/limits",
		"Max locked memory         8388608              16777216             bytes     ",
		"Max stack size            8388608              unlimited            bytes     ",
		"$ grep -E 'CapEff|Seccomp' /proc/self/status",
		"CapEff:\t00000000a80425fb",
		"$ df -h",
		"Filesystem      Size  Used Avail Use% Mounted on",
		"overlay         1.8T  1.1T  640G  63% /",
		"shm              64M   12M   52M  19% /dev/shm",
		"$ ls -l /dev/nvidia*",
		"crw-rw-rw- 1 root root 195,   0 Nov  1 10:00 /dev/nvidia0",
		"crw-rw---- 1 root video 195, 255 Nov  1 10:00 /dev/nvidiactl",
		"$ ls /dev/infiniband",
		"MemTotal:       527433728 kB",
	}, "\n")
	f := texttest.Parse("x.txt", text)
	c := f.Container
	expect.Must(t, c != nil && c.SHM != nil, "got %+v", c)
	for name, pair := range map[string][2]int64{
		"memlock":      {number(c.MemlockSoftBytes), 64 << 10},
		"memlock hard": {number(c.MemlockHardBytes), 16 << 20},
		"files":        {number(c.NOFILESoft), 1024},
		"shm size":     {c.SHM.SizeBytes, 64 << 20},
		"shm free":     {c.SHM.FreeBytes, 52 << 20},
		"capabilities": {int64(len(c.Capabilities)), 14},
		"memory":       {f.Host.MemoryBytes, 527433728 << 10},
	} {
		expect.Equal(t, pair[1], pair[0], "%s", name)
	}
	expect.That(t, c.Inside != nil && *c.Inside, "got inside %v", c.Inside)
	expect.NoDiff(t, []facts.DeviceNode{{Path: "/dev/nvidia0", Access: "rw"}, {Path: "/dev/nvidiactl"}}, c.DeviceNodes, "it")
}

func TestSHM(t *testing.T) {
	for line, want := range map[string][2]int64{
		"tmpfs           560G     0  560G   0% /dev/shm":                           {560 << 30, 560 << 30},
		"tmpfs          tmpfs   65536  1024  64512   2% /dev/shm":                  {64 << 20, 63 << 20},
		"shm on /dev/shm type tmpfs (rw,nosuid,nodev,noexec,relatime,size=65536k)": {64 << 20, 64 << 20},
		"shm /dev/shm tmpfs rw,nosuid,nodev,noexec,relatime,size=65536k 0 0":       {64 << 20, 64 << 20},
		"tmpfs on /dev/shm type tmpfs (rw,nosuid,nodev)":                           {0, 0},
		"WARNING: /dev/shm has only 67108864 bytes":                                {0, 0},
	} {
		got := cmp.Or(texttest.Sections("x.txt", line+"\n").Container.SHM, &facts.FileSystem{})
		expect.Equal(t, want, [2]int64{got.SizeBytes, got.FreeBytes}, "%q", line)
	}
}

// A listing that went through grep has names without their folder.
func TestBareDeviceNodes(t *testing.T) {
	f := texttest.Parse("x.txt", "$ srun --gpus=1 ls -l /dev | grep nvidia\n"+
		"crw-rw-rw- 1 root root 195,   0 Nov  1 10:00 nvidia0\n"+
		"crw-rw---- 1 root video 195, 255 Nov  1 10:00 nvidiactl\n"+
		"drwxr-xr-x 2 root root       80 Nov  1 10:00 nvidia-caps\n")
	want := []facts.DeviceNode{{Path: "/dev/nvidia0", Access: "rw"}, {Path: "/dev/nvidiactl"}}
	expect.Must(t, f.Container != nil, "no listing was found")
	expect.NoDiff(t, want, f.Container.DeviceNodes, "it")
	f = texttest.Parse("x.txt", "$ ls -l /dev/nvidia0 | cat\ncrw-rw-rw- 1 root root 195,   0 Nov  1 10:00 nvidia0\n")
	expect.That(t, f.Container == nil, "want no listing of a single node, got %v", f.Container)
}
