package report

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestOrigins checks which line of a text evidence is put down to, and that none
// is better than a wrong one.
func TestOrigins(t *testing.T) {
	wrong := int64(3)
	f := &facts.Facts{
		Texts: []facts.Text{{Name: "a.txt"}, {Name: "b.txt"}},
		Origins: []facts.Origin{
			{Fact: "gpus.devices[0000:01:00.0].name", Source: "a.txt", Line: 1, Value: "NVIDIA A100"},
			{Fact: "gpus.devices[0000:01:00.0].remapped_rows.pending", Source: "b.txt", Line: 9, Value: "true"},
			{Fact: "gpus.p2p[GPU0 -> GPU1].read", Source: "a.txt", Line: 4, Value: "ok"},
			{Fact: "gpus.p2p[GPU0 -> GPU1].write", Source: "a.txt", Line: 4, Value: "ok"},
			{Fact: "gpus.devices[0000:02:00.0].fabric.state", Source: "a.txt", Line: 5, Value: "completed"},
			{Fact: "gpus.devices[0000:02:00.0].fabric.status", Source: "a.txt", Line: 6, Value: "SUCCESS"},
			{Fact: "pci.devices[0000:01:00.0].link.width", Source: "a.txt", Line: 7, Value: "16"},
			{Fact: "gpus.amd.kernel_config[CONFIG_HSA_AMD_P2P]", Source: "a.txt", Line: 8, Value: "n"},
			{Fact: "host.command_line", Source: "a.txt", Line: 10, Value: "[quiet iommu=pt]"},
			{Fact: "host.kernel", Source: "a.txt", Line: 11}, // From a facts file: the value is not told.
		},
		Env: &facts.EnvFacts{Variables: []facts.Variable{
			{Name: "NCCL_DEBUG", Value: "WARN", Source: "a.txt", Line: 2, Effective: true},
			{Name: "NCCL_DEBUG", Value: "INFO", Source: "b.txt", Line: 3},
			{Name: "NCCL_ALGO", Value: "Ring", Source: "environment", Effective: true},
			{Name: "NCCL_PROTO", Value: "LL", Source: "b.txt", Effective: true}, // The line is not known.
		}},
		KernelLog: &facts.KernelLogFacts{Events: []facts.KernelEvent{
			{Message: "NVRM: Xid 79", Source: "b.txt", Line: 12}, {Message: "NVRM: Xid 79", Source: "b.txt", Line: 14},
		}},
		Launches: []facts.Launch{
			{Name: "a", Source: "a.txt", Line: 20, Lines: map[string]int{"shm_bytes": 24, "variables[NCCL_DEBUG]": 22}},
			{Name: "a", Source: "b.txt", Line: 20, Lines: map[string]int{"shm_bytes": 29}},
		},
		Benchmarks: []facts.Benchmark{{
			Tool: "nccl-tests", Source: "a.txt", Line: 30, Wrong: &wrong, Lines: map[string]int{"wrong": 39},
			Points: []facts.BenchmarkPoint{{GBps: new(12.5), Line: 33}, {GBps: new(40.0), Line: 34}},
		}},
	}
	for _, c := range []struct {
		fact   string
		value  any
		source string
		want   string
	}{
		{"gpus.devices[0000:01:00.0].remapped_rows.pending", true, "NVML", "b.txt:9"},
		// Not that of what stands around it.
		{"gpus.devices[0000:01:00.0].remapped_rows.uncorrected", 4, "NVML", "NVML"},
		{"gpus.devices[0000:01:00.0].mig", true, "nvidia-smi", "nvidia-smi"},
		{"gpus.p2p[GPU0 -> GPU1]", "ok", "cudaDeviceCanAccessPeer", "a.txt:4"},
		// Several lines of one text tell it together.
		{"gpus.devices[0000:02:00.0].fabric", map[string]any{"state": "completed"}, "NVML", "a.txt"},
		// The texts say 16; the rule has 8 from elsewhere.
		{"pci.devices[0000:01:00.0].link.width", 8, "NVML", "NVML"},
		{"pci.devices[0000:01:00.0].link.width", 16.0, "lspci", "a.txt:7"},
		{"gpus.amd.kernel_config.CONFIG_HSA_AMD_P2P", "n", "the kernel", "a.txt:8"},
		{"host.command_line", "quiet iommu=pt", "/proc/cmdline", "a.txt:10"},
		{"host.kernel", "6.8.0", "/proc", "a.txt:11"},
		{"env.variables[NCCL_DEBUG]", "WARN", "environment", "a.txt:2"},
		{"env.variables[NCCL_DEBUG]", "INFO", "environment", "b.txt:3"},
		{"env.variables[NCCL_ALGO]", "Ring", "environment", "environment"},
		{"env.variables[NCCL_PROTO]", "LL", "the texts", "b.txt"},
		{"kernel_log.events[xid]", "NVRM: Xid 79", "the kernel log", "b.txt:12"},
		{"kernel_log.events[xid]", "NVRM: Xid 48", "the kernel log", "the kernel log"},
		{"launches[a].shm_bytes", 64, "a.txt:20", "a.txt:24"},
		{"launches[a].shm_bytes", 64, "b.txt:20", "b.txt:29"},
		{"launches[a].ipc", "private", "b.txt:20", "b.txt:20"},
		{"launches[].variables.NCCL_DEBUG", "WARN", "a.txt:20", "a.txt:22"},
		{"benchmarks[nccl-tests].wrong", 3, "a.txt:30", "a.txt:39"},
		{"benchmarks", 3, "a.txt:30", "a.txt:39"},
		{"benchmarks[nccl-tests].points", 40.0, "a.txt:30", "a.txt:34"},
		{"benchmarks", "all_reduce", "a.txt:30", "a.txt:30"},
	} {
		list := []rules.Finding{{Explains: []rules.Finding{{Evidence: []rules.Evidence{{Fact: c.fact, Value: c.value, Source: c.source}}}}}}
		expect.Equal(t, c.want, fillOrigins(list, f)[0].Explains[0].Evidence[0].Source, "%s = %v of %s is put down to", c.fact, c.value, c.source)
	}
}
