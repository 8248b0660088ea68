package container

import (
	"errors"
	"io/fs"
	"maps"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/attempt"
	"github.com/gpudoctor/gpudoctor/checks/system"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// aMachine builds a machine from its parts: files, links and answers.
type aMachine struct {
	files   map[string]string
	links   map[string]string
	answers map[string]any
}

func (a aMachine) build() *host.Memory {
	var m host.Memory
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
			host.AskEnviron:                                 []string{"PATH=/bin"},
			host.AskStatfs + "/dev/shm":                     host.Statfs{SizeBytes: 64 << 20, FreeBytes: 60 << 20},
			host.AskLimits:                                  map[string]host.Limit{"memlock": {Soft: 65536, Hard: -1}, "nofile": {Soft: 1024, Hard: 4096}},
			attempt.Question:                                attempt.Answer{Results: map[string]attempt.Result{attempt.GetMempolicy: {Outcome: attempt.Refused, Errno: "EPERM"}, attempt.Mlock: {Outcome: attempt.OK}}},
			host.AskAccess + "/dev/nvidia3":                 "rw",
			host.AskAccess + "/dev/nvidiactl":               "rw",
			host.AskAccess + "/dev/nvidia-caps/nvidia-cap1": "none",
			host.AskAccess + "/dev/dri/renderD128":          "r",
			host.AskAccess + "/dev/infiniband/uverbs0":      "rw",
		},
	}
	got := checktest.One(t, Check, m.build())
	expect.NoDiff(t, &facts.ContainerFacts{
		Inside: new(true), Runtime: "docker",
		Evidence:   []string{"/.dockerenv", "/proc/self/mountinfo: /", "/proc/self/mountinfo: /etc/hosts"},
		SHM:        &facts.FileSystem{Path: "/dev/shm", Type: "tmpfs", SizeBytes: 64 << 20, FreeBytes: 60 << 20},
		SHMMounted: new(true), MemlockSoftBytes: new(int64(65536)), MemlockHardBytes: new(int64(-1)), NOFILESoft: new(int64(1024)),
		Capabilities: []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "NET_BIND_SERVICE", "NET_RAW", "SYS_CHROOT", "MKNOD", "AUDIT_WRITE", "SETFCAP"},
		GetMempolicy: "EPERM", Mlock: "ok", SysMounted: new(true), PCIVisible: new(true),
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
		PrivateIPC: new(true), PrivatePID: new(true), PrivateUser: new(false),
	}, got.Container, "container")
	expect.NoDiff(t, []string{"attempts: the probe was not requested"}, checktest.UnknownOf(got, "container"), "unknown")
}

func TestContainerInside(t *testing.T) {
	const (
		overlay    = "1 0 0:60 / / rw - overlay overlay rw,lowerdir=/x,upperdir=/y\n"
		containers = "1 0 0:60 / / rw - overlay overlay rw,lowerdir=/var/lib/containers/storage/overlay/l/A\n"
		kubelet    = "1 0 0:60 / / rw - overlay overlay rw,lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/1/fs\n" +
			"2 1 8:1 /var/lib/kubelet/pods/1/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n"
		nerdctl = "1 0 0:60 / / rw - overlay overlay rw,lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/9/fs\n" +
			"2 1 8:1 /var/lib/nerdctl/1935db59/containers/default/abc/resolv.conf /etc/resolv.conf rw - ext4 /dev/sda1 rw\n"
		enroot    = "1 0 0:60 / / rw - overlay overlay rw,lowerdir=/run/enroot/user-1000/pyxis_7/lower\n"
		cgroup    = "/proc/self/cgroup"
		slurmStep = "0::/system.slice/slurmstepd.scope/job_7/step_0"
	)
	type (
		files   map[string]string
		environ []string
	)
	for _, tt := range []struct {
		name       string
		mounts     string
		namespaces map[string]string
		files      files
		environ    environ
		want       string // Whether it is inside, and the runtime.
	}{
		{"a host", hostMounts, ownNamespaces, nil, nil, "no"},
		{"nothing can be read", "", nil, nil, nil, "not known"},
		{"a virtual machine whose disk was made of an image", hostMounts, ownNamespaces, files{"/.dockerenv": ""}, nil, "no"},
		{"layers in the initial namespaces: a live system or privileged container", overlay, ownNamespaces, nil, nil, "not known"},
		{"layers and namespaces of its own", overlay, newNamespaces, nil, nil, "yes, other"},
		{"namespaces of its own on a plain disk", hostMounts, newNamespaces, nil, nil, "not known"},
		{"podman", overlay, newNamespaces, files{"/run/.containerenv": ""}, nil, "yes, podman"},
		{"podman by its variable", hostMounts, ownNamespaces, nil, environ{"container=podman"}, "yes, podman"},
		{"a pod on containerd that shares the host's namespaces", kubelet, ownNamespaces, nil, nil, "yes, kubernetes"},
		{"apptainer, which shares the host's namespaces", overlay, ownNamespaces, files{"/.singularity.d/runscript": ""}, environ{"APPTAINER_CONTAINER=/x.sif"}, "yes, apptainer"},
		{"enroot settings on a host are no container", hostMounts, ownNamespaces, nil, environ{"ENROOT_CACHE_PATH=/x"}, "no"},
		{"version 1 control groups", "", nil, files{cgroup: "4:memory:/kubepods/burstable/pod1/abc\n"}, nil, "yes, kubernetes"},
		{"the daemon of docker is no container", hostMounts, ownNamespaces, files{cgroup: "0::/system.slice/docker.service\n"}, nil, "no"},
		{"nerdctl", nerdctl, newNamespaces, nil, nil, "yes, containerd"},
		{"a pod of CRI-O", containers, newNamespaces, files{cgroup: "0::/kubepods.slice/kubepods-pod1.slice/crio-abc.scope\n"}, nil, "yes, kubernetes"},
		{"CRI-O without Kubernetes", containers, newNamespaces, files{"/proc/1/cgroup": "0::/system.slice/crio-abc.scope\n"}, nil, "yes, crio"},
		{"Enroot by Pyxis", enroot, ownNamespaces, files{cgroup: slurmStep + "/user/task_0\n"}, environ{"ENROOT_VERSION=3.5", "SLURM_JOB_ID=7"}, "yes, enroot"},
		{"systemd-nspawn that booted", hostMounts, newNamespaces, files{"/run/systemd/container": "systemd-nspawn\n"}, nil, "yes, systemd-nspawn"},
		{"a disk that was made from an image", hostMounts, ownNamespaces, files{"/run/systemd/container": "docker\n", "/.dockerenv": ""}, nil, "no"},
		{"LXC by its manager", hostMounts, newNamespaces, files{"/run/host/container-manager": "lxc"}, nil, "yes, lxc"},
		{"a manager that nobody knows", hostMounts, newNamespaces, files{"/run/systemd/container": "ship\n"}, nil, "yes, other"},
		{"a job of Slurm on a host", hostMounts, ownNamespaces, files{cgroup: slurmStep + "\n"}, nil, "no"},
		{"gVisor under docker", overlay, nil, files{"/.dockerenv": "", "/proc/version": system.EmulatedKernel}, nil, "yes, gvisor"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := aMachine{files: map[string]string{}, links: tt.namespaces}
			maps.Copy(m.files, tt.files)
			if tt.mounts != "" {
				m.files["/proc/self/mountinfo"] = tt.mounts
			}
			if tt.environ != nil {
				m.answers = map[string]any{host.AskEnviron: []string(tt.environ)}
			}
			found := checktest.One(t, Check, m.build())
			got := "not known"
			if inside := found.Container.Inside; inside != nil {
				got = map[bool]string{true: "yes, ", false: "no"}[*inside]
			}
			expect.Equal(t, tt.want, got+found.Container.Runtime, "inside")
			unknown := factsOf(found.Unknown)
			expect.Equal(t, tt.want == "not known", strings.Contains(unknown, " inside "), "inside is among the unknown facts %q", unknown)
		})
	}
}

// factsOf lists the facts that are unknown, each between blanks.
func factsOf(list []facts.Unknown) string {
	return " " + strings.Join(expect.Map(list, func(u facts.Unknown) string { return u.Fact }), " ") + " "
}

func TestContainerUnreadable(t *testing.T) {
	var m host.Memory
	m.AddError("/proc/self/mountinfo", fs.ErrPermission)
	m.AddError("/dev", fs.ErrPermission)
	m.AddError("/sys/bus/pci/devices", fs.ErrPermission)
	m.AddError("/proc/driver/nvidia/gpus", fs.ErrPermission)
	m.AnswerError(host.AskLimits, errors.New("no limits"))
	got := checktest.One(t, Check, &m)
	expect.NoDiff(t, &facts.ContainerFacts{}, got.Container, "container")
	want := " shm private_ipc private_pid private_user capabilities memlock_soft_bytes get_mempolicy attempts pci_visible device_nodes driver_devices inside "
	expect.Equal(t, want, factsOf(got.Unknown), "unknown facts")
}

func TestContainerMissingMounts(t *testing.T) {
	m := aMachine{files: map[string]string{"/proc/self/mountinfo": "1 0 0:60 / / rw - overlay overlay rw\n"}, links: newNamespaces}
	got := checktest.One(t, Check, m.build()).Container
	expect.NoDiff(t, &facts.ContainerFacts{
		Inside: new(true), Runtime: "other", SHMMounted: new(false), SysMounted: new(false), PCIVisible: new(false), PrivateIPC: new(true),
		PrivatePID: new(true), PrivateUser: new(false),
	}, got, "container")
}

func TestContainerGroups(t *testing.T) {
	got := checktest.One(t, Check, aMachine{files: map[string]string{
		"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "1073741824\n", "/sys/fs/cgroup/memory.current": "536870912\n",
		"/sys/fs/cgroup/memory.stat": "inactive_file 268435456\n", "/sys/fs/cgroup/pids.max": "2048\n", "/sys/fs/cgroup/pids.current": "12\n",
	}}.build()).Container
	expect.NoDiff(t, &facts.GroupMemory{LimitBytes: 1 << 30, InUseBytes: 1 << 28}, got.Memory, "memory")
	expect.NoDiff(t, &facts.GroupTasks{Limit: 2048, Used: 12}, got.Tasks, "tasks")
}

func TestCapabilityNames(t *testing.T) {
	for mask, want := range map[uint64][]string{
		0:                     {},
		1 << 23:               {"SYS_NICE"},
		1<<14 | 1<<40 | 1<<41: {"IPC_LOCK", "CHECKPOINT_RESTORE", "CAP_41"},
	} {
		expect.NoDiff(t, want, CapabilityNames(mask), "%#x", mask)
	}
}

func FuzzGPUInformation(f *testing.F) {
	f.Add([]byte(gpuInformation))
	f.Add([]byte("Device Minor: -1\nBus Location: 0000\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := parseGPUInformation(b)
		expect.That(t, (d.Minor == nil || *d.Minor >= 0) && len(d.Model) <= gather.MaxShown && facts.Address(d.Address) == d.Address, "bad device %+v", d)
	})
}
