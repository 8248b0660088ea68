// Package pci reads the PCI tree: what sysfs shows about each function, and what its configuration space holds.
package pci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Check is the check of the section "pci".
var Check = &gather.Check{Name: "pci", Gather: collect}

// Devices is the folder of all functions.
const Devices = "/sys/bus/pci/devices"

// The kinds of PCI devices that other sections ask for.
const (
	KindGPU    = "gpu"
	KindNIC    = "nic"
	KindNVMe   = "nvme"
	KindBridge = "bridge"
)

func collect(ctx context.Context, g *gather.Gathering) error {
	names, err := g.Host.Dir(Devices)
	if err != nil {
		return fmt.Errorf("list PCI devices: %w", err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !IsAddress(name) })
	slices.Sort(names)
	// A read of 4096 bytes of config space takes about a millisecond, as
	// each word of it is a transaction of its own; some at a time hide that.
	const readers = 4
	devices := make([]facts.PCIDevice, len(names))
	r := &reader{g: g, host: g.Host}
	var wg sync.WaitGroup
	for first := range min(readers, len(names)) {
		wg.Go(func() {
			for i := first; i < len(names) && ctx.Err() == nil; i += readers {
				devices[i] = r.device(names[i])
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("read PCI devices: %w", err)
	}
	r.lendLinks(devices)
	r.gaps.Report(g)
	g.Facts.PCI = &facts.PCIFacts{Devices: devices}
	return nil
}

var addressPattern = lazy.New(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// IsAddress reports whether s is domain:bus:device.function. Domains of
// more than four digits exist on Hyper-V and behind Intel VMD.
func IsAddress(s string) bool {
	// The regular expression is only asked about what can be an address: a path has many other components.
	return len(s) >= len("0000:00:00.0") && s[len(s)-2] == '.' && addressPattern.MatchString(s)
}

// reader reads devices and collects what could not be read.
type reader struct {
	g    *gather.Gathering
	host *host.Host
	gaps gather.Gaps
}

func (r *reader) gap(address, fact, reason, hint string) {
	r.gaps.Add(address, "pci", fact, reason, hint)
}

// noNUMANode is the value of numa_node if the firmware names no node (NUMA_NO_NODE of Linux include/linux/numa.h).
const noNUMANode = -1

func (r *reader) device(address string) facts.PCIDevice {
	dir := path.Join(Devices, address)
	d := facts.PCIDevice{
		Address: address,
		Class:   r.id(dir+"/class", 6),
		Vendor:  r.id(dir+"/vendor", 4),
		Device:  r.id(dir+"/device", 4),
	}
	if d.Class == "" || d.Vendor == "" || d.Device == "" {
		r.gap(address, "devices.class", "class, vendor or device cannot be read", "")
	}
	r.place(&d, dir)
	d.Kind = KindOf(&d)
	if target, err := r.host.Link(dir + "/driver"); err == nil {
		d.Driver = path.Base(target)
	}
	if n, err := r.host.Int(dir + "/numa_node"); err == nil && n >= 0 {
		d.NUMANode = new(int(n))
	} else if err == nil {
		d.NoNUMANode = n == noNUMANode
	}
	if target, err := r.host.Link(dir + "/iommu_group"); err == nil {
		if n, err := strconv.Atoi(path.Base(target)); err == nil && n >= 0 {
			d.IOMMUGroup = &n
		}
	}
	switch d.Kind {
	case KindGPU, KindNIC, KindNVMe:
		_, err := r.host.Link(dir + "/physfn")
		d.Virtual = err == nil
		r.look(&d, dir)
	case "nvswitch", KindBridge:
		r.look(&d, dir)
	}
	return d
}

// lendLinks gives each virtual function the link of its physical one: its own registers are zero (SR-IOV 1.1, 3.5).
func (r *reader) lendLinks(devices []facts.PCIDevice) {
	links := make(map[string]*facts.PCIeLink, len(devices))
	for i := range devices {
		links[devices[i].Address] = devices[i].Link
	}
	for i := range devices {
		if d := &devices[i]; d.Virtual && d.Link == nil {
			physical, _ := r.host.Link(path.Join(Devices, d.Address, "physfn")) // It could be read before.
			d.Link = links[path.Base(physical)]
		}
	}
}

// id reads a hexadecimal number and writes it with the given count of digits; empty when it cannot be read.
func (r *reader) id(name string, digits int) string {
	n, err := r.host.Int(name)
	if err != nil || n < 0 || n >= 1<<(4*digits) {
		return ""
	}
	return fmt.Sprintf("0x%0*x", digits, n)
}

func (r *reader) place(d *facts.PCIDevice, dir string) {
	// In sysfs the entry is one link to a path without others: the expensive walk is only the fallback.
	target, err := r.host.Link(dir)
	resolved := path.Join(Devices, target)
	if err != nil || !strings.HasPrefix(resolved, "/sys/devices/") {
		if resolved, err = r.host.Real(dir); err != nil {
			return
		}
	}
	d.RootBus, d.Ancestors = parsePath(resolved)
}

// parsePath returns the root bus and the bridges above a device, from its real path:
// "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0". Others may stand before the root bus and, behind Intel VMD,
// a second one after it.
func parsePath(resolved string) (rootBus string, ancestors []string) {
	for part := range strings.SplitSeq(path.Dir(resolved), "/") {
		switch {
		case rootBus == "" && strings.HasPrefix(part, "pci") && IsAddress(part[3:]+":00.0"):
			rootBus = part
		case rootBus != "" && IsAddress(part):
			ancestors = append(ancestors, part)
		}
	}
	return rootBus, ancestors
}

// Vendors, from the PCI ID database.
const (
	VendorNVIDIA = "0x10de"
	VendorAMD    = "0x1002"
	vendorIntel  = "0x8086"
	vendorAmazon = "0x1d0f"
)

// KindOf returns the kind of a device. Class codes are those of include/linux/pci_ids.h.
func KindOf(d *facts.PCIDevice) string {
	if len(d.Class) != len("0x030200") {
		return ""
	}
	base := d.Class[:6]
	if d.Vendor == "" && (strings.HasPrefix(base, "0x03") || base == "0x1200" || base == "0x0680") {
		return "" // The vendor would decide.
	}
	switch {
	case base == "0x0300" || base == "0x0302" || base == "0x0380":
		if d.Vendor == VendorNVIDIA || (d.Vendor == VendorAMD || d.Vendor == vendorIntel) && !integratedGraphics(d) {
			return KindGPU
		}
		return "display"
	case base == "0x1200" && d.Vendor == VendorAMD: // Instinct since MI300.
		return KindGPU
	case base == "0x0680" && d.Vendor == VendorNVIDIA:
		return "nvswitch"
	// Ethernet, InfiniBand, fabric (Omni-Path), and InfiniBand as a serial bus (QLogic's older ones).
	case base == "0x0200" || base == "0x0207" || base == "0x0208" || base == "0x0c06":
		return KindNIC
	case d.Vendor == vendorAmazon && strings.HasPrefix(d.Device, "0xefa"):
		return KindNIC
	case base == "0x0604" || base == "0x0609":
		return KindBridge
	case base == "0x0600":
		return "host-bridge"
	case base == "0x0108":
		return KindNVMe
	case base == "0x0403":
		return "audio"
	case strings.HasPrefix(base, "0x03"):
		return "display"
	}
	return "other"
}

// integratedGraphics reports whether a graphics device of AMD or Intel is part of the processor.
func integratedGraphics(d *facts.PCIDevice) bool {
	if d.Vendor == vendorIntel {
		// Always function 0 of device 2 on the first bus (i915, GPU at 00:02.0); discrete ones are behind bridges.
		return strings.HasSuffix(d.Address, ":00:02.0") && len(d.Ancestors) == 0
	}
	// AMD's integrated ones have the ids 0x1304 to 0x1902 (Kaveri to Krackan) and 0x96.. to 0x99.. (RS780 to
	// Mullins); no discrete one of the last ten years does (PCI ID database, vendor 1002).
	id, err := strconv.ParseUint(d.Device, 0, 16)
	return err == nil && (id>>12 == 1 || id >= 0x9600 && id <= 0x99ff)
}

// look reads what needs more than the device's name: config space, link and BARs.
func (r *reader) look(d *facts.PCIDevice, dir string) {
	state, err := r.config(d, dir)
	if errors.Is(err, host.ErrSlow) {
		return // A device that does not answer is not asked again.
	}
	if d.Link == nil && !d.OffBus && (state.express || !state.whole) {
		d.Link = r.sysfsLink(dir)
	}
	if b, err := r.host.Read(dir + "/resource"); err == nil {
		d.BARs = parseResource(b)
	} else {
		r.gap(d.Address, "devices.bars", fmt.Sprintf("the file resource cannot be read (%s)", gather.Cause(err)), "")
	}
}

func (r *reader) config(d *facts.PCIDevice, dir string) (configState, error) {
	b, err := r.host.ReadPart(dir+"/config", configExtended)
	if err != nil {
		r.gap(d.Address, "devices.config", fmt.Sprintf("config space cannot be read (%s)", gather.Cause(err)), "")
		return configState{}, err
	}
	state := readConfig(d, b)
	switch {
	case d.OffBus:
		r.gap(d.Address, "devices.config", "config space reads as all ones: the device has fallen off the bus or has no power",
			"look for Xid 79 in the kernel log; a power cycle may bring the device back")
	case len(b) == configHeader:
		// It is so for all: their names would add nothing.
		r.g.Unknown("pci", "devices.config", "config space beyond 64 bytes needs root", "run as root (in a container with --cap-add SYS_ADMIN)")
	case state.empty:
		r.gap(d.Address, "devices.config", "config space is all zeros", "")
	case len(b) != configLegacy && len(b) != configExtended || !state.whole:
		r.gap(d.Address, "devices.config", "config space is truncated, or its capability list is invalid", "")
	case state.hidden:
		r.gap(d.Address, "devices.extended", "the hypervisor masks some extended capabilities (ACS, ATS, resizable BAR)",
			"run gpudoctor on the host of this virtual machine")
	case state.express && !d.Extended:
		r.gap(d.Address, "devices.extended", "extended config space (ACS, ATS, resizable BAR) is not shown",
			"in a virtual machine, run gpudoctor on the host; otherwise check that the kernel uses MMCONFIG")
	}
	return state, nil
}

// sysfsLink reads the link from the files that the kernel makes for everyone.
func (r *reader) sysfsLink(dir string) *facts.PCIeLink {
	text := func(name string) string {
		s, _ := r.host.Text(dir + "/" + name) // What cannot be read is not known.
		return s
	}
	link := facts.PCIeLink{
		SpeedGTs:    LinkSpeed(text("current_link_speed")),
		Width:       LinkWidth(text("current_link_width")),
		MaxSpeedGTs: LinkSpeed(text("max_link_speed")),
		MaxWidth:    LinkWidth(text("max_link_width")),
		Source:      "sysfs",
	}
	if link == (facts.PCIeLink{Source: link.Source}) {
		return nil
	}
	return &link
}

// The values of GPU.Vendor.
const (
	WordNVIDIA = "nvidia"
	WordAMD    = "amd"
)

var gpuVendors = map[string]string{VendorNVIDIA: WordNVIDIA, VendorAMD: WordAMD}

// IsGPU reports whether a PCI function is a GPU by its class and vendor.
func IsGPU(d *facts.PCIDevice) bool { return cmp.Or(d.Kind, KindOf(d)) == KindGPU }

// VendorName is the word for a GPU vendor's PCI id: "nvidia", "amd" or empty.
func VendorName(id string) string { return gpuVendors[id] }

// DeviceAt is the entry of an address in the PCI tree.
func DeviceAt(f *facts.Facts, address string) (facts.PCIDevice, bool) {
	if d := facts.Find(f.PCI.All(), func(d *facts.PCIDevice) bool { return d.Address == address }); d != nil {
		return *d, true
	}
	return facts.PCIDevice{}, false
}
