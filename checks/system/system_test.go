package system

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/internal/checktest"
	"github.com/gpudoctor/gpudoctor/checks/internal/machine"
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
	var m machine.Memory
	m.Answer(machine.AskUname, machine.Uname{Node: "gpu7", Release: "6.8.0-31-generic", Machine: "x86_64"})
	m.Answer(machine.AskIDs, machine.IDs{UID: 0})
	for name, data := range map[string]string{
		"/proc/sys/kernel/osrelease":       "6.8.0-31-generic\n",
		"/etc/os-release":                  "PRETTY_NAME=\"Ubuntu 24.04 LTS\"\nID=ubuntu\nVERSION_ID='24.04'\n# x\nBROKEN\n",
		"/proc/cmdline":                    "BOOT_IMAGE=/vmlinuz root=UUID=1 ro iommu=pt\n",
		"/proc/cpuinfo":                    bareCPU,
		"/proc/meminfo":                    "MemTotal:       1056000000 kB\nMemFree: 1 kB\n",
		vendorID:                           "Supermicro\n",
		product:                            "SYS-821GE-TNHR\n",
		"/sys/class/dmi/id/board_vendor":   "Supermicro\n",
		"/sys/class/dmi/id/board_name":     "X13DEG-OAD\n",
		"/sys/class/dmi/id/bios_version":   "2.1\n",
		"/proc/uptime":                     "1209600.25 4838400.5\n",
		"/sys/bus/pci/drivers/nvme/bind":   "",
		"/sys/bus/pci/drivers/nvme/new_id": "",
	} {
		m.AddFile(name, []byte(data))
	}
	got := checktest.One(t, Check, &m)
	want := &facts.HostFacts{
		Hostname: "gpu7", Kernel: "6.8.0-31-generic", Arch: "amd64",
		Distribution:   "Ubuntu 24.04 LTS",
		CommandLine:    []string{"BOOT_IMAGE=/vmlinuz", "root=UUID=1", "ro", "iommu=pt"},
		Virtualization: &facts.Virtualization{Kind: "none", Source: "/proc/cpuinfo: no hypervisor flag", PassthroughHost: new(false)},
		Vendor:         "Supermicro", Product: "SYS-821GE-TNHR", Board: "Supermicro X13DEG-OAD", BIOS: "2.1",
		CPU:         &facts.CPU{Vendor: "GenuineIntel", Model: "Intel(R) Xeon(R)", Family: 6, ModelNumber: 207, Sockets: 2, Threads: 2},
		MemoryBytes: 1056000000 << 10, UptimeSeconds: new(1209600.25),
		Root: new(true),
	}
	if diff := cmp.Diff(want, got.Host); diff != "" {
		t.Errorf("host (-want +got):\n%s", diff)
	}
	if len(got.Unknown) > 0 {
		t.Errorf("unknown: got %v, want nothing", got.Unknown)
	}
}

func TestVirtualization(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  *facts.Virtualization
	}{
		{"nothing can be read", nil, nil},
		{
			"bare metal",
			map[string]string{"/proc/cpuinfo": bareCPU},
			&facts.Virtualization{Kind: "none", Source: "/proc/cpuinfo: no hypervisor flag"},
		},
		{
			"KVM by DMI",
			map[string]string{"/proc/cpuinfo": guestCPU, vendorID: "QEMU\n", product: "Standard PC (Q35 + ICH9, 2009)\n"},
			&facts.Virtualization{Kind: "kvm", Guest: true, Source: "/sys/class/dmi/id"},
		},
		{
			"KVM that hides its flag, as for consumer GPUs",
			map[string]string{"/proc/cpuinfo": bareCPU, vendorID: "QEMU"},
			&facts.Virtualization{Kind: "kvm", Guest: true, Source: "/sys/class/dmi/id"},
		},
		{
			"KVM by its clock",
			map[string]string{"/proc/cpuinfo": guestCPU, vendorID: "Some Cloud", clocks: "kvm-clock tsc acpi_pm\n"},
			&facts.Virtualization{Kind: "kvm", Guest: true, Source: clocks},
		},
		{
			"Azure",
			map[string]string{"/proc/cpuinfo": guestCPU, vendorID: "Microsoft Corporation", product: "Virtual Machine"},
			&facts.Virtualization{Kind: "hyperv", Guest: true, Source: "/sys/class/dmi/id"},
		},
		{
			"VMware",
			map[string]string{"/proc/cpuinfo": guestCPU, vendorID: "VMware, Inc.", product: "VMware7,1"},
			&facts.Virtualization{Kind: "vmware", Guest: true, Source: "/sys/class/dmi/id"},
		},
		{
			"a hypervisor without a name",
			map[string]string{"/proc/cpuinfo": guestCPU, vendorID: "Some Cloud"},
			&facts.Virtualization{Kind: "other", Guest: true, Source: "/proc/cpuinfo: hypervisor flag"},
		},
		{
			"Amazon's bare machine",
			map[string]string{"/proc/cpuinfo": bareCPU, vendorID: amazon, product: "p4d.metal"},
			&facts.Virtualization{Kind: "none", Source: "/proc/cpuinfo: no hypervisor flag"},
		},
		{
			"Firecracker",
			map[string]string{"/proc/cpuinfo": guestCPU, "/proc/cmdline": "console=ttyS0 pci=off virtio_mmio.device=4K@0xd0000000:5", clocks: "kvm-clock"},
			&facts.Virtualization{Kind: "firecracker", Guest: true, Source: "/proc/sys/kernel/osrelease and /proc/cmdline, no DMI"},
		},
		{
			"gVisor",
			map[string]string{"/proc/version": EmulatedKernel + "\n", "/proc/cpuinfo": bareCPU},
			&facts.Virtualization{Kind: "gvisor", Guest: true, Source: "/proc/version"},
		},
		{
			"WSL",
			map[string]string{"/proc/sys/kernel/osrelease": "5.15.90.1-microsoft-standard-WSL2\n", "/proc/cpuinfo": guestCPU},
			&facts.Virtualization{Kind: "wsl", Guest: true, Source: "/proc/sys/kernel/osrelease"},
		},
		{
			"Xen guest",
			map[string]string{"/sys/hypervisor/type": "xen\n", "/proc/cpuinfo": guestCPU},
			&facts.Virtualization{Kind: "xen", Guest: true, Source: "/sys/hypervisor/type"},
		},
		{
			"Xen's first domain",
			map[string]string{"/sys/hypervisor/type": "xen\n", "/proc/xen/capabilities": "control_d\n"},
			&facts.Virtualization{Kind: "xen", Source: "/sys/hypervisor/type"},
		},
		{
			"arm64 of a known maker",
			map[string]string{"/proc/cpuinfo": armCPU, vendorID: "NVIDIA", product: "GB200 NVL"},
			&facts.Virtualization{Kind: "none", Source: "/sys/class/dmi/id"},
		},
		{"arm64 of an unknown maker", map[string]string{"/proc/cpuinfo": armCPU, vendorID: "Nobody"}, nil},
		{
			"arm64 at Amazon, virtual",
			map[string]string{"/proc/cpuinfo": armCPU, vendorID: amazon, product: "g5g.16xlarge"},
			&facts.Virtualization{Kind: "kvm", Guest: true, Source: "/sys/class/dmi/id"},
		},
		{
			"arm64 at Amazon, bare",
			map[string]string{"/proc/cpuinfo": armCPU, vendorID: amazon, product: "g5g.metal"},
			&facts.Virtualization{Kind: "none", Source: "/sys/class/dmi/id"},
		},
		{
			"devices given to guests",
			map[string]string{"/proc/cpuinfo": bareCPU, "/sys/bus/pci/drivers/vfio-pci/0000:17:00.0/vendor": "0x10de"},
			&facts.Virtualization{Kind: "none", PassthroughHost: new(true), Source: "/proc/cpuinfo: no hypervisor flag"},
		},
		{
			"vfio-pci loaded, nothing bound",
			map[string]string{"/proc/cpuinfo": bareCPU, "/sys/bus/pci/drivers/vfio-pci/new_id": ""},
			&facts.Virtualization{Kind: "none", PassthroughHost: new(false), Source: "/proc/cpuinfo: no hypervisor flag"},
		},
		{
			"shares given to guests",
			map[string]string{
				"/proc/cpuinfo": bareCPU, "/sys/bus/pci/drivers/nvidia/bind": "", "/sys/bus/mdev/devices/4b20d080-1b54-4048-85b3-a6a62d165c01/x": "",
			},
			&facts.Virtualization{Kind: "none", PassthroughHost: new(true), Source: "/proc/cpuinfo: no hypervisor flag"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m machine.Memory
			for name, data := range tt.files {
				m.AddFile(name, []byte(data))
			}
			got := checktest.One(t, Check, &m)
			if diff := cmp.Diff(tt.want, got.Host.Virtualization); diff != "" {
				t.Errorf("virtualization (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHostUnreadable(t *testing.T) {
	var m machine.Memory
	m.AnswerError(machine.AskUname, errors.New("no uname"))
	m.AnswerError(machine.AskIDs, errors.New("no ids"))
	got := checktest.One(t, Check, &m)
	if diff := cmp.Diff(&facts.HostFacts{}, got.Host); diff != "" {
		t.Errorf("host (-want +got):\n%s", diff)
	}
	var f []string
	for _, u := range got.Unknown {
		f = append(f, u.Fact)
	}
	want := []string{"hostname", "distribution", "command_line", "cpu", "memory_bytes", "uptime_seconds", "root", "virtualization"}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("unknown facts (-want +got):\n%s", diff)
	}
}

func FuzzHostFiles(f *testing.F) {
	f.Add([]byte(bareCPU))
	f.Add([]byte("PRETTY_NAME=\"x\nID='\nMemTotal: 99999999999999999999 kB\nMemTotal: 4 kB\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c := parseCPUInfo(b); c.Threads < 0 || c.Family < 0 || len(c.Model) > gather.MaxShown || c.hypervisor && !c.flags {
			t.Errorf("bad CPU %+v", c)
		}
		for name, value := range parseOSRelease(b) {
			if !env.IsVariableName(name) || len(value) > gather.MaxShown {
				t.Errorf("bad setting %q=%q", name, value)
			}
		}
		if n := parseMemTotal(b); n < 0 {
			t.Errorf("MemTotal %d", n)
		}
	})
}
