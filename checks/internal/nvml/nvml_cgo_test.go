//go:build cgo && linux

package nvml

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/fixtures/drivers"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestMain(m *testing.M) {
	child.Main()
	os.Exit(m.Run())
}

// simulate makes children load the simulated library, with a fault.
func simulate(t *testing.T, fault string, flags ...string) {
	t.Helper()
	t.Setenv("LD_LIBRARY_PATH", drivers.Build(t, "nvml", flags...))
	if fault != "" {
		t.Setenv("GPUDOCTOR_SIM_NVML_FAULT", fault)
	}
}

// answer asks, with little patience where something hangs.
func answer(t *testing.T) *Answer {
	t.Helper()
	patience := 2 * time.Minute
	if strings.Contains(os.Getenv("GPUDOCTOR_SIM_NVML_FAULT"), "hang") {
		patience = 3 * time.Second
	}
	return expect.Value(Ask(t.Context(), Limits{Call: patience, All: 2 * time.Minute}))(t)
}

// h200 is what a healthy GPU of the simulated machine answers.
func h200(index int, address, uuid string) Device {
	d := Device{GPU: facts.GPU{
		Index: &index, Vendor: "nvidia", InNVML: true, Address: address, UUID: uuid, Name: "NVIDIA H200", Architecture: "hopper", ComputeCapability: "9.0",
		MemoryBytes: 143771 << 20, MemoryUsedBytes: new(int64(0)), BAR1Bytes: new(int64(256 << 30)),
		PCIe:             &facts.GPULink{Generation: 5, Width: 16, MaxGeneration: 5, MaxWidth: 16},
		PerformanceState: new(0), Persistence: new(true), VirtualizationMode: "passthrough", MIG: new(false),
		ECC: &facts.ECC{
			Enabled: true, VolatileUncorrected: new(int64(0)), SRAMThresholdExceeded: new(false), UnrepairableMemory: new(false),
			ChannelRepairIsPending: new(false),
		},
		RemappedRows: &facts.RemappedRows{}, RecoveryAction: "none", Fabric: &facts.Fabric{State: "completed", Status: "SUCCESS"},
		Processes: []facts.GPUProcess{},
	}}
	for link := range 18 {
		d.NVLinks = append(d.NVLinks, facts.NVLink{
			Link: link, Active: true, Version: 4, RemoteType: "switch", SpeedMBps: 26562,
		})
	}
	return d
}

// healthy is what the simulated machine answers without a fault.
func healthy() *Answer {
	a, b := "0000:06:00.0", "0000:07:00.0"
	return &Answer{
		Outcome: OK,
		Driver:  facts.GPUDriver{Version: "580.159.04", CUDAVersion: "13.0"},
		Devices: []Device{h200(0, a, "GPU-00000000-0000-0000-0000-000000000001"), h200(1, b, "GPU-00000000-0000-0000-0000-000000000002")},
		P2P:     []facts.GPUPeer{{A: a, B: b, Read: "ok", Write: "ok", NVLink: "ok"}},
	}
}

// TestAsk runs the door against the simulated library through every fault that lets it answer to the end, and
// against older ones.
func TestAsk(t *testing.T) {
	fails := func(name string) func(*Answer) {
		return func(a *Answer) {
			*a = Answer{Outcome: Failed, ErrorName: name, Stage: "nvmlInit_v2", Driver: facts.GPUDriver{}}
		}
	}
	for _, tt := range []struct {
		fault string
		// change makes of the healthy answer the one that is wanted.
		change func(a *Answer)
	}{
		{"", func(*Answer) {}},
		{"hang-shutdown", func(*Answer) {}},
		{"driver-mismatch", fails("LIB_RM_VERSION_MISMATCH")},
		{"driver-not-loaded", fails("DRIVER_NOT_LOADED")},
		{"no-permission", fails("NO_PERMISSION")},
		{"no-permission-ecc", func(a *Answer) {
			e := a.Devices[1].ECC
			e.VolatileUncorrected = nil
			a.Devices[1].Refused = []Refusal{{"nvmlDeviceGetTotalEccErrors", "NO_PERMISSION"}}
		}},
		{"lost-gpu", func(a *Answer) {
			a.Devices[1] = Device{GPU: facts.GPU{Index: new(1), Vendor: "nvidia", InNVML: true, Error: "GPU_IS_LOST"}}
			a.P2P = nil
		}},
		{"lost-later", func(a *Answer) {
			b := a.Devices[1]
			a.Devices[1] = Device{GPU: facts.GPU{Index: new(1), Vendor: "nvidia", InNVML: true, Error: "GPU_IS_LOST", Address: b.Address, UUID: b.UUID, Name: b.Name}}
			a.P2P = nil
		}},
		{"reset-required", func(a *Answer) {
			b := &a.Devices[1]
			b.Error, b.RecoveryAction = "RESET_REQUIRED", "gpu-reset"
			b.ECC.VolatileUncorrected = nil
		}},
		{"not-supported", func(a *Answer) {
			for i, d := range a.Devices {
				a.Devices[i] = Device{GPU: facts.GPU{
					Vendor: "nvidia", InNVML: true, Index: d.Index, Address: d.Address, UUID: d.UUID, Name: d.Name, ComputeCapability: d.ComputeCapability,
					MemoryBytes: d.MemoryBytes, MemoryUsedBytes: d.MemoryUsedBytes, NVLinks: []facts.NVLink{}, Processes: []facts.GPUProcess{},
				}}
			}
			a.P2P[0].NVLink = "not-supported"
		}},
		{"nvlink-down", func(a *Answer) {
			down := &a.Devices[1].NVLinks[3]
			down.Active, down.SpeedMBps, down.RemoteType = false, 0, ""
		}},
		{"fabric-in-progress", func(a *Answer) {
			for i := range a.Devices {
				a.Devices[i].Fabric = &facts.Fabric{State: "in-progress"}
			}
		}},
		{"fabric-unhealthy", func(a *Answer) {
			a.Devices[1].Fabric.Unhealthy = []string{"degraded-bandwidth", "incorrect-configuration"}
		}},
		{"remap-pending", func(a *Answer) { a.Devices[1].RemappedRows = &facts.RemappedRows{Pending: true} }},
		{"ecc-uncorrected", func(a *Answer) {
			a.Devices[1].ECC.VolatileUncorrected = new(int64(7))
		}},
		{"memory-unrepairable", func(a *Answer) { a.Devices[1].ECC.UnrepairableMemory = new(true) }},
		{"repair-pending", func(a *Answer) { a.Devices[1].ECC.ChannelRepairIsPending = new(true) }},
		{"mig-on", func(a *Answer) { a.Devices[1].MIG = new(true) }},
		{"busy", func(a *Answer) { // The second process is the child itself.
			a.Devices[1].MemoryUsedBytes = new(int64(4 << 30))
			a.Devices[1].Processes = []facts.GPUProcess{{PID: 4242}}
			a.Devices[1].Own = 1
		}},
		{"p2p-blocked", func(a *Answer) { a.P2P[0].Read = "chipset-not-supported" }},
		// A library that lacks every newer function: none of them may be called, and what older ones tell is there.
		{"-DOLD_DRIVER", func(a *Answer) {
			a.Driver = facts.GPUDriver{Version: "450.80.02", CUDAVersion: "11.0"}
			for i := range a.Devices {
				d := &a.Devices[i]
				d.MemoryUsedBytes = new(int64(616 << 20)) // With the driver's reserve.
				d.ECC.SRAMThresholdExceeded, d.ECC.UnrepairableMemory, d.ECC.ChannelRepairIsPending = nil, nil, nil
				d.RecoveryAction, d.Fabric = "", nil
				d.NVLinks = nil
			}
		}},
		// One that lacks only the functions that are looked up by hand.
		{"-DNVML_12", func(a *Answer) {
			for _, d := range a.Devices {
				d.ECC.UnrepairableMemory, d.ECC.ChannelRepairIsPending = nil, nil
			}
		}},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			if strings.HasPrefix(tt.fault, "-D") {
				simulate(t, "", tt.fault)
			} else {
				simulate(t, tt.fault)
			}
			want := healthy()
			tt.change(want)
			expect.NoDiff(t, want, answer(t), "answer")
		})
	}
}

// TestAskStopped runs the door through the faults that end it early: what came before is kept, and the step is named.
func TestAskStopped(t *testing.T) {
	nvmlOnly := facts.GPUDriver{}
	for _, tt := range []struct {
		fault   string
		want    Answer // But for Devices.
		devices int
	}{
		{"hang-init", Answer{Outcome: Hang, Stage: "nvmlInit_v2", Driver: nvmlOnly}, 0},
		{"hang-device", Answer{Outcome: Hang, Stage: "nvmlDeviceGetHandleByIndex_v2 of GPU 1", Driver: healthy().Driver}, 1},
		{"hang-p2p", Answer{Outcome: Hang, Stage: "nvmlDeviceGetP2PStatus of GPU 0", Driver: healthy().Driver}, 2},
		{"crash-init", Answer{Outcome: Crashed, ErrorName: "SIGSEGV", Stage: "nvmlInit_v2", Driver: nvmlOnly}, 0},
		{"crash-device", Answer{Outcome: Crashed, ErrorName: "SIGSEGV", Stage: "nvmlDeviceGetName of GPU 1", Driver: healthy().Driver}, 1},
		{"exit-init", Answer{Outcome: Crashed, Reason: "simulated NVML: giving up", Stage: "nvmlInit_v2", Driver: nvmlOnly}, 0},
		{"exit-init=0", Answer{Outcome: Crashed, Reason: "simulated NVML: a library may write to stderr", Stage: "nvmlInit_v2", Driver: nvmlOnly}, 0},
		{"flood-init", Answer{Outcome: Crashed, Reason: "it wrote endlessly to stderr and was killed", Stage: "nvmlInit_v2", Driver: nvmlOnly}, 0},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			simulate(t, tt.fault)
			want := tt.want
			want.Devices = healthy().Devices[:tt.devices]
			if tt.devices == 0 {
				want.Devices = nil
			}
			expect.NoDiff(t, &want, answer(t), "answer")
		})
	}
}

func TestManyGPUs(t *testing.T) {
	simulate(t, "")
	t.Setenv("GPUDOCTOR_SIM_GPUS", "8")
	t.Setenv("GPUDOCTOR_SIM_ADDRESSES", "0001:3B:00.0,10000:0A:01.0")
	start := time.Now()
	a := answer(t)
	took := time.Since(start)
	expect.That(t, took <= time.Minute, "8 GPUs took %s", took)
	got := expect.Map(a.Devices, func(d Device) string { return d.Address })
	want := []string{"0001:3b:00.0", "10000:0a:01.0", "0000:08:00.0", "0000:09:00.0", "0000:0a:00.0", "0000:0b:00.0", "0000:0c:00.0", "0000:0d:00.0"}
	expect.NoDiff(t, want, got, "addresses")
	expect.That(t, len(a.P2P) == 28, "%d pairs, want 28", len(a.P2P))
}

func TestNoLibrary(t *testing.T) {
	t.Run("not found", func(t *testing.T) {
		t.Setenv("LD_LIBRARY_PATH", t.TempDir())
		a := answer(t)
		if a.Outcome == OK {
			t.Skip("this machine has the real library")
		}
		expect.That(t, a.Outcome == NotFound, "outcome %q (%s), want %q", a.Outcome, a.Reason, NotFound)
	})
	t.Run("empty file", func(t *testing.T) {
		dir := t.TempDir()
		expect.NoError(t, os.WriteFile(dir+"/"+library, nil, 0o600))
		t.Setenv("LD_LIBRARY_PATH", dir)
		a := answer(t)
		expect.That(t, a.Outcome == Failed && a.ErrorName == "LIBRARY_NOT_LOADED" && strings.Contains(a.Reason, "file too short"), "answer %+v, want the loader's reason", a)
	})
}

func TestAskCanceled(t *testing.T) {
	simulate(t, "hang-init")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	a, err := Ask(ctx, Limits{})
	expect.That(t, errors.Is(err, context.Canceled), "Ask = %+v, %v, want context.Canceled", a, err)
}

// TestNothingIsSet checks that the door calls no function that changes a state: those of NVML are named for it.
func TestNothingIsSet(t *testing.T) {
	names := expect.Value(os.ReadDir("."))(t)
	for _, name := range names {
		if strings.HasSuffix(name.Name(), "_test.go") {
			continue
		}
		text := expect.Value(os.ReadFile(name.Name()))(t)
		for word := range strings.FieldsFuncSeq(string(text), func(r rune) bool { return r != '.' && (r < 'A' || r > 'z') }) {
			_, method, _ := strings.Cut(word, ".")
			if slices.ContainsFunc([]string{"Set", "Reset", "Clear", "Freeze", "Remove", "Create", "Destroy"}, func(verb string) bool {
				return strings.HasPrefix(method, "gpu."+verb) || strings.HasPrefix(method, "lib."+verb)
			}) {
				t.Errorf("%s calls %s", name.Name(), word)
			}
		}
	}
}
