package container

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/internal/checktest"
	"github.com/gpudoctor/gpudoctor/checks/internal/machine"
	"github.com/gpudoctor/gpudoctor/checks/system"
)

// aMachine builds a machine from its parts: files, links and answers.
type aMachine struct {
	files   map[string]string
	links   map[string]string
	answers map[string]any
}

func (a aMachine) build() *machine.Memory {
	var m machine.Memory
	for name, data := range a.files {
		m.AddFile(name, []byte(data))
	}
	for name, target := range a.links {
		m.AddLink(name, target)
	}
	for question, v := range a.answers {
		m.Answer(question, v)
	}
	return &m
}

var (
	ownNamespaces = map[string]string{
		"/proc/self/ns/ipc": initialIPC, "/proc/self/ns/pid": initialPID, "/proc/self/ns/user": initialUser,
	}
	newNamespaces = map[string]string{
		"/proc/self/ns/ipc": "ipc:[4026532701]", "/proc/self/ns/pid": "pid:[4026532702]", "/proc/self/ns/user": initialUser,
	}
)

const (
	hostMounts = "22 27 0:21 / /proc rw,relatime shared:5 - proc proc rw\n" +
		"23 27 0:22 / /sys rw,relatime shared:6 - sysfs sysfs rw\n" +
		"25 24 0:23 / /dev/shm rw,nosuid - tmpfs tmpfs rw,size=24684084k\n" +
		"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n" +
		"31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n"
	dockerMounts = "600 500 0:60 / / rw,relatime - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/A,upperdir=/var/lib/docker/overlay2/b/diff\n" +
		"601 600 0:61 / /proc rw - proc proc rw\n" +
		"602 600 0:62 / /sys ro,nosuid - sysfs sysfs ro\n" +
		"603 602 0:28 /docker/abc /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n" +
		"604 600 0:63 / /dev/shm rw - tmpfs shm rw,size=65536k\n" +
		"605 600 8:1 /var/lib/docker/containers/abc/hosts /etc/hosts rw - ext4 /dev/sda1 rw\n"
	gpuInformation = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 10\nBus Location: \t 0000:4b:00.0\nDevice Minor: \t 3\nGPU Firmware: \t 580.95.05\nGPU Excluded:\t No\n"
)

func TestContainerDocker(t *testing.T) {
	m := aMachine{
		files: map[string]string{
			"/.dockerenv":                              "",
			"/proc/self/mountinfo":                     dockerMounts,
			"/proc/self/status":                        "Name:\tdoctor\nCapEff:\t00000000a80425fb\nSeccomp:\t2\nSeccomp_filters:\t1\n",
			"/proc/self/cgroup":                        "0::/\n",
			"/sys/bus/pci/devices/0000:4b:00.0/vendor": "0x10de\n",
			"/dev/nvidia3":                             "",
			"/dev/nvidiactl":                           "",
			"/dev/nvidia-caps/nvidia-cap1":             "",
			"/dev/dri/card0":                           "",
			"/dev/dri/renderD128":                      "",
			"/dev/infiniband/uverbs0":                  "",
			"/dev/infiniband/by-ibdev/x":               "",
			"/dev/null":                                "",
			"/proc/driver/nvidia/gpus/0000:4b:00.0/information": gpuInformation,
			"/proc/driver/nvidia/gpus/0000:3b:00.0/information": "Model: NVIDIA H200\nDevice Minor: 2\nGPU Excluded: No\n",
			"/proc/driver/nvidia/gpus/0000:2b:00.0/information": "Model: NVIDIA H200\nDevice Minor: 1\nBlacklisted: Yes\n",
		},
		links: newNamespaces,
		answers: map[string]any{
			machine.AskEnviron:                                 []string{"PATH=/bin"},
			machine.AskStatfs + "/dev/shm":                     machine.Statfs{Type: "tmpfs", SizeBytes: 64 << 20, FreeBytes: 60 << 20},
			machine.AskLimits:                                  map[string]machine.Limit{"memlock": {Soft: 65536, Hard: -1}, "nofile": {Soft: 1024, Hard: 4096}},
			machine.AskSyscalls:                                map[string]string{"get_mempolicy": "EPERM", "mlock": "ok"},
			machine.AskAccess + "/dev/nvidia3":                 "rw",
			machine.AskAccess + "/dev/nvidiactl":               "rw",
			machine.AskAccess + "/dev/nvidia-caps/nvidia-cap1": "none",
			machine.AskAccess + "/dev/dri/renderD128":          "r",
			machine.AskAccess + "/dev/infiniband/uverbs0":      "rw",
		},
	}
	got := checktest.One(t, Check, m.build())
	want := &facts.ContainerFacts{
		Inside:           new(true),
		Runtime:          "docker",
		Evidence:         []string{"/.dockerenv", "/proc/self/mountinfo: /", "/proc/self/mountinfo: /etc/hosts"},
		SHM:              &facts.FileSystem{Path: "/dev/shm", Type: "tmpfs", SizeBytes: 64 << 20, FreeBytes: 60 << 20},
		SHMMounted:       new(true),
		MemlockSoftBytes: new(int64(65536)),
		MemlockHardBytes: new(int64(-1)),
		NOFILESoft:       new(int64(1024)),
		Capabilities: []string{
			"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
			"NET_BIND_SERVICE", "NET_RAW", "SYS_CHROOT", "MKNOD", "AUDIT_WRITE", "SETFCAP",
		},
		Seccomp:      "filter",
		GetMempolicy: "EPERM",
		Mlock:        "ok",
		SysMounted:   new(true),
		PCIVisible:   new(true),
		DeviceNodes: []facts.DeviceNode{
			{Path: "/dev/dri/renderD128", Access: "r"},
			{Path: "/dev/infiniband/uverbs0", Access: "rw"},
			{Path: "/dev/nvidia-caps/nvidia-cap1", Access: "none"},
			{Path: "/dev/nvidia3", Access: "rw"},
			{Path: "/dev/nvidiactl", Access: "rw"},
		},
		DriverDevices: []facts.DriverDevice{
			{Address: "0000:2b:00.0", Minor: new(1), Model: "NVIDIA H200", Excluded: true},
			{Address: "0000:3b:00.0", Minor: new(2), Model: "NVIDIA H200"},
			{Address: "0000:4b:00.0", Minor: new(3), Model: "NVIDIA H200"},
		},
		MissingNodes: []string{"/dev/nvidia2"},
		PrivateIPC:   new(true),
		PrivatePID:   new(true),
		PrivateUser:  new(false),
	}
	if diff := cmp.Diff(want, got.Container); diff != "" {
		t.Errorf("container (-want +got):\n%s", diff)
	}
	if len(got.Unknown) > 0 {
		t.Errorf("unknown: got %v, want nothing", got.Unknown)
	}
}

func TestContainerInside(t *testing.T) {
	overlay := "1 0 0:60 / / rw - overlay overlay rw,lowerdir=/x,upperdir=/y\n"
	tests := []struct {
		name    string
		m       aMachine
		want    *bool
		runtime string
	}{
		{"a host", aMachine{files: map[string]string{"/proc/self/mountinfo": hostMounts}, links: ownNamespaces}, new(false), ""},
		{
			"a virtual machine whose disk was made of an image",
			aMachine{files: map[string]string{"/proc/self/mountinfo": hostMounts, "/.dockerenv": ""}, links: ownNamespaces},
			new(false), "",
		},
		{"nothing can be read", aMachine{}, nil, ""},
		{
			"layers in the initial namespaces: a live system, or a privileged container",
			aMachine{files: map[string]string{"/proc/self/mountinfo": overlay}, links: ownNamespaces},
			nil, "",
		},
		{
			"layers and namespaces of its own",
			aMachine{files: map[string]string{"/proc/self/mountinfo": overlay}, links: newNamespaces},
			new(true), "other",
		},
		{
			"namespaces of its own on a plain disk",
			aMachine{files: map[string]string{"/proc/self/mountinfo": hostMounts}, links: newNamespaces},
			nil, "",
		},
		{
			"podman",
			aMachine{files: map[string]string{"/proc/self/mountinfo": overlay, "/run/.containerenv": ""}, links: newNamespaces},
			new(true), "podman",
		},
		{
			"podman by its variable",
			aMachine{files: map[string]string{"/proc/self/mountinfo": hostMounts}, links: ownNamespaces, answers: map[string]any{machine.AskEnviron: []string{"container=podman"}}},
			new(true), "podman",
		},
		{
			"a pod on containerd that shares the host's namespaces",
			aMachine{
				files: map[string]string{
					"/proc/self/mountinfo": "1 0 0:60 / / rw - overlay overlay rw,lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/1/fs\n" +
						"2 1 8:1 /var/lib/kubelet/pods/1/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n",
				}, links: ownNamespaces,
			},
			new(true), "kubernetes",
		},
		{
			"apptainer, which shares the host's namespaces",
			aMachine{
				files:   map[string]string{"/proc/self/mountinfo": overlay, "/.singularity.d/runscript": ""},
				links:   ownNamespaces,
				answers: map[string]any{machine.AskEnviron: []string{"APPTAINER_CONTAINER=/x.sif"}},
			},
			new(true), "apptainer",
		},
		{
			"enroot settings on a host are no container",
			aMachine{
				files: map[string]string{"/proc/self/mountinfo": hostMounts}, links: ownNamespaces,
				answers: map[string]any{machine.AskEnviron: []string{"ENROOT_CACHE_PATH=/x"}},
			},
			new(false), "",
		},
		{
			"version 1 control groups",
			aMachine{files: map[string]string{"/proc/self/cgroup": "4:memory:/kubepods/burstable/pod1/abc\n"}},
			new(true), "kubernetes",
		},
		{
			"the daemon of docker is no container",
			aMachine{files: map[string]string{"/proc/self/mountinfo": hostMounts, "/proc/self/cgroup": "0::/system.slice/docker.service\n"}, links: ownNamespaces},
			new(false), "",
		},
		{
			"nerdctl",
			aMachine{files: map[string]string{"/proc/self/mountinfo": "1 0 0:60 / / rw - overlay overlay rw,lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/9/fs\n" +
				"2 1 8:1 /var/lib/nerdctl/1935db59/containers/default/abc/resolv.conf /etc/resolv.conf rw - ext4 /dev/sda1 rw\n"}, links: newNamespaces},
			new(true), "containerd",
		},
		{
			"a pod of CRI-O",
			aMachine{files: map[string]string{
				"/proc/self/mountinfo": "1 0 0:60 / / rw - overlay overlay rw,lowerdir=/var/lib/containers/storage/overlay/l/A\n",
				"/proc/self/cgroup":    "0::/kubepods.slice/kubepods-pod1.slice/crio-abc.scope\n",
			}, links: newNamespaces},
			new(true), "kubernetes",
		},
		{
			"CRI-O without Kubernetes",
			aMachine{files: map[string]string{
				"/proc/self/mountinfo": "1 0 0:60 / / rw - overlay overlay rw,lowerdir=/var/lib/containers/storage/overlay/l/A\n",
				"/proc/1/cgroup":       "0::/system.slice/crio-abc.scope\n",
			}, links: newNamespaces},
			new(true), "crio",
		},
		{
			"Enroot by Pyxis",
			aMachine{
				files: map[string]string{
					"/proc/self/mountinfo": "1 0 0:60 / / rw - overlay overlay rw,lowerdir=/run/enroot/user-1000/pyxis_7/lower\n",
					"/proc/self/cgroup":    "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n",
				},
				links: ownNamespaces, answers: map[string]any{machine.AskEnviron: []string{"ENROOT_VERSION=3.5", "SLURM_JOB_ID=7"}},
			},
			new(true), "enroot",
		},
		{
			"systemd-nspawn that booted",
			aMachine{files: map[string]string{"/proc/self/mountinfo": hostMounts, "/run/systemd/container": "systemd-nspawn\n"}, links: newNamespaces},
			new(true), "systemd-nspawn",
		},
		{
			"a disk that was made from an image",
			aMachine{files: map[string]string{"/proc/self/mountinfo": hostMounts, "/run/systemd/container": "docker\n", "/.dockerenv": ""}, links: ownNamespaces},
			new(false), "",
		},
		{
			"LXC by its manager",
			aMachine{files: map[string]string{"/proc/self/mountinfo": hostMounts, "/run/host/container-manager": "lxc"}, links: newNamespaces},
			new(true), "lxc",
		},
		{
			"a manager that nobody knows",
			aMachine{files: map[string]string{"/proc/self/mountinfo": hostMounts, "/run/systemd/container": "ship\n"}, links: newNamespaces},
			new(true), "other",
		},
		{
			"a job of Slurm on a host",
			aMachine{files: map[string]string{"/proc/self/mountinfo": hostMounts, "/proc/self/cgroup": "0::/system.slice/slurmstepd.scope/job_7/step_0\n"}, links: ownNamespaces},
			new(false), "",
		},
		{
			"gVisor under docker",
			aMachine{files: map[string]string{"/proc/self/mountinfo": overlay, "/.dockerenv": "", "/proc/version": system.EmulatedKernel}},
			new(true), "gvisor",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := checktest.One(t, Check, tt.m.build())
			if diff := cmp.Diff(tt.want, got.Container.Inside); diff != "" {
				t.Errorf("inside (-want +got):\n%s", diff)
			}
			if got.Container.Runtime != tt.runtime {
				t.Errorf("runtime %q, want %q", got.Container.Runtime, tt.runtime)
			}
			if noted := strings.Contains(factsOf(got.Unknown), " inside "); noted != (tt.want == nil) {
				t.Errorf("unknown facts %q: inside among them %t, want %t", factsOf(got.Unknown), noted, tt.want == nil)
			}
		})
	}
}

// factsOf lists the facts that are unknown, each between blanks.
func factsOf(list []facts.Unknown) string {
	s := " "
	for _, u := range list {
		s += u.Fact + " "
	}
	return s
}

func TestContainerUnreadable(t *testing.T) {
	var m machine.Memory
	m.AddError("/proc/self/mountinfo", fs.ErrPermission)
	m.AddError("/dev", fs.ErrPermission)
	m.AddError("/sys/bus/pci/devices", fs.ErrPermission)
	m.AddError("/proc/driver/nvidia/gpus", fs.ErrPermission)
	m.AnswerError(machine.AskLimits, errors.New("no limits"))
	got := checktest.One(t, Check, &m)
	if diff := cmp.Diff(&facts.ContainerFacts{}, got.Container); diff != "" {
		t.Errorf("container (-want +got):\n%s", diff)
	}
	want := " shm private_ipc private_pid private_user capabilities seccomp memlock_soft_bytes get_mempolicy pci_visible device_nodes driver_devices inside "
	if paths := factsOf(got.Unknown); paths != want {
		t.Errorf("unknown facts %q, want %q", paths, want)
	}
}

func TestContainerMissingMounts(t *testing.T) {
	m := aMachine{
		files: map[string]string{"/proc/self/mountinfo": "1 0 0:60 / / rw - overlay overlay rw\n"},
		links: newNamespaces,
	}
	got := checktest.One(t, Check, m.build()).Container
	want := &facts.ContainerFacts{
		Inside: new(true), Runtime: "other",
		SHMMounted: new(false), SysMounted: new(false), PCIVisible: new(false),
		PrivateIPC: new(true), PrivatePID: new(true), PrivateUser: new(false),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("container (-want +got):\n%s", diff)
	}
}

func TestContainerGroups(t *testing.T) {
	got := checktest.One(t, Check, aMachine{files: map[string]string{
		"/proc/self/cgroup":             "0::/\n",
		"/sys/fs/cgroup/memory.max":     "1073741824\n",
		"/sys/fs/cgroup/memory.current": "536870912\n",
		"/sys/fs/cgroup/memory.stat":    "inactive_file 268435456\n",
		"/sys/fs/cgroup/pids.max":       "2048\n",
		"/sys/fs/cgroup/pids.current":   "12\n",
	}}.build()).Container
	if diff := cmp.Diff(&facts.GroupMemory{LimitBytes: 1 << 30, InUseBytes: 1 << 28}, got.Memory); diff != "" {
		t.Errorf("memory (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&facts.GroupTasks{Limit: 2048, Used: 12}, got.Tasks); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
}

func TestCapabilityNames(t *testing.T) {
	tests := []struct {
		mask uint64
		want []string
	}{
		{0, []string{}},
		{1 << 23, []string{"SYS_NICE"}},
		{1<<14 | 1<<40 | 1<<41, []string{"IPC_LOCK", "CHECKPOINT_RESTORE", "CAP_41"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, CapabilityNames(tt.mask)); diff != "" {
			t.Errorf("%#x (-want +got):\n%s", tt.mask, diff)
		}
	}
}

func FuzzCgroup(f *testing.F) {
	f.Add([]byte("4:memory:/docker/abc\n0::/\n"))
	f.Add([]byte("::\n1:a,b:x\n0::/../..\n"))
	f.Fuzz(func(t *testing.T, groups []byte) {
		for _, group := range parseCgroup(groups) {
			if !path.IsAbs(group) || path.Clean(group) != group {
				t.Errorf("group %q", group)
			}
		}
	})
}

func FuzzGPUInformation(f *testing.F) {
	f.Add([]byte(gpuInformation))
	f.Add([]byte("Device Minor: -1\nBus Location: 0000\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := parseGPUInformation(b)
		if d.Minor != nil && *d.Minor < 0 || len(d.Model) > gather.MaxShown || facts.Address(d.Address) != d.Address {
			t.Errorf("bad device %+v", d)
		}
	})
}
