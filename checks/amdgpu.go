package checks

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/pci"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// What amdgpu and amdkfd show of themselves; docs/amd.md says which fact is from which file.
const (
	kfdClass     = "/sys/class/kfd/kfd"
	kfdNodes     = kfdClass + "/topology/nodes"
	kfdProcesses = kfdClass + "/proc"
	amdModule    = "/sys/module/amdgpu"
	amdDriver    = "amdgpu"
)

// Bounds of what is read. A host of 8 MI300X in CPX mode has 64 nodes of GPUs and 2 to 8 of processors.
const (
	maxKFDNodes     = 512
	maxKFDProcesses = 1024
)

// hasAMD is false if the PCI tree shows no AMD display controller or accelerator: then no file is read.
func (c *gpuGathering) hasAMD() bool {
	return c.Facts.PCI == nil || slices.ContainsFunc(c.Facts.PCI.Devices, func(d facts.PCIDevice) bool {
		return d.Vendor == pci.VendorAMD && (d.Kind == pci.KindGPU || d.Kind == "display" || d.Kind == "")
	})
}

// readAMD adds what AMD's drivers show to the known GPUs, and the integrated ones that only the compute driver
// takes for GPUs.
func (c *gpuGathering) readAMD(ctx context.Context) {
	if !c.hasAMD() {
		return
	}
	t := readKFD(ctx, c.Host)
	c.joinKFD(t)
	anyGPU, bound := false, []string(nil)
	for i := range c.out.Devices {
		gpu := &c.out.Devices[i]
		if gpu.Vendor != pci.WordAMD {
			continue
		}
		anyGPU = true
		if c.readAMDGPU(gpu) {
			bound = append(bound, gpu.Address)
		}
	}
	c.noteMemory()
	driver := c.readAMDDriver(ctx, t, bound)
	if !anyGPU && (driver.Loaded == nil || !*driver.Loaded) {
		return
	}
	c.out.AMD = driver
	c.noteKFD(t, bound)
	c.readKFDProcesses(ctx, t)
}

// joinKFD gives each GPU its node, or the nodes of its partitions.
func (c *gpuGathering) joinKFD(t *kfdTopology) {
	for i := range t.nodes {
		n := &t.nodes[i]
		gpu := c.gpuOfNode(n)
		gpu.Architecture = cmp.Or(gpu.Architecture, n.architecture())
		if n.properties["cpu_cores_count"] > 0 {
			gpu.Integrated = new(true)
		}
		if gpu.KFD == nil {
			gpu.KFD = &facts.KFDNode{Node: n.number}
			continue
		}
		if gpu.KFD.Nodes == nil {
			gpu.KFD.Nodes = []int{gpu.KFD.Node}
		}
		gpu.KFD.Nodes = append(gpu.KFD.Nodes, n.number)
	}
	slices.SortStableFunc(c.out.Devices, func(a, b facts.GPU) int { return cmp.Compare(a.Address, b.Address) })
}

// gpuOfNode finds the GPU that a node is, or adds it.
func (c *gpuGathering) gpuOfNode(n *kfdNode) *facts.GPU {
	address := n.address()
	gpu := c.out.At(address)
	if _, is := pci.DeviceAt(c.Facts, address); gpu == nil && (!is || !strings.HasSuffix(address, ".0")) {
		gpu = c.out.At(address[:len(address)-1] + "0")
	}
	if gpu != nil {
		return gpu
	}
	c.out.Devices = append(c.out.Devices, facts.GPU{Address: address, Vendor: pci.WordAMD, InPCI: c.inPCI(address)})
	return &c.out.Devices[len(c.out.Devices)-1]
}

// readAMDGPU reads what amdgpu says about one GPU in the folder of its PCI device, and returns whether amdgpu
// drives it. It does not read xgmi_error, because reading clears the error (amdgpu_xgmi_show_error, amdgpu_xgmi.c).
func (c *gpuGathering) readAMDGPU(gpu *facts.GPU) bool {
	d, inPCI := pci.DeviceAt(c.Facts, gpu.Address)
	model := data.GPUModelByID(d.Device)
	gpu.Name = cmp.Or(gpu.Name, model.Name)
	if gpu.Integrated == nil && inPCI {
		switch {
		case d.Kind == "display":
			gpu.Integrated = new(true)
		case d.Kind == pci.KindGPU && model.Form != "superchip": // MI300A is neither integrated nor a card.
			gpu.Integrated = new(false)
		}
	}
	if !inPCI || d.Driver != amdDriver {
		return false
	}
	dir := path.Join(pci.Devices, gpu.Address)
	if n, err := c.Host.Int(dir + "/mem_info_vram_total"); err == nil && n > 0 {
		gpu.MemoryBytes = n
	}
	if n, err := c.Host.Int(dir + "/mem_info_vis_vram_total"); err == nil && n >= 0 {
		gpu.VisibleMemoryBytes = &n
	}
	if n, err := c.Host.Int(dir + "/mem_info_vram_used"); err == nil && n >= 0 {
		gpu.MemoryUsedBytes = &n
	}
	if name := c.amdText(dir + "/product_name"); name != "" { // From the board's FRU memory; consumer cards have none.
		gpu.Name = name
	}
	gpu.VBIOS = c.amdText(dir + "/vbios_version")
	if d.OffBus {
		c.Unknown("gpus", "devices.ras", "the device has fallen off the bus and counts no errors: "+gpu.Address, "")
		return true
	}
	c.readRAS(gpu, dir+"/ras")
	return true
}

// noteMemory notes which GPUs do not report their memory, which they do once the driver has initialized them.
func (c *gpuGathering) noteMemory() {
	var silent []string
	for _, gpu := range c.out.Devices {
		d, _ := pci.DeviceAt(c.Facts, gpu.Address)
		if gpu.Vendor == pci.WordAMD && d.Driver == amdDriver && (gpu.MemoryBytes == 0 || gpu.VisibleMemoryBytes == nil) {
			silent = append(silent, gpu.Address)
		}
	}
	if len(silent) > 0 {
		c.Unknown("gpus", "devices.visible_memory_bytes", "amdgpu does not report the memory size of "+gather.SomeOf(silent)+" (mem_info_vram_total, mem_info_vis_vram_total)",
			"check the kernel log for errors of amdgpu")
	}
}

// amdText is the text of a small file, or empty.
func (c *gpuGathering) amdText(name string) string {
	text, _ := c.Host.Text(name)
	return escape.Printable(text, gather.MaxShown)
}

// readRAS reads the error counters: a file for each block that can count.
func (c *gpuGathering) readRAS(gpu *facts.GPU, dir string) {
	names, err := c.Host.Dir(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, host.ErrNotRecorded) {
			c.Unknown("gpus", "devices.ras", err.Error(), gather.HintFor(err))
		}
		return
	}
	for _, name := range names {
		block, counts := strings.CutSuffix(name, "_err_count")
		if !counts {
			continue
		}
		text, err := c.Host.Text(dir + "/" + name)
		ras, ok := parseRAS(text)
		switch {
		case errors.Is(err, host.ErrSlow): // A GPU that does not answer is not asked again.
			c.Unknown("gpus", "devices.ras", err.Error(), "see the kernel log")
			return
		case err != nil:
			c.Unknown("gpus", "devices.ras", err.Error(), gather.HintFor(err))
		case !ok: // "Query currently inaccessible" while the GPU is reset.
			c.Unknown("gpus", "devices.ras", fmt.Sprintf("%s: %s says %.60q", gpu.Address, name, text), "run it again after the reset")
		default:
			ras.Block = escape.Printable(block, gather.MaxShown)
			gpu.RAS = append(gpu.RAS, ras)
			if block == "xgmi_wafl" && ras.Uncorrectable <= math.MaxInt32 {
				gpu.XGMIErrors = new(int(ras.Uncorrectable))
			}
		}
	}
	if slices.Contains(names, "gpu_vram_bad_pages") {
		if b, err := c.Host.Read(dir + "/gpu_vram_bad_pages"); err == nil {
			gpu.RetiredPages = countBadPages(b)
		}
	}
}

// parseRAS reads a file of counters: "ue: 0", "ce: 3" and, in newer
// drivers, "de: 0" (amdgpu_ras_sysfs_read and amdgpu_ras_aca_sysfs_read, amdgpu_ras.c).
func parseRAS(text string) (facts.RASBlock, bool) {
	var r facts.RASBlock
	seen := 0
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil || n < 0 {
			continue
		}
		switch strings.TrimSpace(name) {
		case "ue":
			r.Uncorrectable = n
			seen |= 1
		case "ce":
			seen |= 2
		case "de":
			r.Deferred = n
		}
	}
	return r, seen == 3
}

var badPage = lazy.New(`^0x[0-9a-f]{8,16} : 0x[0-9a-f]{8} : [RPF]$`)

// countBadPages counts the lines of gpu_vram_bad_pages, "0x00000001 : 0x00001000 : R"
// (amdgpu_ras_sysfs_badpages_read); nil if a line is something else.
func countBadPages(b []byte) *int {
	pages := 0
	for line := range bytes.Lines(bytes.TrimRight(b, "\x00")) {
		text := bytes.TrimSpace(line)
		if len(text) == 0 {
			continue
		}
		if !badPage.Get().Match(text) {
			return nil
		}
		pages++
	}
	return &pages
}

// noteKFD says why GPUs have no node. Bound are those that amdgpu drives.
func (c *gpuGathering) noteKFD(t *kfdTopology, bound []string) {
	missing := slices.DeleteFunc(slices.Clone(bound), func(address string) bool { return c.out.At(address).KFD != nil })
	const fact = "devices.kfd"
	switch {
	case t.state == kfdAbsent && len(bound) > 0:
		c.Unknown("gpus", fact, fmt.Sprintf("amdgpu drives %s, but %s does not exist", gather.SomeOf(bound), kfdClass),
			"use a kernel with CONFIG_HSA_AMD; in a container, mount /sys")
	case t.state == kfdUnreadable:
		c.Unknown("gpus", fact, fmt.Sprintf("list %s: %s", kfdNodes, gather.Cause(t.err)), gather.HintFor(t.err))
	case t.state == kfdPartial && t.unread > 0:
		c.Unknown("gpus", fact, fmt.Sprintf("%d nodes of %s cannot be read; a container can read only the nodes of the GPUs that it was given", t.unread, kfdNodes),
			"give the container /dev/kfd and the /dev/dri/renderD* of each GPU, or run gpudoctor on the host")
	case t.state == kfdPartial:
		c.Unknown("gpus", fact, fmt.Sprintf("more than %d nodes in %s, or reading them took too long; the rest was not read", maxKFDNodes, kfdNodes), "")
	case t.state == kfdOK && len(missing) > 0:
		c.Unknown("gpus", fact, "amdgpu drives GPUs that the compute driver's topology does not list: "+gather.SomeOf(missing),
			"check the kernel log for the reason (kfd: skipped device; unsupported PCIe atomics; a GPU that failed to start)")
	}
}

// amdParameters are the parameters of amdgpu that affect communication (drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c).
var amdParameters = []string{
	"pcie_p2p", "use_xgmi_p2p", "noretry", "no_system_mem_limit", "debug_largebar", "vis_vramlimit", "vramlimit",
	"gpu_recovery", "ras_enable", "mes", "aspm", "pcie_gen_cap", "pcie_lane_cap", "sched_policy", "mtype_local", "runpm", "rebar",
}

// readAMDDriver reads the facts about the driver and what it needs, if it drives a GPU.
func (c *gpuGathering) readAMDDriver(ctx context.Context, t *kfdTopology, bound []string) *facts.AMDDriver {
	d := &facts.AMDDriver{KFD: t.state}
	if loaded, err := c.Host.Exists(amdModule); err == nil && (loaded || c.Facts.PCI != nil) {
		d.Loaded = &loaded
	}
	if len(bound) == 0 && len(t.nodes) == 0 {
		return d
	}
	// The kernel's own driver has no version; the file is the DKMS package's.
	d.Version = c.amdText(amdModule + "/version")
	for _, name := range amdParameters {
		if value := c.amdText(amdModule + "/parameters/" + name); value != "" {
			facts.Put(&d.Parameters, name, value)
		}
	}
	var config host.KernelConfig
	if err := c.Host.Ask(ctx, host.AskKernelConfig, &config); err == nil && len(config.Options) > 0 {
		d.KernelConfig = config.Options
	} else if ctx.Err() == nil {
		reason := "the recording holds no kernel configuration"
		if err != nil && !errors.Is(err, host.ErrNotRecorded) {
			reason = err.Error()
		}
		c.Unknown("gpus", "amd.kernel_config", reason, "in a container, mount /boot read-only, or run gpudoctor on the host")
	}
	d.ROCm = c.readROCm()
	return d
}

var rocmVersion = lazy.New(`^([0-9]+(?:\.[0-9]+)+(?:[-.+~][0-9A-Za-z.~+-]*)?)$`)

// readROCm reads the version of the installation that /opt/rocm points to.
func (c *gpuGathering) readROCm() string {
	return rocmVersion.First(c.amdText("/opt/rocm/.info/version"))
}

// seesAllProcesses is true if the kernel's own thread 2 is visible, and so all processes of the host.
func seesAllProcesses(h *host.Host) bool {
	name, err := h.Text("/proc/2/comm")
	return err == nil && name == "kthreadd"
}

// readKFDProcesses notes who holds memory on which GPU. The driver names processes by their IDs on the host: in
// another PID namespace, gpudoctor could not tell its own child from others.
func (c *gpuGathering) readKFDProcesses(ctx context.Context, t *kfdTopology) {
	if len(t.nodes) == 0 {
		return
	}
	const fact = "devices.processes"
	if !seesAllProcesses(c.Host) {
		c.Unknown("gpus", fact, "the compute driver lists process IDs of the host, whose processes are not visible here",
			"run outside the container, or share the host's PID namespace (docker run --pid host)")
		return
	}
	users, err := kfdUsers(ctx, c.Host, c.out.Devices, t.nodes)
	if err != nil {
		if !errors.Is(err, host.ErrNotRecorded) {
			c.Unknown("gpus", fact, err.Error(), gather.HintFor(err))
		}
		return
	}
	for i := range c.out.Devices {
		if gpu := &c.out.Devices[i]; gpu.KFD != nil {
			gpu.Processes = append([]facts.GPUProcess{}, users[gpu.Address]...)
			for j := range gpu.Processes {
				gpu.Processes[j].Name = c.nameOf(gpu.Processes[j].PID)
			}
		}
	}
}

// kfdUsers returns who holds memory on which GPU, by address: proc/PID/vram_ID, more than 0 (kfd_procfs_show,
// kfd_process.c, since Linux 5.8). gpudoctor and its children are left out.
func kfdUsers(ctx context.Context, h *host.Host, devices []facts.GPU, nodes []kfdNode) (map[string][]facts.GPUProcess, error) {
	names, err := h.Dir(kfdProcesses)
	if err != nil {
		return nil, err
	}
	addresses := make(map[int64]string)
	for _, gpu := range devices {
		for _, n := range nodes {
			if gpu.KFD != nil && (n.number == gpu.KFD.Node || slices.Contains(gpu.KFD.Nodes, n.number)) {
				addresses[n.id] = gpu.Address
			}
		}
	}
	users := make(map[string][]facts.GPUProcess)
	for i, pid := range kfdNumbers(names) {
		if i == maxKFDProcesses || ctx.Err() != nil {
			break
		}
		if !h.Recorded() && child.Own(pid) {
			continue
		}
		for id, address := range addresses {
			// A process that has exited holds nothing.
			n, readErr := h.Int(fmt.Sprintf("%s/%d/vram_%d", kfdProcesses, pid, id))
			held := slices.ContainsFunc(users[address], func(p facts.GPUProcess) bool { return p.PID == pid }) // In another partition.
			if readErr == nil && n > 0 && !held {
				users[address] = append(users[address], facts.GPUProcess{PID: pid})
			}
		}
	}
	return users, ctx.Err()
}

// busyAMD says which AMD GPUs others use; own is how much of their memory gpudoctor may hold itself.
func busyAMD(ctx context.Context, h *host.Host, own int64) map[string]probe.User {
	busy := make(map[string]probe.User)
	t := readKFD(ctx, h)
	var devices []facts.GPU
	for i := range t.nodes {
		n := &t.nodes[i]
		devices = append(devices, facts.GPU{Address: n.address(), KFD: &facts.KFDNode{Node: n.number}})
	}
	if len(devices) > 0 && seesAllProcesses(h) {
		users, _ := kfdUsers(ctx, h, devices, t.nodes) // Who is not seen is not in the way.
		for address, list := range users {
			name, _ := h.Text(fmt.Sprintf("/proc/%d/comm", list[0].PID)) // Of another PID namespace none is visible.
			busy[address] = probe.User{PID: list[0].PID, Program: name}
		}
		return busy
	}
	for _, d := range devices {
		if n, err := h.Int(path.Join(pci.Devices, d.Address, "mem_info_vram_used")); err == nil && n > busyBytes+own {
			busy[d.Address] = probe.User{UsedBytes: n}
		}
	}
	return busy
}
