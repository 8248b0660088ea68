package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/internal/nvml"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/pci"
)

// gpusCheck gathers GPUs as the vendors' management libraries see them.
var gpusCheck = &gather.Check{
	Name:  "gpus",
	After: []string{"pci"},
	// A library that starts 8 GPUs one after the other takes longer than
	// other checks may; the query has deadlines of its own.
	Patient: true,
	Gather:  gatherGPUs,
}

func gatherGPUs(ctx context.Context, g *gather.Gathering) error {
	c := &gpuGathering{Gathering: g, out: &facts.GPUFacts{}}
	answer, err := c.askNVML(ctx)
	if err != nil {
		return err
	}
	c.out.Driver = answer.Driver
	c.readDriver()
	c.out.NVML, c.out.NVMLError = answer.Outcome, answer.ErrorName
	c.join(answer.Devices)
	c.noteUnclassed()
	c.out.P2P = answer.P2P
	c.noteNVML(answer)
	c.noteRefusals(answer.Devices)
	c.readAMD(ctx)
	c.out.NVSwitches = c.countNVSwitches()
	if c.hasFabric() {
		c.out.Driver.FabricManager = c.findFabricManager(ctx)
	}
	g.Facts.GPUs = c.out
	return nil
}

type gpuGathering struct {
	*gather.Gathering
	out *facts.GPUFacts
}

// NVMLNotAsked is GPUFacts.NVML of a recording that holds no answer.
const NVMLNotAsked = "not-asked"

func (c *gpuGathering) askNVML(ctx context.Context) (*nvml.Answer, error) {
	answer := &nvml.Answer{}
	err := c.NVML(ctx, answer)
	switch {
	case err == nil:
		for i := range answer.Devices {
			d := &answer.Devices[i]
			d.Index = cmp.Or(d.Index, new(int))
		}
		return answer, nil
	case ctx.Err() != nil:
		return nil, err
	case !errors.Is(err, host.ErrNotRecorded):
		return &nvml.Answer{Outcome: nvml.Failed, Reason: err.Error()}, nil
	}
	return &nvml.Answer{Outcome: NVMLNotAsked}, nil
}

// join builds the list of GPUs from the PCI tree and NVML.
func (c *gpuGathering) join(devices []nvml.Device) {
	byAddress := make(map[string]*facts.GPU)
	if c.Facts.PCI != nil {
		c.out.Devices = []facts.GPU{}
		for _, d := range c.Facts.PCI.Devices {
			vendor := pci.VendorName(d.Vendor)
			// The virtual functions of a host that shares its GPUs are not GPUs of its own.
			if d.Kind == pci.KindGPU && vendor != "" && !d.Virtual {
				byAddress[d.Address] = &facts.GPU{Address: d.Address, Vendor: vendor, InPCI: true}
			}
		}
	}
	var silent []nvml.Device
	for _, d := range devices {
		if d.Address == "" {
			silent = append(silent, d)
			continue
		}
		gpu := byAddress[d.Address]
		if gpu == nil {
			gpu = &facts.GPU{Address: d.Address, Vendor: pci.WordNVIDIA, InPCI: c.inPCI(d.Address)}
			byAddress[d.Address] = gpu
		}
		c.fill(gpu, d)
	}
	for _, gpu := range byAddress {
		c.out.Devices = append(c.out.Devices, *gpu)
	}
	c.placeSilent(silent)
	slices.SortStableFunc(c.out.Devices, func(a, b facts.GPU) int { return cmp.Compare(a.Address, b.Address) })
}

// noteUnclassed notes that PCI devices whose class or vendor cannot be read may be GPUs.
func (c *gpuGathering) noteUnclassed() {
	unclassed := 0
	for _, d := range c.Facts.PCI.All() {
		if d.Kind == "" {
			unclassed++
		}
	}
	if unclassed > 0 {
		if len(c.out.Devices) == 0 {
			c.out.Devices = nil
		}
		c.Unknown("gpus", "devices", fmt.Sprintf("the kind of %d of %d PCI devices cannot be read", unclassed, len(c.Facts.PCI.Devices)), "")
	}
}

func (c *gpuGathering) inPCI(address string) bool {
	_, is := pci.DeviceAt(c.Facts, address)
	return is
}

// placeSilent identifies the GPUs that NVML counts and that do not report their address: those left over in the PCI
// tree, if their number and all errors agree. Otherwise they have no address.
func (c *gpuGathering) placeSilent(silent []nvml.Device) {
	var left []int
	for i, gpu := range c.out.Devices {
		if gpu.Vendor == pci.WordNVIDIA && !gpu.InNVML && !c.givenAway(gpu.Address) {
			left = append(left, i)
		}
	}
	sure := len(left) == len(silent) && !slices.ContainsFunc(silent, func(d nvml.Device) bool { return d.Error != silent[0].Error })
	for i, d := range silent {
		gpu := &facts.GPU{Vendor: pci.WordNVIDIA}
		if sure {
			gpu = &c.out.Devices[left[i]]
		}
		gpu.InNVML, gpu.Error = true, d.Error
		if len(silent) == 1 || !sure {
			gpu.Index = d.Index
		}
		if !sure {
			c.out.Devices = append(c.out.Devices, *gpu)
		}
	}
}

// givenAway is true for a GPU that another driver has, such as vfio-pci: NVML does not count it.
func (c *gpuGathering) givenAway(address string) bool {
	d, _ := pci.DeviceAt(c.Facts, address)
	return d.Driver != "" && d.Driver != "nvidia"
}

// fill takes what NVML reported about a GPU, and adds its name to each process.
func (c *gpuGathering) fill(gpu *facts.GPU, d nvml.Device) {
	d.Address, d.Vendor, d.InPCI, d.InNVML = gpu.Address, gpu.Vendor, gpu.InPCI, true
	const maxNames = 1000 // More processes than a GPU has contexts for.
	for i := range d.Processes[:min(len(d.Processes), maxNames)] {
		d.Processes[i].Name = c.nameOf(d.Processes[i].PID)
	}
	*gpu = d.GPU
}

// nameOf returns a process's name; empty where it is not visible, as from within a container.
func (c *gpuGathering) nameOf(pid int) string {
	name, _ := c.Host.Text(path.Join("/proc", strconv.Itoa(pid), "comm"))
	return strings.ToValidUTF8(name, "?")
}

// expectsNVIDIA is true when something shows an NVIDIA GPU or driver, so that NVML should have answered.
func (c *gpuGathering) expectsNVIDIA() bool {
	return c.out.Driver.KernelVersion != "" || slices.ContainsFunc(c.out.Devices, func(gpu facts.GPU) bool { return gpu.Vendor == pci.WordNVIDIA })
}

// provesDriver are the NVML errors that only a kernel driver causes.
var provesDriver = map[string]bool{"NO_PERMISSION": true, "LIB_RM_VERSION_MISMATCH": true}

// nvmlHints say how to make NVML answer, by the name of its error.
var nvmlHints = map[string]string{
	"DRIVER_NOT_LOADED":       "load the NVIDIA kernel module, or give the container its devices (docker run --gpus all)",
	"NO_PERMISSION":           "run as root, or give this user access to /dev/nvidiactl and /dev/nvidia*",
	"LIB_RM_VERSION_MISMATCH": "reload the kernel module or reboot, so that its version matches the library",
	"LIBRARY_NOT_LOADED":      "repair the driver's libraries; an empty file is a mount point left by the container runtime",
}

// noteNVML says why the answers of NVML are missing or end early.
func (c *gpuGathering) noteNVML(a *nvml.Answer) {
	at := ""
	if a.Stage != "" {
		at = " in " + a.Stage
	}
	why := strings.TrimSpace(cmp.Or(a.ErrorName, a.Reason))
	if a.ErrorName != "" && a.Reason != "" {
		why += " (" + a.Reason + ")"
	}
	var reason, hint string
	switch {
	case a.Outcome == nvml.OK:
		return
	case a.Outcome == nvml.Hang:
		reason = "NVIDIA's management library hangs" + at
		if a.Left {
			reason += ", and its process cannot be killed: it is blocked in the kernel"
		}
		hint = "see the kernel log; reset the GPU that hangs, or reboot"
	case a.Outcome == nvml.Crashed:
		reason = "NVIDIA's management library crashes" + at
		if why != "" {
			reason += ": " + why
		}
		hint = "see the kernel log"
	case a.Outcome == nvml.Ended:
		reason, hint = "the process that queries NVIDIA's management library was ended"+at+": "+a.Reason, endHints[a.Death]
	case !c.expectsNVIDIA() && !provesDriver[a.ErrorName]:
		return // There is nothing to ask about.
	case a.Outcome == nvml.NotFound:
		reason, hint = "NVIDIA's management library (libnvidia-ml.so.1) is not found",
			"install the driver's libraries; in a container, set NVIDIA_DRIVER_CAPABILITIES=utility,compute or all"
	case a.Outcome == nvml.NotBuilt:
		reason, hint = a.Reason, "use a Linux build of gpudoctor with cgo"
	case a.Outcome == NVMLNotAsked:
		reason, hint = "NVIDIA's management library was not queried for this recording", "record it again on the machine with gpudoctor snapshot"
	default:
		reason, hint = "NVIDIA's management library fails"+at+": "+why, nvmlHints[a.ErrorName]
	}
	c.Unknown("gpus", "devices", reason, hint)
}

// endHints say what to do if a process of this program ended and no driver is to blame.
var endHints = map[child.Death]string{
	child.DeathByOther:    "run it again; if the kernel log shows that memory ran out, give the machine or the container more memory",
	child.DeathByShortage: "raise the limit (ulimit, or the container's), and run it again",
	child.DeathByBug:      "this is a bug in gpudoctor; please report it",
	child.DeathUnknown:    "run it again",
}

// refusedFacts are the fields that a function of NVML fills.
var refusedFacts = []struct{ prefix, fact string }{
	{"nvmlDeviceGetMemoryInfo", "devices.memory_bytes"},
	{"nvmlDeviceGetBAR1", "devices.bar1_bytes"},
	{"nvmlDeviceGetTotalEcc", "devices.ecc"},
	{"nvmlDeviceGetEcc", "devices.ecc"},
	{"nvmlDeviceGetSramEcc", "devices.ecc"},
	{"nvmlDeviceGetRetired", "devices.ecc"},
	{"nvmlDeviceGetRepair", "devices.ecc"},
	{"nvmlDeviceGetUnrepairable", "devices.ecc"},
	{"nvmlDeviceGetRemappedRows", "devices.remapped_rows"},
	{"nvmlDeviceGetNvLink", "devices.nvlinks"},
	{"nvmlDeviceGetFieldValues", "devices.nvlinks"},
	{"nvmlDeviceGetGpuFabric", "devices.fabric"},
	{"nvmlDeviceGetComputeRunning", "devices.processes"},
	{"nvmlDeviceGetMigMode", "devices.mig"},
	{"nvmlDeviceGetCurrPcie", "devices.pcie"},
	{"nvmlDeviceGetMaxPcie", "devices.pcie"},
}

func (c *gpuGathering) noteRefusals(devices []nvml.Device) {
	for _, d := range devices {
		for _, r := range d.Refused {
			fact := "devices"
			for _, f := range refusedFacts {
				if strings.HasPrefix(r.Function, f.prefix) {
					fact = f.fact
					break
				}
			}
			hint := ""
			if r.Error == "NO_PERMISSION" {
				hint = "run as root"
			}
			c.Unknown("gpus", fact, fmt.Sprintf("%s of %s returns %s", r.Function, cmp.Or(d.Address, fmt.Sprintf("GPU %d", *d.Index)), r.Error), hint)
		}
	}
}

func (c *gpuGathering) readDriver() {
	const version, params = "/proc/driver/nvidia/version", "/proc/driver/nvidia/params"
	if text, err := c.Host.Text(version); err == nil {
		line, _, _ := strings.Cut(text, "\n")
		c.out.Driver.KernelVersion, c.out.Driver.Open = DriverVersion(line)
		if c.out.Driver.KernelVersion == "" {
			c.Unknown("gpus", "driver.kernel_version", fmt.Sprintf("cannot parse %s: %.80q", version, text), "")
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		c.Unknown("gpus", "driver.kernel_version", err.Error(), gather.HintFor(err))
	}
	if text, err := c.Host.Text(params); err == nil {
		for line := range strings.Lines(text) {
			DriverParameter(&c.out.Driver, line)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		c.Unknown("gpus", "driver.parameters", err.Error(), gather.HintFor(err))
	}
}

// driverVersion is the line of /proc/driver/nvidia/version, and the one that the module writes to the kernel log when it is loaded:
//
//	NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (...)
//	NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024
var driverVersion = lazy.New(`NVRM(?: version)?: (?:loading )?NVIDIA UNIX (.{0,60}?Kernel Module.{0,40}?)\s(\d{3}\.\d+(?:\.\d+)?)(?:\s|$)`)

// DriverVersion reads the version of the kernel module in a line, and whether it is the open one; empty and nil for another line.
func DriverVersion(line string) (version string, open *bool) {
	m := driverVersion.FindStringSubmatch(line)
	if m == nil {
		return "", nil
	}
	return m[2], new(strings.Contains(m[1], "Open"))
}

// driverParameter is a line of /proc/driver/nvidia/params: "EnableMSI: 1", or `RegistryDwords: ""`.
var driverParameter = lazy.New(`^([A-Z][A-Za-z0-9]{2,60}): (\d{1,10}|".{0,1000}")\s*$`)

// DriverParameter notes a parameter of the kernel module; its name is empty for another line.
func DriverParameter(d *facts.GPUDriver, line string) (name, value string) {
	const most = 500 // Driver 580 has 50.
	m := driverParameter.FindStringSubmatch(line)
	if m == nil {
		return "", ""
	}
	name, value = m[1], strings.ToValidUTF8(strings.Trim(m[2], `"`), "?")
	if len(d.Parameters) < most {
		facts.Put(&d.Parameters, name, value)
	}
	return name, value
}

// countNVSwitches counts those in the PCI tree, or those that NVLinks connect to by address. It is not known if a
// link does not report its remote end, as in a virtual machine.
func (c *gpuGathering) countNVSwitches() *int {
	n := 0
	for _, d := range c.Facts.PCI.All() {
		if d.Kind == "nvswitch" {
			n++
		}
	}
	if n > 0 {
		return &n
	}
	addresses := make(map[string]bool)
	sure := c.Facts.PCI != nil && c.out.NVML == nvml.OK
	for _, gpu := range c.out.Devices {
		if gpu.Vendor != pci.WordNVIDIA {
			continue
		}
		sure = sure && gpu.NVLinks != nil
		for _, link := range gpu.NVLinks {
			switch {
			case link.RemoteType == "switch" && link.RemoteAddress != "":
				addresses[link.RemoteAddress] = true
			case link.RemoteType == "switch" || link.RemoteType == "":
				sure = false
			}
		}
	}
	if !sure && len(addresses) == 0 {
		return nil
	}
	return new(len(addresses))
}

// hasFabric is true when the GPUs are, or should be, members of an NVSwitch fabric.
func (c *gpuGathering) hasFabric() bool {
	return c.out.NVSwitches != nil && *c.out.NVSwitches > 0 || slices.ContainsFunc(c.out.Devices, func(gpu facts.GPU) bool {
		return gpu.Fabric != nil && gpu.Fabric.State != "not-supported" ||
			slices.ContainsFunc(gpu.NVLinks, func(l facts.NVLink) bool { return l.RemoteType == "switch" })
	})
}

func (c *gpuGathering) findFabricManager(ctx context.Context) *facts.FabricManager {
	fm := &facts.FabricManager{Running: c.fabricManagerRuns(ctx)}
	if fm.Running == nil {
		c.Unknown("gpus", "driver.fabric_manager.running", "the host's processes are not visible here",
			"run outside the container, or share the host's PID namespace (docker run --pid host)")
	}
	for _, dir := range []string{"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"} {
		// The name of the file contains the version on some distributions; on most it is libnvfm.so.1 and does not.
		file, err := c.Host.Real(dir + "/libnvfm.so.1")
		if err != nil {
			continue
		}
		if _, version, _ := strings.Cut(path.Base(file), ".so."); strings.Contains(version, ".") {
			fm.Version = version
			break
		}
	}
	return fm
}

// fabricManagerRuns searches /proc. Nil is not known: all processes are visible only where the kernel's thread 2 is.
func (c *gpuGathering) fabricManagerRuns(ctx context.Context) *bool {
	// The kernel cuts names at 15 bytes (TASK_COMM_LEN, proc_pid_comm(5)).
	const name = "nv-fabricmanage"
	if pid, err := c.Host.Int("/run/nvidia-fabricmanager/nv-fabricmanager.pid"); err == nil && c.nameOf(int(pid)) == name {
		return new(true)
	}
	if c.nameOf(2) != "kthreadd" {
		return nil
	}
	var running bool
	if err := c.Host.Ask(ctx, host.AskProcess+name, &running); err != nil {
		return nil
	}
	return &running
}
