package system

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const (
	bareCPU  = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 207\nmodel name\t: Intel(R) Xeon(R)\nphysical id\t: 0\nflags\t\t: fpu vme\n\nprocessor\t: 1\nvendor_id\t: GenuineIntel\nphysical id\t: 1\nflags\t\t: fpu vme\n"
	guestCPU = "processor\t: 0\nflags\t\t: fpu vme hypervisor lahf_lm\n"
	armCPU   = "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n"
	clocks   = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
	vendorID = "/sys/class/dmi/id/sys_vendor"
	product  = "/sys/class/dmi/id/product_name"
)

func TestHost(t *testing.T) {
	var m host.Memory
	m.Answer(host.AskUname, host.Uname{Node: "gpu7", Release: "6.8.0-31-generic", Machine: "x86_64"})
	m.Answer(host.AskIDs, host.IDs{UID: 0})
	m.Answer(host.AskClock, facts.Clock{Synchronized: true})
	for name, data := range map[string]string{
		"/proc/sys/kernel/osrelease":       "6.8.0-31-generic\n",
		"/etc/os-release":                  "PRETTY_NAME=\"Ubuntu 24.04 LTS\"\nID=ubuntu\nVERSION_ID='24.04'\n# x\nBROKEN\n",
		"/proc/cmdline":                    "BOOT_IMAGE=/vmlinuz root=UUID=1 ro iommu=pt\n",
		"/proc/cpuinfo":                    bareCPU,
		"/proc/meminfo":                    "MemTotal:       1056000000 kB\nMemFree: 1 kB\n",
		vendorID:                           "Supermicro\n",
		product:                            "SYS-821GE-TNHR\n",
		"/sys/class/dmi/id/bios_version":   "2.1\n",
		"/proc/uptime":                     "1209600.25 4838400.5\n",
		"/sys/bus/pci/drivers/nvme/bind":   "",
		"/sys/bus/pci/drivers/nvme/new_id": "",
	} {
		m.AddFile(name, []byte(data))
	}
	got := checktest.One(t, Check, &m)
	expect.NoDiff(t, &facts.HostFacts{
		Hostname: "gpu7", Kernel: "6.8.0-31-generic", Arch: "amd64", Distribution: "Ubuntu 24.04 LTS",
		CommandLine:    []string{"BOOT_IMAGE=/vmlinuz", "root=UUID=1", "ro", "iommu=pt"},
		Virtualization: &facts.Virtualization{Kind: "none", Source: "/proc/cpuinfo: no hypervisor flag", PassthroughHost: new(false)},
		BIOS:           "2.1",
		CPU:            &facts.CPU{Vendor: "GenuineIntel", Model: "Intel(R) Xeon(R)", Sockets: 2},
		MemoryBytes:    1056000000 << 10, UptimeSeconds: new(1209600.25), Root: new(true), Clock: &facts.Clock{Synchronized: true},
	}, got.Host, "host")
	expect.Len(t, 0, got.Unknown, "unknown")
}

func TestVirtualization(t *testing.T) {
	const dmi, release, bare = "/sys/class/dmi/id", "/proc/sys/kernel/osrelease", "none by /proc/cpuinfo: no hypervisor flag"
	type files map[string]string
	for _, tt := range []struct {
		name  string
		files files
		want  string // Kind, guest or host of guests, and source.
	}{
		{"nothing can be read", nil, ""},
		{"bare metal", files{"/proc/cpuinfo": bareCPU}, bare},
		{"KVM by DMI", files{"/proc/cpuinfo": guestCPU, vendorID: "QEMU\n", product: "Standard PC (Q35 + ICH9, 2009)\n"}, "kvm guest by " + dmi},
		{"KVM that hides its flag", files{"/proc/cpuinfo": bareCPU, vendorID: "QEMU"}, "kvm guest by " + dmi}, // As for consumer GPUs.
		{"KVM by its clock", files{"/proc/cpuinfo": guestCPU, vendorID: "Some Cloud", clocks: "kvm-clock tsc acpi_pm\n"}, "kvm guest by " + clocks},
		{"Azure", files{"/proc/cpuinfo": guestCPU, vendorID: "Microsoft Corporation", product: "Virtual Machine"}, "hyperv guest by " + dmi},
		{"VMware", files{"/proc/cpuinfo": guestCPU, vendorID: "VMware, Inc.", product: "VMware7,1"}, "vmware guest by " + dmi},
		{"a hypervisor without a name", files{"/proc/cpuinfo": guestCPU, vendorID: "Some Cloud"}, "other guest by /proc/cpuinfo: hypervisor flag"},
		{"Amazon's bare machine", files{"/proc/cpuinfo": bareCPU, vendorID: amazon, product: "p4d.metal"}, bare},
		{
			"Firecracker",
			files{"/proc/cpuinfo": guestCPU, "/proc/cmdline": "console=ttyS0 pci=off virtio_mmio.device=4K@0xd0000000:5", clocks: "kvm-clock"},
			"firecracker guest by /proc/sys/kernel/osrelease and /proc/cmdline, no DMI",
		},
		{"gVisor", files{"/proc/version": EmulatedKernel + "\n", "/proc/cpuinfo": bareCPU}, "gvisor guest by /proc/version"},
		{"WSL", files{release: "5.15.90.1-microsoft-standard-WSL2\n", "/proc/cpuinfo": guestCPU}, "wsl guest by " + release},
		{"Xen guest", files{"/sys/hypervisor/type": "xen\n", "/proc/cpuinfo": guestCPU}, "xen guest by /sys/hypervisor/type"},
		{"Xen's first domain", files{"/sys/hypervisor/type": "xen\n", "/proc/xen/capabilities": "control_d\n"}, "xen by /sys/hypervisor/type"},
		{"arm64 of a known maker", files{"/proc/cpuinfo": armCPU, vendorID: "NVIDIA", product: "GB200 NVL"}, "none by " + dmi},
		{"arm64 of an unknown maker", files{"/proc/cpuinfo": armCPU, vendorID: "Nobody"}, ""},
		{"arm64 at Amazon, virtual", files{"/proc/cpuinfo": armCPU, vendorID: amazon, product: "g5g.16xlarge"}, "kvm guest by " + dmi},
		{"arm64 at Amazon, bare", files{"/proc/cpuinfo": armCPU, vendorID: amazon, product: "g5g.metal"}, "none by " + dmi},
		{"devices given to guests", files{"/proc/cpuinfo": bareCPU, "/sys/bus/pci/drivers/vfio-pci/0000:17:00.0/vendor": "0x10de"}, "guests: true, " + bare},
		{"vfio-pci loaded, nothing bound", files{"/proc/cpuinfo": bareCPU, "/sys/bus/pci/drivers/vfio-pci/new_id": ""}, "guests: false, " + bare},
		{"shares given to guests", files{"/proc/cpuinfo": bareCPU, "/sys/bus/pci/drivers/nvidia/bind": "", "/sys/bus/mdev/devices/4b20d080-1b54-4048-85b3-a6a62d165c01/x": ""}, "guests: true, " + bare},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m host.Memory
			for name, data := range tt.files {
				m.AddFile(name, []byte(data))
			}
			got := ""
			if v := checktest.One(t, Check, &m).Host.Virtualization; v != nil {
				got = v.Kind + map[bool]string{true: " guest"}[v.Guest] + " by " + v.Source
				if v.PassthroughHost != nil {
					got = fmt.Sprintf("guests: %t, %s", *v.PassthroughHost, got)
				}
			}
			expect.Equal(t, tt.want, got, "virtualization")
		})
	}
}

func TestHostUnreadable(t *testing.T) {
	var m host.Memory
	m.AnswerError(host.AskUname, errors.New("no uname"))
	m.AnswerError(host.AskIDs, errors.New("no ids"))
	got := checktest.One(t, Check, &m)
	expect.NoDiff(t, &facts.HostFacts{}, got.Host, "host")
	f := expect.Map(got.Unknown, func(u facts.Unknown) string { return u.Fact })
	want := []string{"hostname", "distribution", "command_line", "cpu", "memory_bytes", "uptime_seconds", "root", "virtualization"}
	expect.NoDiff(t, want, f, "unknown facts")
}

// TestClock checks that a clock of which nothing is known, or nothing possible, has no state.
func TestClock(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(m *host.Memory)
		want   []string
	}{
		"an older recording": {func(*host.Memory) {}, nil},
		"not allowed":        {func(m *host.Memory) { m.AnswerError(host.AskClock, errors.New("adjtimex: operation not permitted")) }, []string{"adjtimex: operation not permitted"}},
	} {
		var m host.Memory
		tt.answer(&m)
		got := checktest.One(t, Check, &m)
		expect.That(t, got.Host.Clock == nil, "%s: %+v", name, got.Host.Clock)
		ofClock := slices.DeleteFunc(got.Unknown, func(u facts.Unknown) bool { return u.Fact != "clock" })
		expect.NoDiff(t, tt.want, expect.Map(ofClock, func(u facts.Unknown) string { return u.Reason }), "%s", name)
	}
}

func FuzzHostFiles(f *testing.F) {
	f.Add([]byte(bareCPU))
	f.Add([]byte("PRETTY_NAME=\"x\nID='\nMemTotal: 99999999999999999999 kB\nMemTotal: 4 kB\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := parseCPUInfo(b)
		expect.That(t, len(c.Model) <= gather.MaxShown && (!c.hypervisor || c.flags), "bad CPU %+v", c)
		name := prettyName(string(b))
		expect.That(t, len(name) <= gather.MaxShown, "bad name %q", name)
		n := host.KiB(host.Value(string(b), "MemTotal"))
		expect.That(t, n >= 0, "MemTotal %d", n)
	})
}
