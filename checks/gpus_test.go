package checks

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/internal/nvml"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// gpuFacts runs the check over a machine whose PCI tree is known.
func gpuFacts(t *testing.T, m *host.Memory, pci *facts.PCIFacts) (*facts.GPUFacts, []facts.Unknown) {
	t.Helper()
	g := checktest.On(m, &facts.Facts{PCI: pci})
	expect.NoError(t, gpusCheck.Gather(t.Context(), g))
	return g.Facts.GPUs, g.Unknowns()
}

// gpuTree is a PCI tree of GPUs "nvidia ADDRESS", "amd ADDRESS", "vfio ADDRESS" (NVIDIA's, given to a guest), "virtual
// ADDRESS", and "switch ADDRESS".
func gpuTree(devices ...string) *facts.PCIFacts {
	tree := &facts.PCIFacts{Devices: []facts.PCIDevice{}}
	for _, s := range devices {
		kind, address, _ := strings.Cut(s, " ")
		d := facts.PCIDevice{Address: address, Kind: "gpu", Vendor: "0x10de", Driver: "nvidia"}
		switch kind {
		case "amd":
			d.Vendor, d.Driver = "0x1002", "" // What amdgpu shows is tested in amdgpu_test.go.
		case "vfio":
			d.Driver = "vfio-pci"
		case "virtual":
			d.Virtual = true
		case "switch":
			d.Kind = "nvswitch"
		}
		tree.Devices = append(tree.Devices, d)
	}
	return tree
}

const (
	openModule   = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (builder@host)\nGCC version:  gcc version 15.3.0 (GCC)\n"
	closedModule = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n"
)

func TestGPUsJoin(t *testing.T) {
	const a, b, c = "0000:06:00.0", "0000:07:00.0", "0000:08:00.0"
	lost := func(index int) nvml.Device { return nvml.Device{GPU: facts.GPU{Index: &index, Error: "GPU_IS_LOST"}} }
	at := func(index int, address string) nvml.Device {
		return nvml.Device{GPU: facts.GPU{Index: &index, Address: address}}
	}
	pci := func(address string) facts.GPU { return facts.GPU{Address: address, Vendor: "nvidia", InPCI: true} }
	both := func(index int, address string) facts.GPU {
		return facts.GPU{Address: address, Vendor: "nvidia", InPCI: true, InNVML: true, Index: new(index)}
	}
	silent := func(g facts.GPU, index *int) facts.GPU {
		g.Vendor, g.InNVML, g.Error, g.Index = "nvidia", true, "GPU_IS_LOST", index
		return g
	}
	type (
		devices = []nvml.Device
		gpus    = []facts.GPU
	)
	for _, tt := range []struct {
		name    string
		pci     *facts.PCIFacts
		devices devices
		want    gpus
	}{
		{"none", gpuTree(), nil, gpus{}},
		{"no PCI tree", nil, devices{at(0, a)}, gpus{{Address: a, Vendor: "nvidia", InNVML: true, Index: new(0)}}},
		{"in order of address, not of index", gpuTree("nvidia "+a, "nvidia "+b), devices{at(0, b), at(1, a)}, gpus{both(1, a), both(0, b)}},
		{"missing in NVML", gpuTree("nvidia "+a, "nvidia "+b), devices{at(0, a)}, gpus{both(0, a), pci(b)}},
		{"missing in PCI", gpuTree("nvidia " + a), devices{at(0, a), at(1, b)}, gpus{both(0, a), {Address: b, Vendor: "nvidia", InNVML: true, Index: new(1)}}},
		{"AMD", gpuTree("amd " + a), nil, gpus{{Address: a, Vendor: "amd", InPCI: true, Integrated: new(false)}}},
		{"virtual functions that NVML does not know", gpuTree("nvidia "+a, "virtual 0000:06:00.4"), devices{at(0, a)}, gpus{both(0, a)}},
		{"one silent GPU is the one left over", gpuTree("nvidia "+a, "nvidia "+b, "vfio "+c), devices{at(0, a), lost(1)}, gpus{both(0, a), silent(pci(b), new(1)), pci(c)}},
		{"two with one error: which index is which is not known", gpuTree("nvidia "+a, "nvidia "+b), devices{lost(0), lost(1)}, gpus{silent(pci(a), nil), silent(pci(b), nil)}},
		{"a silent GPU that may be either", gpuTree("nvidia "+a, "nvidia "+b), devices{lost(1)}, gpus{silent(facts.GPU{}, new(1)), pci(a), pci(b)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &host.Memory{}
			m.Answer(host.AskNVML, nvml.Answer{Outcome: nvml.OK, Devices: tt.devices})
			got, unknown := gpuFacts(t, m, tt.pci)
			expect.NoDiff(t, tt.want, got.Devices, "devices")
			expect.Len(t, 0, unknown, "unknown")
		})
	}
}

func TestGPUsDriver(t *testing.T) {
	m := &host.Memory{}
	m.AddFile("/proc/driver/nvidia/version", []byte(openModule))
	m.AddFile("/proc/driver/nvidia/params", []byte("EnableMSI: 1\nRegistryDwords: \"\"\nRmMsg: \"a: b\"\ngarbage\n"))
	m.AddFile("/proc/4242/comm", []byte("python3\n"))
	m.Answer(host.AskNVML, nvml.Answer{
		Outcome: nvml.OK,
		Driver:  facts.GPUDriver{Version: "580.159.04", CUDAVersion: "13.0"},
		Devices: []nvml.Device{{GPU: facts.GPU{
			Address: "0000:06:00.0", NVLinks: []facts.NVLink{}, Processes: []facts.GPUProcess{{PID: 4242}, {PID: 99}},
			PCIe: &facts.GPULink{Generation: 5}, ECC: &facts.ECC{Enabled: true}, Fabric: &facts.Fabric{State: "not-supported"},
		}}},
		P2P: []facts.GPUPeer{{A: "0000:06:00.0", B: "0000:07:00.0", Read: "ok"}},
	})
	got, unknown := gpuFacts(t, m, gpuTree("nvidia 0000:06:00.0"))
	expect.NoDiff(t, &facts.GPUFacts{
		Driver: facts.GPUDriver{
			Version: "580.159.04", KernelVersion: "580.159.04", Open: new(true), CUDAVersion: "13.0",
			Parameters: map[string]string{"EnableMSI": "1", "RegistryDwords": "", "RmMsg": "a: b"},
		},
		Devices: []facts.GPU{{
			Address: "0000:06:00.0", Vendor: "nvidia", InPCI: true, InNVML: true, Index: new(0), NVLinks: []facts.NVLink{},
			Processes: []facts.GPUProcess{{PID: 4242, Name: "python3"}, {PID: 99}},
			PCIe:      &facts.GPULink{Generation: 5}, ECC: &facts.ECC{Enabled: true}, Fabric: &facts.Fabric{State: "not-supported"},
		}},
		NVSwitches: new(0), NVML: "ok", P2P: []facts.GPUPeer{{A: "0000:06:00.0", B: "0000:07:00.0", Read: "ok"}},
	}, got, "facts")
	expect.Len(t, 0, unknown, "unknown")
}

// TestGPUsUnknown checks that a machine without NVIDIA GPUs is quiet, and that
// one with them says why NVML told nothing.
func TestGPUsUnknown(t *testing.T) {
	nvidia, none := gpuTree("nvidia 0000:06:00.0"), gpuTree("amd 0000:06:00.0")
	const section = "gpus devices: "
	for _, tt := range []struct {
		name   string
		pci    *facts.PCIFacts
		answer *nvml.Answer // Nil for a recording without one.
		nvml   string
		want   []string // Of each unknown, "SECTION FACT: REASON", and whether it has a hint.
	}{
		{"no GPU, no library", none, &nvml.Answer{Outcome: nvml.NotFound}, "not-found", nil},
		{"no GPU, no door", none, &nvml.Answer{Outcome: nvml.NotBuilt, Reason: "no cgo"}, "not-built", nil},
		{"no GPU, library of an image", none, &nvml.Answer{Outcome: nvml.Failed, ErrorName: "DRIVER_NOT_LOADED", Stage: "nvmlInit_v2"}, "error", nil},
		{"no GPU, not recorded", none, nil, "not-asked", nil},
		{"GPU, no library", nvidia, &nvml.Answer{Outcome: nvml.NotFound}, "not-found", []string{section + "NVIDIA's management library (libnvidia-ml.so.1) is not found +hint"}},
		{"GPU, no door", nvidia, &nvml.Answer{Outcome: nvml.NotBuilt, Reason: "no cgo"}, "not-built", []string{section + "no cgo +hint"}},
		{"GPU, not recorded", nvidia, nil, "not-asked", []string{section + "NVIDIA's management library was not queried for this recording +hint"}},
		{
			"GPU, mismatch", nvidia, &nvml.Answer{Outcome: nvml.Failed, ErrorName: "LIB_RM_VERSION_MISMATCH", Stage: "nvmlInit_v2"}, "error",
			[]string{section + "NVIDIA's management library fails in nvmlInit_v2: LIB_RM_VERSION_MISMATCH +hint"},
		},
		{
			"GPU, library that does not load", nvidia, &nvml.Answer{Outcome: nvml.Failed, ErrorName: "LIBRARY_NOT_LOADED", Reason: "file too short"}, "error",
			[]string{section + "NVIDIA's management library fails: LIBRARY_NOT_LOADED (file too short) +hint"},
		},
		{
			"hang in the kernel, even where no GPU is seen", none, &nvml.Answer{Outcome: nvml.Hang, Stage: "nvmlInit_v2", Left: true}, "hang",
			[]string{section + "NVIDIA's management library hangs in nvmlInit_v2, and its process cannot be killed: it is blocked in the kernel +hint"},
		},
		{
			"crash", nvidia, &nvml.Answer{Outcome: nvml.Crashed, ErrorName: "SIGSEGV", Stage: "nvmlDeviceGetName of GPU 1"}, "crashed",
			[]string{section + "NVIDIA's management library crashes in nvmlDeviceGetName of GPU 1: SIGSEGV +hint"},
		},
		{
			"killed", nvidia, &nvml.Answer{Outcome: nvml.Ended, Death: child.DeathByOther, Reason: "SIGKILL, such as by the kernel's OOM killer", Stage: "nvmlInit_v2"}, "ended",
			[]string{section + "the process that queries NVIDIA's management library was ended in nvmlInit_v2: SIGKILL, such as by the kernel's OOM killer +hint"},
		},
		{"refused", nvidia, &nvml.Answer{Outcome: nvml.OK, Devices: []nvml.Device{{GPU: facts.GPU{Address: "0000:06:00.0"}, Refused: []nvml.Refusal{
			{Function: "nvmlDeviceGetTotalEccErrors", Error: "NO_PERMISSION"}, {Function: "nvmlDeviceGetUUID", Error: "UNKNOWN"},
		}}}}, "ok", []string{
			"gpus devices.ecc: nvmlDeviceGetTotalEccErrors of 0000:06:00.0 returns NO_PERMISSION +hint",
			"gpus devices: nvmlDeviceGetUUID of 0000:06:00.0 returns UNKNOWN",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &host.Memory{}
			if tt.answer != nil {
				m.Answer(host.AskNVML, tt.answer)
			}
			got, unknown := gpuFacts(t, m, tt.pci)
			expect.Equal(t, tt.nvml, got.NVML, "NVML")
			expect.NoDiff(t, tt.want, reasons(unknown), "unknown")
		})
	}
}

// reasons spells what is unknown, and whether a hint says what would help.
func reasons(unknown []facts.Unknown) []string {
	var list []string
	for _, u := range unknown {
		s := u.Section + " " + u.Fact + ": " + u.Reason
		if u.Hint != "" {
			s += " +hint"
		}
		list = append(list, s)
	}
	return list
}

func TestGPUsUnreadable(t *testing.T) {
	m := &host.Memory{}
	m.AddError("/proc/driver/nvidia/version", fs.ErrPermission)
	m.AddFile("/proc/driver/nvidia/params", nil)
	m.AnswerError(host.AskNVML, errors.New("fork/exec: resource temporarily unavailable"))
	got, unknown := gpuFacts(t, m, gpuTree("nvidia 0000:06:00.0"))
	expect.That(t, got.NVML == "error" && got.Driver.KernelVersion == "", "NVML %q, kernel version %q, want an error and nothing", got.NVML, got.Driver.KernelVersion)
	expect.NoDiff(t, []string{
		"gpus driver.kernel_version: read /proc/driver/nvidia/version: permission denied +hint",
		"gpus devices: NVIDIA's management library fails: fork/exec: resource temporarily unavailable",
	}, reasons(unknown), "unknown")
}

func TestFabricManager(t *testing.T) {
	fabric := nvml.Answer{Outcome: nvml.OK, Devices: []nvml.Device{{GPU: facts.GPU{
		Address: "0000:06:00.0", NVLinks: []facts.NVLink{{Active: true, RemoteType: "switch"}}, Fabric: &facts.Fabric{State: "completed"},
	}}}}
	plain := nvml.Answer{Outcome: nvml.OK, Devices: []nvml.Device{{GPU: facts.GPU{Address: "0000:06:00.0", NVLinks: []facts.NVLink{}}}}}
	pid := "/run/nvidia-fabricmanager/nv-fabricmanager.pid"
	for _, tt := range []struct {
		name    string
		answer  nvml.Answer
		files   map[string]string
		want    *facts.FabricManager
		unknown int
	}{
		{"a machine without NVSwitches", plain, map[string]string{"/proc/2/comm": "kthreadd\n"}, nil, 0},
		{"found among the processes", fabric, map[string]string{"/proc/2/comm": "kthreadd\n", "/proc/900/comm": "nv-fabricmanage\n"}, &facts.FabricManager{Running: new(true)}, 0},
		{"found by its pid file", fabric, map[string]string{pid: "900\n", "/proc/900/comm": "nv-fabricmanage\n"}, &facts.FabricManager{Running: new(true)}, 0},
		{"a pid file left over", fabric, map[string]string{pid: "900\n", "/proc/900/comm": "bash\n", "/proc/2/comm": "kthreadd\n"}, &facts.FabricManager{Running: new(false)}, 0},
		{"not there", fabric, map[string]string{"/proc/2/comm": "kthreadd\n", "/proc/1/comm": "systemd\n"}, &facts.FabricManager{Running: new(false)}, 0},
		{"not visible", fabric, map[string]string{"/proc/1/comm": "bash\n"}, &facts.FabricManager{}, 1},
		{
			"a library with a version", fabric,
			map[string]string{"/proc/2/comm": "kthreadd\n", "/usr/lib64/libnvfm.so.580.159.04": "", "/usr/lib64/libnvfm.so.1": "-> libnvfm.so.580.159.04"},
			&facts.FabricManager{Running: new(false), Version: "580.159.04"}, 0,
		},
		{"a library without", fabric, map[string]string{"/proc/2/comm": "kthreadd\n", "/usr/lib64/libnvfm.so.1": ""}, &facts.FabricManager{Running: new(false)}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &host.Memory{}
			for name, text := range tt.files {
				if target, ok := strings.CutPrefix(text, "-> "); ok {
					m.AddLink(name, target)
				} else {
					m.AddFile(name, []byte(text))
				}
			}
			m.Answer(host.AskProcess+"nv-fabricmanage", tt.files["/proc/900/comm"] == "nv-fabricmanage\n")
			m.Answer(host.AskNVML, tt.answer)
			got, unknown := gpuFacts(t, m, gpuTree("nvidia 0000:06:00.0"))
			expect.NoDiff(t, tt.want, got.Driver.FabricManager, "fabric manager")
			expect.Len(t, tt.unknown, unknown, "unknown")
		})
	}
}

func TestNVSwitches(t *testing.T) {
	const gpu = "0000:06:00.0"
	answer := func(links ...facts.NVLink) *nvml.Answer {
		return &nvml.Answer{Outcome: nvml.OK, Devices: []nvml.Device{{GPU: facts.GPU{Address: gpu, NVLinks: append([]facts.NVLink{}, links...)}}}}
	}
	to := func(kind, address string) facts.NVLink {
		return facts.NVLink{Active: true, RemoteType: kind, RemoteAddress: address}
	}
	for _, tt := range []struct {
		name   string
		pci    *facts.PCIFacts
		answer *nvml.Answer
		want   *int
	}{
		{"in the tree", gpuTree("nvidia "+gpu, "switch 0000:90:00.0", "switch 0000:91:00.0"), answer(), new(2)},
		{"by the links", nil, answer(to("switch", "0000:90:00.0"), to("switch", "0000:90:00.0"), to("switch", "0000:91:00.0")), new(2)},
		{"hidden by a virtual machine", gpuTree("nvidia " + gpu), answer(to("switch", "")), nil},
		{"links to GPUs", gpuTree("nvidia " + gpu), answer(to("gpu", "0000:07:00.0")), new(0)},
		{"a link that is down", gpuTree("nvidia " + gpu), answer(facts.NVLink{}), nil},
		{"no links", gpuTree("nvidia " + gpu), answer(), new(0)},
		{"NVML hangs", gpuTree("nvidia " + gpu), &nvml.Answer{Outcome: nvml.Hang}, nil},
		{"no tree", nil, answer(), nil},
	} {
		m := &host.Memory{}
		m.Answer(host.AskNVML, tt.answer)
		got, _ := gpuFacts(t, m, tt.pci)
		expect.NoDiff(t, tt.want, got.NVSwitches, "%s: NVSwitches", tt.name)
	}
}

func TestParseDriverVersion(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		open       *bool
	}{
		{openModule, "580.159.04", new(true)},
		{closedModule, "535.183.01", new(false)},
		{"NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.65", "580.65", new(true)},
		{"", "", nil},
	} {
		got, open := DriverVersion(tt.text)
		expect.Equal(t, tt.want, got, "version of %q", tt.text)
		expect.NoDiff(t, tt.open, open, "open modules of %q", tt.text)
	}
}

func FuzzDriverFiles(f *testing.F) {
	f.Add(openModule)
	f.Add(closedModule)
	f.Add("EnableMSI: 1\nRegistryDwords: \"\"\n:\n: x\n\"\": \"\n")
	f.Fuzz(func(t *testing.T, text string) {
		version, open := DriverVersion(text)
		expect.That(t, (version == "") == (open == nil) && strings.Contains(text, version), "DriverVersion(%q) = %q, %v", text, version, open)
		var d facts.GPUDriver
		name, value := DriverParameter(&d, text)
		expect.That(t, strings.Contains(text, name) && d.Parameters[name] == value && len(value) < 4096, "DriverParameter(%q) = %q, %q", text, name, value)
	})
}

// TestSilentGPUHasNoPairs checks that a GPU of which not even the address is known stands in no pair.
func TestSilentGPUHasNoPairs(t *testing.T) {
	const a, b = "0000:06:00.0", "0000:07:00.0"
	g := checktest.On(&host.Memory{}, &facts.Facts{
		GPUs: &facts.GPUFacts{Devices: []facts.GPU{{Vendor: "nvidia", Error: "GPU_IS_LOST"}, {Address: a, Vendor: "nvidia"}, {Address: b, Vendor: "nvidia"}}},
	})
	expect.NoError(t, linksCheck.Gather(t.Context(), g))
	expect.NoDiff(t, []string{a + " " + b}, expect.Map(g.Facts.Links.Pairs, func(p facts.Pair) string { return p.A + " " + p.B }), "pairs")
}
