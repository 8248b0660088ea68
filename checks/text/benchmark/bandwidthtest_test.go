package benchmark_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const bandwidthTestOutput = `[CUDA Bandwidth Test] - Starting...
Running on...

 Device 0: NVIDIA GeForce RTX 3090
 Quick Mode

 Host to Device Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)	Bandwidth(GB/s)
   32000000			0.76

 Device to Host Bandwidth, 1 Device(s)
 PAGEABLE Memory Transfers
   Transfer Size (Bytes)	Bandwidth(MB/s)
   1024				95.4
   33554432			6343.6

 Device to Device Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)	Bandwidth(GB/s)
   32000000			770.3

Result = PASS
`

// points shows a table: "Host to Device, pinned: host-to-gpu CPU -> GPU0 0.76 of 0.985".
func points(b facts.Benchmark) string {
	s := fmt.Sprintf("%s: %s", b.Test, b.What)
	for _, p := range b.Points {
		s += fmt.Sprintf(" %s -> %s %.2f", p.A, p.B, *p.GBps)
		if p.ExpectedGBps != nil {
			s += fmt.Sprintf(" of %.3f x %.2f", *p.ExpectedGBps, *p.Threshold)
		}
	}
	return s
}

// TestBandwidthTest checks that a copy is judged where no text shows the GPU's link, and that small ones are not.
func TestBandwidthTest(t *testing.T) {
	f := texttest.Parse("x.txt", bandwidthTestOutput+"some other line\n")
	want := []string{
		"Host to Device, pinned: host-to-gpu CPU -> GPU0 0.76 of 0.985 x 1.00",
		"Device to Host, pageable: gpu-to-host GPU0 -> CPU 0.10 GPU0 -> CPU 6.65",
		"Device to Device, pinned: local GPU0 -> GPU0 770.30",
	}
	expect.Must(t, len(f.Benchmarks) == len(want), "got %+v", f.Benchmarks)
	for i, b := range f.Benchmarks {
		got := points(b)
		expect.That(t, got == want[i] && b.Complete && b.GPUNames[0] == "NVIDIA GeForce RTX 3090", "got %s, want %s", got, want[i])
	}
	expect.Equal(t, 10, f.Benchmarks[0].Points[0].Line, "line")
}

// TestBandwidthTestNotJudged checks that the sum of several GPUs, and a GPU in a processor, are not
// compared with a slot.
func TestBandwidthTestNotJudged(t *testing.T) {
	for _, text := range []string{
		strings.ReplaceAll(bandwidthTestOutput, "1 Device(s)", "2 Device(s)"), strings.ReplaceAll(bandwidthTestOutput, "GeForce RTX 3090", "Orin"),
	} {
		for _, b := range texttest.Parse("x.txt", text).Benchmarks {
			expect.That(t, !slices.ContainsFunc(b.Points, func(p facts.BenchmarkPoint) bool { return p.ExpectedGBps != nil }), "got %s", points(b))
		}
	}
}

// TestPerftestGPU checks that a table of a GPU's memory names the GPU, and is compared with what its path carries.
func TestPerftestGPU(t *testing.T) {
	const topology = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\tX\tNV18\tPIX\t0-47\t0\tN/A\nGPU1\tNV18\tX\tSYS\t48-95\t1\tN/A\nNIC0\tPIX\tSYS\tX\n" +
		"\nLegend:\n\n  X    = Self\n  PIX  = Connection traversing at most a single PCIe bridge\n\nNIC Legend:\n\n  NIC0: mlx5_bond_0\n\n"
	const port = "hca_id:\tmlx5_bond_0\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tlink_layer:\t\tEthernet\n\t\t\tactive_width:\t\t2X (16)\n\t\t\tactive_speed:\t\t100.0 Gbps (128)\n\n"
	const table = "allocated GPU buffer address at 00007f6eff000000 pointer=0x7f6eff000000\n                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_bond_0\n Number of qps   : 1\t\tTransport type : IB\n" +
		" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536      1000             124.39             124.38   0.372\n---------------------------------------------------------------------------------------\n"
	for name, tt := range map[string]struct {
		before, gpu, basis string
		threshold          float64
	}{
		"by number":  {"initializing CUDA\nPicking device No. 1\n", "GPU1", "the port of mlx5_bond_0 over a path of type SYS", 0.38},
		"near":       {"Picking device No. 0\n", "GPU0", "the port of mlx5_bond_0 over a path of type PIX", 0.8},
		"by address": {"Listing all CUDA devices in system:\nCUDA device 0: PCIe address is 82:00\nCUDA device 1: PCIe address is E1:00\n\nPicking device No. 1\n", "0000:e1:00.0", "the port of mlx5_bond_0", 0.8},
		"not named":  {"", "", "the port of mlx5_bond_0", 0.8},
	} {
		f := texttest.Parse("x.txt", topology+port+tt.before+table)
		expect.Must(t, len(f.Benchmarks) == 1 && len(f.Benchmarks[0].Points) == 1, "%s: got %+v", name, f.Benchmarks)
		b := f.Benchmarks[0]
		p := b.Points[0]
		expect.That(t, b.Memory == "gpu" && b.QueuePairs == 1 && p.B == tt.gpu && p.Basis == tt.basis && p.Threshold != nil && *p.Threshold == tt.threshold && *p.ExpectedGBps == 25, "%s: got %+v", name, b)
	}
	// The GPU of one table is not that of the next, which is of the host's memory.
	two := texttest.Parse("x.txt", "Picking device No. 1\n"+table+strings.TrimPrefix(table, "allocated GPU buffer address at 00007f6eff000000 pointer=0x7f6eff000000\n"))
	expect.That(t, len(two.Benchmarks) == 2 && two.Benchmarks[1].Memory == "host" && two.Benchmarks[1].Points[0].B == "", "got %+v", two.Benchmarks)
}
