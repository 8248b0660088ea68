// Package system reads the kernel, distribution, processors and hypervisor of a machine.
package system

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
)

// Check is the check of the section "host".
var Check = &gather.Check{Name: "host", Gather: collect}

func collect(ctx context.Context, g *gather.Gathering) error {
	h := g.Host
	var f facts.HostFacts
	var names host.Uname
	if err := h.Ask(ctx, host.AskUname, &names); err != nil {
		g.Unknown("host", "hostname", err.Error(), "")
	} else if names.Node == "" {
		g.Unknown("host", "hostname", "no file tells it", "")
	}
	f.Hostname, f.Kernel, f.Arch = escape.Printable(names.Node, gather.MaxShown), names.Release, goArch(names.Machine)
	if s, err := h.Text("/proc/sys/kernel/osrelease"); err == nil {
		f.Kernel = s
	}
	f.Kernel = escape.Printable(f.Kernel, gather.MaxShown)
	readDistribution(g, &f)
	if b, ok := readFact(g, "/proc/cmdline", "command_line"); ok {
		for word := range strings.FieldsSeq(string(b)) {
			if word == "--" {
				break // What follows is for init, not for the kernel (admin-guide/kernel-parameters).
			}
			f.CommandLine = append(f.CommandLine, escape.Printable(word, env.MaxValue))
		}
	}
	dmi := readDMI(h)
	f.BIOS = strings.Join(strings.Fields(dmi["bios_vendor"]+" "+dmi["bios_version"]+" "+dmi["bios_date"]), " ")
	var cpu cpuInfo
	if b, ok := readFact(g, "/proc/cpuinfo", "cpu"); ok {
		cpu = parseCPUInfo(b)
		f.CPU = &cpu.CPU
	}
	if b, ok := readFact(g, "/proc/meminfo", "memory_bytes"); ok {
		f.MemoryBytes = host.KiB(host.Value(string(b), "MemTotal"))
	}
	f.UptimeSeconds = readUptime(g)
	f.Clock = readClock(ctx, g)
	var ids host.IDs
	if err := h.Ask(ctx, host.AskIDs, &ids); err != nil {
		g.Unknown("host", "root", err.Error(), "")
	} else {
		f.Root = new(ids.UID == 0)
	}
	f.Virtualization = virtualization(h, &f, dmi["sys_vendor"], dmi["product_name"], cpu)
	if f.Virtualization == nil {
		g.Unknown("host", "virtualization", "no file shows whether this kernel runs on a hypervisor", "")
	} else {
		f.Virtualization.PassthroughHost = passthroughHost(h)
	}
	g.Facts.Host = &f
	return nil
}

// readClock reads the state of the kernel's clock. Recordings of older versions lack it.
func readClock(ctx context.Context, g *gather.Gathering) *facts.Clock {
	var c facts.Clock
	switch err := g.Host.Ask(ctx, host.AskClock, &c); {
	case errors.Is(err, host.ErrNotRecorded):
		return nil
	case err != nil:
		g.Unknown("host", "clock", err.Error(), "")
		return nil
	}
	return &c
}

// readUptime reads how long the kernel has been running. Recordings of older versions lack it.
func readUptime(g *gather.Gathering) *float64 {
	const file = "/proc/uptime"
	text, err := g.Host.Text(file)
	switch {
	case errors.Is(err, host.ErrNotRecorded):
		return nil
	case err != nil:
		g.Unknown("host", "uptime_seconds", err.Error(), gather.HintFor(err))
		return nil
	}
	first, _, _ := strings.Cut(text, " ")
	seconds, err := facts.ParseFloat(first)
	if err != nil || seconds < 0 {
		g.Unknown("host", "uptime_seconds", "read "+file+": not a number of seconds", "")
		return nil
	}
	return &seconds
}

// readFact reads a file that exists on every Linux; it notes why if it cannot.
func readFact(g *gather.Gathering, name, fact string) ([]byte, bool) {
	b, err := g.Host.Read(name)
	if err != nil {
		g.Unknown("host", fact, err.Error(), gather.HintFor(err))
		return nil, false
	}
	return b, true
}

// goArch returns Go's name of a machine that uname names.
func goArch(uname string) string {
	switch uname {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return escape.Printable(uname, gather.MaxShown)
}

// readDistribution fills in what os-release(5) says. The file in /etc comes first; the one in /usr/lib is the fallback.
func readDistribution(g *gather.Gathering, f *facts.HostFacts) {
	b, err := g.Host.Read("/etc/os-release")
	if errors.Is(err, fs.ErrNotExist) {
		b, err = g.Host.Read("/usr/lib/os-release")
	}
	if err != nil {
		g.Unknown("host", "distribution", err.Error(), gather.HintFor(err))
		return
	}
	f.Distribution = prettyName(string(b))
}

// prettyName is the assignment of PRETTY_NAME in os-release(5), as a shell reads it.
func prettyName(text string) (name string) {
	for line := range strings.Lines(text) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME=")
		if !ok {
			continue
		}
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		name = escape.Printable(value, gather.MaxShown)
	}
	return name
}

// readDMI returns what the firmware says about the machine, if it has DMI.
func readDMI(h *host.Host) map[string]string {
	dmi := make(map[string]string)
	for _, name := range []string{
		"sys_vendor", "product_name", "bios_vendor", "bios_version", "bios_date",
	} {
		if s, err := h.Text("/sys/class/dmi/id/" + name); err == nil {
			dmi[name] = escape.Printable(s, gather.MaxShown)
		}
	}
	return dmi
}

// cpuInfo is what /proc/cpuinfo says.
type cpuInfo struct {
	facts.CPU
	// flags is true when it lists the flags of an x86 processor, hypervisor
	// when one of them says that a hypervisor is below.
	flags, hypervisor bool
}

// parseCPUInfo parses /proc/cpuinfo. Names come from the first processor that has them.
func parseCPUInfo(b []byte) cpuInfo {
	var c cpuInfo
	sockets := make(map[string]bool)
	for line := range bytes.Lines(b) {
		rawKey, rawValue, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		value := string(bytes.TrimSpace(rawValue))
		switch string(bytes.TrimSpace(rawKey)) {
		case "vendor_id":
			c.Vendor = cmp.Or(c.Vendor, escape.Printable(value, gather.MaxShown))
		case "model name":
			c.Model = cmp.Or(c.Model, escape.Printable(value, gather.MaxShown))
		case "physical id":
			sockets[value] = true
		case "flags":
			if !c.flags {
				c.flags = true
				c.hypervisor = slices.Contains(strings.Fields(value), "hypervisor")
			}
		}
	}
	c.Sockets = len(sockets)
	return c
}

// EmulatedKernel is what gVisor shows as /proc/version (pkg/sentry: the
// version of Linux that it emulates, with a constant date).
const EmulatedKernel = "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016"

// IsGVisor reports whether /proc/version is gVisor's.
func IsGVisor(h *host.Host) bool {
	s, err := h.Text("/proc/version")
	return err == nil && (s == EmulatedKernel || strings.Contains(strings.ToLower(s), "gvisor"))
}

// virtualization decides what this kernel runs on, from the most specific
// evidence to the least; nil means that nothing tells.
func virtualization(h *host.Host, f *facts.HostFacts, vendor, product string, cpu cpuInfo) *facts.Virtualization {
	guest := func(kind, source string) *facts.Virtualization {
		return &facts.Virtualization{Kind: kind, Guest: true, Source: source}
	}
	switch {
	case IsGVisor(h):
		return guest("gvisor", "/proc/version")
	case strings.Contains(strings.ToLower(f.Kernel), "microsoft"): // 5.15.90.1-microsoft-standard-WSL2.
		return guest("wsl", "/proc/sys/kernel/osrelease")
	}
	if s, err := h.Text("/sys/hypervisor/type"); err == nil && s == "xen" {
		// Xen's first domain drives the hardware: it is no guest.
		features, err := h.Text("/proc/xen/capabilities")
		control := err == nil && strings.Contains(features, "control_d")
		return &facts.Virtualization{Kind: "xen", Guest: !control, Source: "/sys/hypervisor/type"}
	}
	if kind := kindByDMI(vendor, product); kind != "" {
		return guest(kind, "/sys/class/dmi/id")
	}
	switch {
	case cpu.hypervisor && vendor == "" && isFirecracker(f.Kernel, strings.Join(f.CommandLine, " ")):
		return guest("firecracker", "/proc/sys/kernel/osrelease and /proc/cmdline, no DMI")
	case cpu.hypervisor:
		return guest(kindByClock(h))
	case cpu.flags:
		return &facts.Virtualization{Kind: "none", Source: "/proc/cpuinfo: no hypervisor flag"}
	case isBareMetal(vendor, product):
		return &facts.Virtualization{Kind: "none", Source: "/sys/class/dmi/id"}
	}
	if kind, source := kindByClock(h); kind != "other" {
		return guest(kind, source)
	}
	return nil
}

// amazon is sys_vendor of EC2's machines, virtual and bare.
const amazon = "Amazon EC2"

// kindByDMI returns the hypervisor whose virtual firmware bears these names. For Google, whose bare machines bear
// the name of its virtual ones, the CPU decides.
func kindByDMI(vendor, product string) string {
	if vendor == amazon && product != "" && !strings.Contains(product, "metal") {
		return "kvm" // Nitro; the product is the instance type.
	}
	for _, known := range []struct{ vendor, product, kind string }{
		{"QEMU", "", "kvm"},
		{"Red Hat", "KVM", "kvm"},
		{"Red Hat", "OpenStack", "kvm"},
		{"OpenStack", "", "kvm"},
		{"", "KVM", "kvm"},
		{"DigitalOcean", "Droplet", "kvm"},
		{"VMware", "", "vmware"},
		{"Microsoft Corporation", "Virtual Machine", "hyperv"},
		{"Xen", "", "xen"},
	} {
		if strings.HasPrefix(vendor, known.vendor) && strings.HasPrefix(product, known.product) {
			return known.kind
		}
	}
	return ""
}

// isFirecracker reports whether the kernel's name or command line are those
// of a Firecracker microVM. It has no DMI and no hypervisor name to read.
func isFirecracker(kernel, commandLine string) bool {
	return strings.Contains(kernel, "-fc-") || strings.HasSuffix(kernel, "-fc") ||
		strings.Contains(commandLine, "firecracker") ||
		// Its own defaults for a kernel without PCI.
		strings.Contains(commandLine, "pci=off") && strings.Contains(commandLine, "virtio_mmio.device=")
}

// kindByClock tells the hypervisor by the paravirtual clock that the kernel found, and says where that stands.
func kindByClock(h *host.Host) (kind, source string) {
	const file = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
	if s, err := h.Text(file); err == nil {
		for clock := range strings.FieldsSeq(s) {
			switch {
			case clock == "kvm-clock":
				return "kvm", file
			case strings.HasPrefix(clock, "hyperv_"):
				return "hyperv", file
			case clock == "xen":
				return "xen", file
			}
		}
	}
	return "other", "/proc/cpuinfo: hypervisor flag"
}

// makers are vendors of real machines with arm64 processors, where no CPU flag reports a hypervisor.
var makers = []string{
	"NVIDIA", "Supermicro", "Super Micro", "Dell", "HPE", "Hewlett", "Lenovo", "GIGABYTE", "Giga Computing", "ASUS", "ASRock",
	"Quanta", "Wiwynn", "Ingrasys", "Foxconn", "Inventec", "Inspur", "Cisco", "Fujitsu", "Huawei", "Ampere", "Pegatron", "MiTAC",
}

// isBareMetal reports whether DMI names a maker of real machines.
func isBareMetal(vendor, product string) bool {
	if vendor == amazon {
		return strings.Contains(product, "metal")
	}
	return slices.ContainsFunc(makers, func(m string) bool {
		return strings.HasPrefix(strings.ToLower(vendor), strings.ToLower(m))
	})
}

// passthroughHost reports whether this kernel gives devices to guests; nil means that the drivers cannot be seen.
func passthroughHost(h *host.Host) *bool {
	names, err := h.Dir("/sys/bus/pci/drivers")
	if err != nil {
		return nil
	}
	gives := false
	for _, driver := range names {
		if !givesDevices(driver) {
			continue
		}
		bound, err := h.Dir("/sys/bus/pci/drivers/" + driver)
		if err != nil {
			return nil
		}
		// Beside the devices by address stand files such as new_id.
		gives = gives || slices.ContainsFunc(bound, func(s string) bool { return facts.Address(s) != "" })
	}
	if devices, err := h.Dir("/sys/bus/mdev/devices"); err == nil && len(devices) > 0 {
		gives = true // Mediated devices: shares of a device that a guest gets.
	}
	return &gives
}

// givesDevices reports whether a driver hands devices, or shares of them, to guests: vfio-pci and its variants
// (mlx5_vfio_pci), NVIDIA's and AMD's vGPU managers.
func givesDevices(driver string) bool {
	return driver == "vfio-pci" || strings.HasSuffix(driver, "_vfio_pci") ||
		strings.HasPrefix(driver, "nvidia") && strings.Contains(driver, "vfio") || driver == "gim"
}
