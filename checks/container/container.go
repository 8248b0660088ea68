// Package container reads what isolates and limits the process.
package container

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/attempt"
	"github.com/gpudoctor/gpudoctor/checks/system"
)

// Check is the check of the section "container".
var Check = &gather.Check{Name: "container", After: []string{"pci"}, Gather: collect}

const maxNodes = 1024

func collect(ctx context.Context, g *gather.Gathering) error {
	c := &reader{g: g, h: g.Host}
	mounts, err := ReadMounts(g.Host)
	if err != nil {
		c.unknown("shm", err)
	}
	c.mounts = mounts
	c.readNamespaces()
	c.readStatus()
	c.readProcess(ctx)
	c.readGroups()
	c.readShm(ctx)
	c.readSys()
	c.readNodes(ctx)
	c.readDriver()
	c.decideInside(ctx)
	g.Facts.Container = &c.f
	return nil
}

type reader struct {
	g *gather.Gathering
	h *host.Host
	f facts.ContainerFacts
	// mounts is nil when they could not be read.
	mounts []*Mount
}

func (c *reader) unknown(fact string, err error) {
	c.g.Unknown("container", fact, err.Error(), gather.HintFor(err))
}

// ReadMounts returns the mounts that this process sees.
func ReadMounts(h *host.Host) ([]*Mount, error) {
	const file = "/proc/self/mountinfo"
	b, err := h.Read(file)
	if err != nil {
		return nil, err
	}
	mounts, err := ParseMounts(b)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return mounts, nil
}

// mountAt returns what is mounted at a path: the last mount there hides the others.
func mountAt(mounts []*Mount, at string) *Mount {
	for _, m := range slices.Backward(mounts) {
		if m.Mountpoint == at {
			return m
		}
	}
	return nil
}

// The inode numbers of the initial namespaces (include/linux/proc_ns.h, PROC_*_INIT_INO).
const (
	initialIPC  = "ipc:[4026531839]"  // 0xEFFFFFFF
	initialUser = "user:[4026531837]" // 0xEFFFFFFD
	initialPID  = "pid:[4026531836]"  // 0xEFFFFFFC
)

func (c *reader) readNamespaces() {
	private := func(name, initial, fact string) *bool {
		link, err := c.h.Link("/proc/self/ns/" + name)
		if err != nil {
			c.unknown(fact, err)
			return nil
		}
		return new(link != initial)
	}
	c.f.PrivateIPC = private("ipc", initialIPC, "private_ipc")
	c.f.PrivatePID = private("pid", initialPID, "private_pid")
	c.f.PrivateUser = private("user", initialUser, "private_user")
}

func (c *reader) readStatus() {
	status, err := c.h.Text("/proc/self/status")
	if err != nil {
		c.unknown("capabilities", err)
		return
	}
	if mask, err := strconv.ParseUint(host.Value(status, "CapEff"), 16, 64); err == nil {
		c.f.Capabilities = CapabilityNames(mask)
	} else {
		c.g.Unknown("container", "capabilities", "/proc/self/status does not show CapEff", "")
	}
}

// capabilities are the names of the bits of CapEff, in order (include/uapi/linux/capability.h of Linux 6.18).
var capabilities = [...]string{
	"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
	"LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
	"SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
	"SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
	"MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
	"CHECKPOINT_RESTORE",
}

// CapabilityNames names the bits that are set; one without a name is CAP_n.
func CapabilityNames(mask uint64) []string {
	names := []string{}
	for bit := range 64 {
		switch {
		case mask>>bit&1 == 0:
		case bit < len(capabilities):
			names = append(names, capabilities[bit])
		default:
			names = append(names, fmt.Sprintf("CAP_%d", bit))
		}
	}
	return names
}

func (c *reader) readGroups() {
	if m, ok := host.GroupMemory(c.h.Text); ok {
		c.f.Memory = &facts.GroupMemory{LimitBytes: m.Limit, InUseBytes: m.Used}
	}
	if t, ok := host.GroupTasks(c.h.Text); ok {
		c.f.Tasks = &facts.GroupTasks{Limit: t.Limit, Used: t.Used}
	}
}

func (c *reader) readProcess(ctx context.Context) {
	var limits map[string]host.Limit
	if err := c.h.Ask(ctx, host.AskLimits, &limits); err != nil {
		c.unknown("memlock_soft_bytes", err)
	}
	if l, ok := limits["memlock"]; ok {
		c.f.MemlockSoftBytes, c.f.MemlockHardBytes = &l.Soft, &l.Hard
	}
	if l, ok := limits["nofile"]; ok {
		c.f.NOFILESoft = &l.Soft
	}
	if l, ok := limits["as"]; ok {
		c.f.AddressSpaceSoftBytes = &l.Soft
	}
	c.readAttempts(ctx)
}

func (c *reader) readShm(ctx context.Context) {
	const shm = "/dev/shm"
	if c.mounts == nil {
		return // Noted already.
	}
	at, err := c.h.Real(shm) // On older systems it leads to /run/shm.
	if err != nil {
		at = shm
	}
	m := mountAt(c.mounts, at)
	if c.f.SHMMounted = new(m != nil); m == nil {
		return
	}
	var size host.Statfs
	if err := c.h.Ask(ctx, host.AskStatfs+shm, &size); err != nil {
		c.unknown("shm", err)
		return
	}
	c.f.SHM = &facts.FileSystem{
		Path: shm, Type: escape.Printable(m.FSType, gather.MaxShown),
		SizeBytes: size.SizeBytes, FreeBytes: size.FreeBytes,
		ReadOnly: size.ReadOnly || m.ReadOnly(),
	}
}

func (c *reader) readSys() {
	if c.mounts != nil {
		m := mountAt(c.mounts, "/sys")
		c.f.SysMounted = new(m != nil && m.FSType == "sysfs")
	}
	names, err := c.h.Dir("/sys/bus/pci/devices")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.unknown("pci_visible", err)
		return
	}
	c.f.PCIVisible = new(len(names) > 0)
}

// readNodes lists the nodes of GPUs and RDMA devices, and what this process may do with them.
func (c *reader) readNodes(ctx context.Context) {
	names, err := c.h.Dir("/dev")
	if err != nil {
		c.unknown("device_nodes", err)
		return
	}
	paths := []string{}
	for _, name := range names {
		at := "/dev/" + name
		switch {
		case name == "kfd", name == "gdrdrv", name == "infiniband", strings.HasPrefix(name, "nvidia"):
			paths = append(paths, c.nodesAt(at)...)
		case name == "dri":
			paths = append(paths, slices.DeleteFunc(c.nodesAt(at), func(p string) bool {
				return !strings.HasPrefix(path.Base(p), "renderD")
			})...)
		}
	}
	if len(paths) > maxNodes {
		c.g.Unknown("container", "device_nodes", fmt.Sprintf("more than %d nodes; the rest was not read", maxNodes), "")
		paths = paths[:maxNodes]
	}
	nodes := make([]facts.DeviceNode, len(paths))
	var refused error
	for i, p := range paths {
		var access string
		if err := c.h.Ask(ctx, host.AskAccess+p, &access); err != nil {
			refused = cmp.Or(refused, fmt.Errorf("access of %s: %w", p, err))
		}
		nodes[i] = facts.DeviceNode{Path: p, Access: escape.Printable(access, gather.MaxShown)}
	}
	if refused != nil {
		c.unknown("device_nodes.access", refused) // Once, not for each node.
	}
	c.f.DeviceNodes = nodes
}

// nodesAt returns a node's path, or those in a folder.
func (c *reader) nodesAt(at string) []string {
	info, err := c.h.Stat(at)
	if err != nil || !info.Mode.IsDir() {
		return []string{at}
	}
	names, err := c.h.Dir(at)
	if err != nil {
		c.unknown("device_nodes", err)
	}
	paths := make([]string, 0, len(names))
	for _, name := range names {
		// by-ibdev, by-path and similar folders name the same nodes again.
		if info, err := c.h.Stat(path.Join(at, name)); err == nil && info.Mode.IsDir() {
			continue
		}
		paths = append(paths, path.Join(at, name))
	}
	return paths
}

// readDriver lists the GPUs that the NVIDIA kernel driver knows, which may be all of the host's.
func (c *reader) readDriver() {
	const folder = "/proc/driver/nvidia/gpus"
	names, err := c.h.Dir(folder)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.unknown("driver_devices", err)
		}
		return
	}
	for _, name := range names[:min(len(names), maxNodes)] {
		b, err := c.h.Read(path.Join(folder, name, "information"))
		if err != nil {
			c.unknown("driver_devices", err)
			continue
		}
		d := parseGPUInformation(b)
		if d.Address = cmp.Or(facts.Address(name), d.Address); d.Address != "" {
			c.f.DriverDevices = append(c.f.DriverDevices, d)
		}
	}
}

// parseGPUInformation parses a file "information" of the NVIDIA driver (kernel-open/nvidia/nv-procfs.c).
func parseGPUInformation(b []byte) facts.DriverDevice {
	var d facts.DriverDevice
	for line := range bytes.Lines(b) {
		key, value, _ := strings.Cut(string(line), ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "Model":
			d.Model = escape.Printable(value, gather.MaxShown)
		case "Bus Location":
			d.Address = facts.Address(value)
		case "Device Minor":
			if n, err := strconv.Atoi(value); err == nil && n >= 0 {
				d.Minor = &n
			}
		case "GPU Excluded", "Blacklisted":
			d.Excluded = value == "Yes"
		}
	}
	return d
}

type sign struct {
	// evidence names the file or variable, runtime what it points to.
	evidence, runtime string
	// sure is true for what only a process in a container sees. The others may remain on a disk made from an image.
	sure bool
}

// runtimes are the values of Runtime, the most specific first: what runs in another comes before it.
var runtimes = []string{"gvisor", "apptainer", "enroot", "kubernetes", "crio", "podman", "docker", "lxc", "systemd-nspawn", "containerd", "other"}

func (c *reader) decideInside(ctx context.Context) {
	signs := slices.Concat(c.signsOfEnvironment(ctx), c.signsOfFiles(), c.signsOfPaths())
	for _, s := range signs {
		c.f.Evidence = append(c.f.Evidence, escape.Printable(s.evidence, gather.MaxShown))
	}
	slices.Sort(c.f.Evidence)
	c.f.Evidence = slices.Compact(c.f.Evidence)
	sure := slices.ContainsFunc(signs, func(s sign) bool { return s.sure })
	layered, rootKnown := c.layeredRoot()
	isPrivate := func(p *bool) bool { return p != nil && *p }
	apart := isPrivate(c.f.PrivatePID) || isPrivate(c.f.PrivateIPC)
	initial := c.f.PrivatePID != nil && c.f.PrivateIPC != nil && !apart
	switch {
	case sure, len(signs) > 0 && (layered || apart), layered && apart:
		c.f.Inside = new(true)
	case initial && rootKnown && !layered:
		// A disk made from an image may hold such files; this is the kernel's own namespaces and a disk of its own.
		c.f.Inside = new(false)
		return
	default:
		c.g.Unknown("container", "inside", "namespaces and mounts do not show whether this is a container", "")
		return
	}
	c.f.Runtime = "other"
	for _, r := range runtimes {
		if slices.ContainsFunc(signs, func(s sign) bool { return s.runtime == r }) {
			c.f.Runtime = r
			break
		}
	}
}

func (c *reader) signsOfEnvironment(ctx context.Context) []sign {
	env, err := env.Environment(ctx, c.h)
	if err != nil {
		return nil // The check env says so.
	}
	var signs []sign
	for name, runtime := range map[string]string{
		"APPTAINER_CONTAINER": "apptainer", "SINGULARITY_CONTAINER": "apptainer", "KUBERNETES_SERVICE_HOST": "kubernetes",
	} {
		if env[name] != "" {
			signs = append(signs, sign{"$" + name, runtime, true})
		}
	}
	// The interface of systemd for containers: the manager's name.
	if manager := env["container"]; manager != "" {
		signs = append(signs, sign{"$container", runtimeNamed(manager), true})
	}
	for name := range env {
		if strings.HasPrefix(name, "ENROOT_") {
			// Also set where containers are started, so it proves nothing.
			signs = append(signs, sign{"$" + name, "enroot", false})
		}
	}
	return signs
}

// runtimeNamed is the runtime that a manager of containers calls itself.
func runtimeNamed(manager string) string {
	if name := strings.TrimSuffix(manager, "-libvirt"); slices.Contains(runtimes, name) {
		return name
	}
	return "other"
}

func (c *reader) signsOfFiles() []sign {
	var signs []sign
	for _, known := range []sign{
		{"/.dockerenv", "docker", false},
		{"/run/.containerenv", "podman", false},
		{"/.singularity.d", "apptainer", false},
		{"/var/run/secrets/kubernetes.io", "kubernetes", true},
	} {
		if found, err := c.h.Exists(known.evidence); err == nil && found {
			signs = append(signs, known)
		}
	}
	// Written by systemd in a container, and by its manager. A disk that was made from an image may hold them.
	for _, name := range []string{"/run/systemd/container", "/run/host/container-manager"} {
		if manager, err := c.h.Text(name); err == nil && manager != "" {
			signs = append(signs, sign{name, runtimeNamed(manager), false})
		}
	}
	if system.IsGVisor(c.h) {
		signs = append(signs, sign{"/proc/version", "gvisor", true})
	}
	return signs
}

// runtimePaths are parts of the paths under which runtimes keep the layers and files that they mount, and of the names that they
// give control groups. docker-abc.scope is a container, docker.service its daemon.
var runtimePaths = []struct{ part, runtime string }{
	{"/kubelet/pods/", "kubernetes"},
	{"kubepods", "kubernetes"},
	{"/docker/", "docker"},
	{"/docker-", "docker"},
	{"/containers/storage/", "podman"},
	{"/overlay-containers/", "podman"},
	{"libpod-", "podman"},
	{"/libpod", "podman"},
	{"/nerdctl", "containerd"},
	{"io.containerd.snapshotter", "containerd"},
	{"io.containerd.grpc", "containerd"},
	{"/cri-containerd-", "containerd"},
	{"/buildkit/", "containerd"},
	{"/crio-", "crio"},
	{"/enroot/", "enroot"},
	{"/lxc/", "lxc"},
	{"/lxc.payload", "lxc"},
	{"/machine.slice/systemd-nspawn@", "systemd-nspawn"},
}

// signsOfPaths looks at the mounts of the root and of the files that runtimes mount over those of an image, and at the names
// of the control groups (cgroups(7)), which name the runtime unless the group has a namespace of its own.
func (c *reader) signsOfPaths() (signs []sign) {
	look := func(evidence, text string) {
		for _, known := range runtimePaths {
			if strings.Contains(text, known.part) {
				signs = append(signs, sign{evidence, known.runtime, true})
			}
		}
	}
	for _, at := range []string{"/", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"} {
		if m := mountAt(c.mounts, at); m != nil && at == "/" {
			look("/proc/self/mountinfo: "+at, m.Root+" "+m.VFSOptions)
		} else if m != nil {
			look("/proc/self/mountinfo: "+at, m.Root)
		}
	}
	for _, file := range []string{"/proc/self/cgroup", "/proc/1/cgroup"} {
		text, _ := c.h.Text(file) // Without it, it shows nothing.
		look(file, text)
	}
	return signs
}

// layeredRoot reports whether the root is made of layers, as in containers and live systems, and whether that is known.
func (c *reader) layeredRoot() (layered, known bool) {
	m := mountAt(c.mounts, "/")
	if m == nil {
		return false, false
	}
	switch m.FSType {
	case "overlay", "aufs", "squashfs", "9p", "virtiofs":
		return true, true
	}
	return strings.HasPrefix(m.FSType, "fuse"), true
}

func (c *reader) readAttempts(ctx context.Context) {
	var answer attempt.Answer
	if err := c.g.Attempts(ctx, &answer); err != nil {
		c.unknown("get_mempolicy", err)
		c.unknown("attempts", err)
		return
	}
	c.f.GetMempolicy = c.word("get_mempolicy", answer.Results[attempt.GetMempolicy])
	c.f.Mlock = c.word("mlock", answer.Results[attempt.Mlock])
	if !answer.Probed {
		c.g.Add(facts.Unknown{
			Section: "container", Fact: "attempts", Reason: "the probe was not requested", Hint: "use --probe quick or full", Kind: facts.NotAsked,
		})
		return
	}
	c.f.Attempts = &facts.Attempts{
		SharedMemory: c.attempt("attempts.shared_memory", answer.Results[attempt.SharedMemory]),
		LockedMemory: c.attempt("attempts.locked_memory", answer.Results[attempt.LockedMemory]),
	}
}

// word is an outcome as one word: "ok" or the name of an error.
func (c *reader) word(fact string, r attempt.Result) string {
	a := c.attempt(fact, r)
	if a == nil {
		return ""
	}
	return cmp.Or(a.Errno, a.Outcome)
}

// attempt is an outcome as a fact; nil for one that is not known.
func (c *reader) attempt(fact string, r attempt.Result) *facts.Attempt {
	a, why := r.Fact()
	if a == nil {
		c.g.Unknown("container", fact, why, "")
	}
	return a
}
