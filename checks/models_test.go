package checks

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/attempt"
	"github.com/gpudoctor/gpudoctor/checks/internal/nvml"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/storage"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// model is a machine that nobody recorded: its tree, driver and transfers are made up from published figures. Its file
// in fixtures/hosts begins with "model-".
type model struct {
	tree *checktest.Tree
	gpus []string
	// rate is what a copy between two GPUs reaches, by their indices; 0 is one that delivers zeros.
	rate func(a, b int) float64
	amd  bool // The processors are AMD's.
}

// processors is /proc/cpuinfo, shortened, of two sockets.
func (m model) processors() []byte {
	kind := "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 207\nmodel name\t: INTEL(R) XEON(R) PLATINUM 8562Y+"
	if m.amd {
		kind = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9554 64-Core Processor"
	}
	var b bytes.Buffer
	for i := range 2 {
		fmt.Fprintf(&b, "processor\t: %d\n%s\nphysical id\t: %d\nflags\t\t: fpu vme\n\n", i, kind, i)
	}
	return b.Bytes()
}

// workstation is a GPU of one generation and size: RTX PRO 6000 Blackwell,
// 10de:2bb1, 96 GiB behind a BAR of 128 GiB (voipmonitor/rtx6kpro).
const (
	workstationDevice = 0x2bb1
	workstationName   = "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"
	workstationMemory = 97887 << 20
	workstationBAR1   = 98304 << 20
)

// eightBehindSwitches is a server with eight GPUs behind PCIe switches on two sockets. Rates are those of
// voipmonitor/rtx6kpro: 54 below one switch, 50 within a socket, 39 across; with redirected requests below a switch 25.
func eightBehindSwitches(redirect bool) model {
	tree, gpus, _ := checktest.EightGPU()
	m := model{tree: tree}
	socket := []int{0, 0, 0, 0, 1, 1, 1, 1}
	below := []int{0, 0, 1, 1, 2, 3, 4, 4}
	for _, g := range gpus {
		m.gpus = append(m.gpus, asWorkstation(g))
	}
	for _, f := range tree.Functions {
		if redirect && f.Port == checktest.Downstream {
			f.ACS = checktest.ACSRedirect()
		}
	}
	m.rate = func(a, b int) float64 {
		switch {
		case below[a] == below[b] && redirect:
			return 25.1
		case below[a] == below[b]:
			return 54.2
		case socket[a] == socket[b]:
			return 50.3
		}
		return 39.4
	}
	return m
}

// twoWithZeros is a workstation with two GPUs on root ports of one socket, whose IOMMU translates, with redirection on
// at both root ports. Every copy reports success and delivers zeros, as unsloth's note on NVLINK_P2P tells of such a
// machine.
func twoWithZeros() model {
	tree := &checktest.Tree{
		Nodes:       []checktest.Node{{CPUs: "0-31", MemoryKiB: 263921408}},
		CommandLine: "BOOT_IMAGE=/vmlinuz root=/dev/nvme0n1p2 ro quiet", IOMMUUnits: []string{"ivhd0"}, IOMMUType: "DMA-FQ",
	}
	m := model{tree: tree, rate: func(int, int) float64 { return 0 }, amd: true}
	link := checktest.Gen(5, 16)
	for _, number := range []int{0x40, 0xc0} {
		b := tree.Root(0, number, 0)
		b.Add(0, 0, checktest.Function{Class: 0x060000, Vendor: 0x1022, Device: 0x14a4, Port: checktest.NoExpress})
		port := b.Bridge(1, checktest.RootPort, link, checktest.ACSRedirect())
		port.Vendor, port.Device = 0x1022, 0x14a5
		m.gpus = append(m.gpus, asWorkstation(port.Below.GPU(0, link)))
	}
	return m
}

func asWorkstation(g *checktest.Function) string {
	g.Class, g.Device = 0x030000, workstationDevice
	return g.Address
}

// writeUsual has a machine answer what is alike on all.
func writeUsual(m *host.Memory) {
	m.Answer(network.AskAddresses, map[string][]string{"lo": {"127.0.0.1/8"}})
	m.AddFile("/proc/sys/kernel/osrelease", []byte("6.8.0-60-generic\n"))
	m.AddFile("/etc/os-release", []byte("PRETTY_NAME=\"Ubuntu 24.04.3 LTS\"\nID=ubuntu\nVERSION_ID=\"24.04\"\n"))
	m.AddFile("/proc/self/status", []byte("Name:\tgpudoctor\nPid:\t4242\nNStgid:\t4242\nCapEff:\t000001ffffffffff\nSeccomp:\t0\nCpus_allowed_list:\t0-127\nMems_allowed_list:\t0-1\n"))
	checktest.WriteStorage(m)
	m.Answer(storage.AskSettings, storage.Settings{})
	for name, inode := range map[string]int{"ipc": 4026531839, "pid": 4026531836, "user": 4026531837} {
		m.AddLink("/proc/self/ns/"+name, fmt.Sprintf("%s:[%d]", name, inode))
	}
	m.Answer(host.AskIDs, host.IDs{})
	m.Answer(host.AskLimits, map[string]host.Limit{"memlock": {Soft: -1, Hard: -1}, "nofile": {Soft: 1048576, Hard: 1048576}})
	m.Answer(attempt.Question, attempt.Answer{Results: map[string]attempt.Result{attempt.GetMempolicy: {Outcome: attempt.OK}, attempt.Mlock: {Outcome: attempt.OK}}})
	m.Answer(host.AskKernelLog, "")
}

// memory makes the machine answer.
func (m model) memory() *host.Memory {
	mem := &host.Memory{}
	m.tree.Write(mem, true)
	m.tree.WriteNetwork(mem, "nvidia", "nvidia_uvm")
	writeUsual(mem)
	mem.AddDir("/dev")
	for i := range m.gpus {
		mem.AddInfo(fmt.Sprintf("/dev/nvidia%d", i), host.FileInfo{Mode: fs.ModeDevice | fs.ModeCharDevice | 0o666})
		mem.Answer(fmt.Sprintf("%s/dev/nvidia%d", host.AskAccess, i), "rw")
	}
	for _, name := range []string{"nvidiactl", "nvidia-uvm"} {
		mem.AddInfo("/dev/"+name, host.FileInfo{Mode: fs.ModeDevice | fs.ModeCharDevice | 0o666})
		mem.Answer(host.AskAccess+"/dev/"+name, "rw")
	}
	mem.AddFile("/proc/meminfo", []byte("MemTotal:       527843864 kB\n"))
	mem.AddFile("/proc/cpuinfo", m.processors())
	mem.AddFile("/proc/driver/nvidia/version", []byte("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.84  Release Build  (dvs-builder@U22)\nGCC version:\n"))
	mem.Answer(host.AskUname, host.Uname{Node: "host-1", Release: "6.8.0-60-generic", Machine: "x86_64"})
	mem.Answer(host.AskEnviron, []string{})
	mem.Answer(host.AskStatfs+"/dev/shm", host.Statfs{SizeBytes: 270 << 30, FreeBytes: 270 << 30})
	mem.Answer(host.AskNVML, m.nvml())
	mem.Answer(host.AskProbe+"quick", m.probe())
	return mem
}

func (m model) nvml() nvml.Answer {
	a := nvml.Answer{
		Outcome: nvml.OK, Driver: facts.GPUDriver{Version: "595.84", CUDAVersion: "13.2"}, Devices: []nvml.Device{}, P2P: []facts.GPUPeer{},
	}
	for i, address := range m.gpus {
		a.Devices = append(a.Devices, nvml.Device{GPU: facts.GPU{
			Index: &i, Vendor: "nvidia", InNVML: true, Address: address, UUID: fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", i+1), Name: workstationName, Architecture: "blackwell",
			ComputeCapability: "12.0", MemoryBytes: workstationMemory, MemoryUsedBytes: new(int64(0)), BAR1Bytes: new(int64(workstationBAR1)),
			PCIe:             &facts.GPULink{Generation: 5, Width: 16, MaxGeneration: 5, MaxWidth: 16},
			PerformanceState: new(0), Persistence: new(true), VirtualizationMode: "none", MIG: new(false),
			ECC:            &facts.ECC{Enabled: true, VolatileUncorrected: new(int64(0))},
			RecoveryAction: "none", NVLinks: []facts.NVLink{}, Processes: []facts.GPUProcess{},
		}})
		for j, peer := range m.gpus {
			if i < j {
				a.P2P = append(a.P2P, facts.GPUPeer{A: address, B: peer, Read: "ok", Write: "ok", NVLink: "not-supported", Atomics: "ok"})
			}
		}
	}
	return a
}

func (m model) probe() *probe.Report {
	r := &probe.Report{
		Mode: probe.Quick, Outcome: probe.OK, Library: "/usr/lib/x86_64-linux-gnu/libcuda.so.595.84", DriverVersion: "13.2",
		Devices: []probe.Device{}, Peers: []probe.Peer{}, Transfers: []probe.Transfer{},
	}
	var staged []probe.Transfer
	for i, a := range m.gpus {
		r.Devices = append(r.Devices, probe.Device{
			Ordinal: i, Address: a, Name: workstationName, ComputeCapability: "12.0", MemoryBytes: workstationMemory, Outcome: probe.OK,
		})
		for j, b := range m.gpus {
			if i == j {
				continue
			}
			r.Peers = append(r.Peers, probe.Peer{Source: a, Destination: b, Access: new(true)})
			for _, test := range []string{probe.TestCopy, probe.TestStore, probe.TestLoad} {
				r.Transfers = append(r.Transfers, m.transfer(test, i, j))
			}
			if m.rate(i, j) == 0 {
				staged = append(staged, probe.Transfer{Test: probe.TestStaged, Source: a, Destination: b, Outcome: probe.OK, Bytes: 64 << 20, GBps: new(11.2), Verified: "gpu"})
			}
		}
	}
	slices.SortStableFunc(r.Transfers, func(a, b probe.Transfer) int { return strings.Compare(a.Test, b.Test) })
	r.Transfers = append(r.Transfers, staged...)
	return r
}

func (m model) transfer(test string, i, j int) probe.Transfer {
	t := probe.Transfer{Test: test, Source: m.gpus[i], Destination: m.gpus[j], Outcome: probe.OK, Bytes: 64 << 20, Verified: "gpu"}
	if test != probe.TestCopy {
		t.Bytes = 4 << 20
	}
	switch rate := m.rate(i, j); {
	case rate == 0:
		t.Outcome, t.BadBytes, t.FirstBad, t.Found, t.Repeats = probe.Corrupt, t.Bytes, new(int64(0)), "zeros", 3
		t.Reason = fmt.Sprintf("the driver reported success, and %d of %d bytes are not what was sent, from offset 0 on: zeros stand there", t.Bytes, t.Bytes)
	case test == probe.TestCopy:
		t.GBps = &rate
	}
	return t
}

// models are the modelled machines by the name of their file.
var models = map[string]*host.Memory{
	"model-8x-pcie":     eightBehindSwitches(false).memory(),
	"model-8x-pcie-acs": eightBehindSwitches(true).memory(),
	"model-2x-zeros":    twoWithZeros().memory(),
	"model-p5":          p5(),
	"model-r9700x4":     r9700x4().build(),
	"model-mi300x8":     mi300x8().build(),
	"model-mi250x4":     mi250x4().build(),
}

// TestGoldenModels checks that the files of the modelled machines are what this test makes, and that a replay of each
// gives the same facts as the model itself. Run make update after a change of what checks read.
func TestGoldenModels(t *testing.T) {
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			h, recording := host.New(m).Record()
			live, _ := Gather(t.Context(), h, gather.Options{})
			var file bytes.Buffer
			expect.NoError(t, recording.Write(&file, host.RecordOptions{Version: "model"}))
			path := "../fixtures/hosts/" + name + ".txtar"
			expect.Golden(t, path, file.Bytes())
			again, _ := Gather(t.Context(), expect.Value(host.ParseSnapshot(path, file.Bytes()))(t), gather.Options{})
			var a, b bytes.Buffer
			expect.NoError(t, host.WriteFacts(&a, live))
			expect.NoError(t, host.WriteFacts(&b, again))
			expect.NoDiff(t, a.String(), b.String(), "a replay of the model")
		})
	}
}
