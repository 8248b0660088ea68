package benchmark_test

import (
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestNCCLTests(t *testing.T) {
	f := texttest.Parse("x.txt", texttest.NCCLTestsTable)
	expect.Must(t, len(f.Benchmarks) == 1, "got %d tables", len(f.Benchmarks))
	b := f.Benchmarks[0]
	points := b.Points
	b.Points = nil
	wrong := int64(3)
	expect.NoDiff(t, facts.Benchmark{
		Tool: "nccl-tests", Test: "all_reduce", What: "collective", Ranks: 2, Nodes: 1,
		GPUNames: []string{"NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"}, Wrong: &wrong, Complete: true, Source: "x.txt", Line: 2, Lines: map[string]int{"wrong": 14},
	}, b, "it")
	expect.That(t, len(points) == 2 && points[1].Bytes == 64<<20 && *points[1].GBps == 37.28 && *points[1].ExpectedGBps == 450, "got %+v", points)
}

// TestNCCLTestsOldLayouts checks the rows of NCCL 1 and 2.4, and a table that broke off.
func TestNCCLTestsOldLayouts(t *testing.T) {
	for row, want := range map[string]float64{
		"     8388608       2097152   float     sum    162.0   51.79   90.63    N/A    160.0   52.44   91.77    N/A":         91.77,
		"     8388608       2097152   float     sum    162.0   51.79   90.63  5e-07    160.0   52.44   89.77  5e-07":         90.63,
		"     8388608       2097152   float    none       0    162.0   51.79   90.63      0    160.0   52.44   89.77      0": 90.63,
	} {
		f := texttest.Parse("x.txt", "nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor)\n# Using devices\n"+row+"\n^C\n")
		expect.That(t, len(f.Benchmarks) == 1 && len(f.Benchmarks[0].Points) == 1 && *f.Benchmarks[0].Points[0].GBps == want && !f.Benchmarks[0].Complete, "%s: got %+v", row, f.Benchmarks)
	}
}

const p2pBandwidthTable = `[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device=0 CAN Access Peer Device=1
Device=1 CANNOT Access Peer Device=0

P2P Connectivity Matrix
     D\D     0     1
     0	     1     1
     1	     0     1
Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\D     0      1 
     0 3909.92  36.53 
     1  37.12 4000.96 
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\D     0      1 
     0 3964.48 363.14 
     1 391.89 3992.97 
P2P=Enabled Latency (P2P Writes) Matrix (us)
   GPU     0      1 
     0   1.72   3.41 
     1   3.34   1.84 

   CPU     0      1 
     0   4.52   7.01 
     1   6.77   4.25 
`

func TestP2PBandwidth(t *testing.T) {
	f := texttest.Parse("x.txt", p2pBandwidthTable)
	got := expect.Map(f.Benchmarks, func(b facts.Benchmark) string { return b.What + " " + b.Points[0].A + " " + b.Points[0].B })
	expect.NoDiff(t, []string{"copy GPU0 GPU1", "copy GPU0 GPU1", "latency GPU0 GPU1"}, got, "it")
	expect.That(t, !*f.Benchmarks[0].P2P && *f.Benchmarks[1].P2P && *f.Benchmarks[1].Points[0].GBps == 363.14 && *f.Benchmarks[2].Points[1].Microseconds == 3.34, "got %+v", f.Benchmarks)
	want := []facts.GPUPeer{{A: "GPU0", B: "GPU1", Read: "ok", Write: "ok"}, {A: "GPU1", B: "GPU0", Read: "not-supported", Write: "not-supported"}}
	expect.NoDiff(t, want, f.GPUs.P2P, "it")
}

func TestSimpleP2P(t *testing.T) {
	f := texttest.Parse("x.txt", `> Peer access from NVIDIA L4 (GPU0) -> NVIDIA L4 (GPU1) : Yes
> Peer access from NVIDIA L4 (GPU1) -> NVIDIA L4 (GPU0) : No
cudaMemcpyPeer / cudaMemcpy between GPU0 and GPU1: 19.87GB/s
Verification error @ element 1: val = 0.000000, ref = 4.000000
Verification error @ element 2: val = 0.000000, ref = 8.000000
Test failed!
`)
	expect.That(t, len(f.Benchmarks) == 1 && *f.Benchmarks[0].Wrong == 2 && *f.Benchmarks[0].Points[0].GBps == 19.87 && len(f.GPUs.P2P) == 2, "got %+v", f.Benchmarks)
}

const nvbandwidthTable = `Running device_to_device_memcpy_write_ce.
memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    396.43
 1    390.00       N/A

SUM device_to_device_memcpy_write_ce 786.43
`

func TestNVBandwidth(t *testing.T) {
	f := texttest.Parse("x.txt", nvbandwidthTable)
	expect.Must(t, len(f.Benchmarks) == 1, "got %+v", f.Benchmarks)
	b := f.Benchmarks[0]
	expect.That(t, b.What == "copy" && b.Test == "device_to_device_memcpy_write_ce" && b.Complete && len(b.Points) == 2 && b.Points[0].A == "GPU1" && b.Points[0].B == "GPU0" && *b.Points[0].GBps == 396.43, "got %+v", b)
}

// TestPerftestExpected checks what a bandwidth between machines is measured by.
func TestPerftestExpected(t *testing.T) {
	const port = "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tLink layer: InfiniBand\n\n"
	table := func(before, title string) string {
		return port + before + "                    " + title + ` BW Test
 Dual-port       : OFF		Device         : mlx5_0
 Mtu             : 4096[B]
 Link type       : IB
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 4096       5000             20.12             20.00               0.701904
 65536      5000             160.12             160.00               0.701904
---------------------------------------------------------------------------------------
`
	}
	for name, tt := range map[string]struct {
		text, memory, basis string
		expected            float64
	}{
		"host":           {table("", "RDMA_Write"), "host", "the port of mlx5_0", 50},
		"both ways":      {table("", "RDMA_Write Bidirectional"), "host", "the port of mlx5_0 in both directions", 100},
		"CUDA":           {table("allocated GPU buffer of a 131072 address at 0x7f00 for type CUDA_MEM_DEVICE\n", "Send"), "gpu", "the port of mlx5_0", 50},
		"CUDA, older":    {table("cuMemAlloc() of a 131072 bytes GPU buffer\n", "RDMA_Write"), "gpu", "the port of mlx5_0", 50},
		"ROCm":           {table("Using ROCm Device with ID: 0, Name: AMD Instinct MI300X, PCI Bus ID: 0x5, GCN Arch: gfx942\n", "RDMA_Write"), "gpu", "the port of mlx5_0", 50},
		"reads are free": {table("", "RDMA_Read"), "host", "", 0},
	} {
		f := texttest.Parse("x.txt", tt.text)
		expect.Must(t, len(f.Benchmarks) == 1 && len(f.Benchmarks[0].Points) == 2 && len(f.NICs.RDMA) == 1, "%s: got %+v, %+v", name, f.Benchmarks, f.NICs)
		b := f.Benchmarks[0]
		small, large := b.Points[0], b.Points[1]
		got := 0.0
		if large.ExpectedGBps != nil {
			got = *large.ExpectedGBps
		}
		expect.That(t, f.NICs.RDMA[0].MTU == 4096 && b.Complete && b.Memory == tt.memory && got == tt.expected && large.Basis == tt.basis && small.ExpectedGBps == nil, "%s: got %+v", name, b)
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

// FuzzBenchmarks checks that what is read of any text is bounded and sound.
func FuzzBenchmarks(f *testing.F) {
	for _, seed := range []string{
		texttest.NCCLTestsTable, p2pBandwidthTable, nvbandwidthTable, peerChecksHIP,
		strings.Repeat("copy cuda:0 -> cuda:1 mismatch\n", 3),
		"Picking device No. 1\nCUDA device 1: PCIe address is E1:00\nallocated GPU buffer\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all := texttest.Parse("x", text).Benchmarks
		expect.That(t, len(all) <= parse.MaxEntries, "%d tables", len(all))
		for _, b := range all {
			for _, p := range b.Points {
				expect.That(t, (p.GBps == nil || *p.GBps >= 0) && p.Bytes >= 0 && p.Line >= 1, "got %+v", p)
			}
		}
	})
}

func TestCUDADevices(t *testing.T) {
	for line, want := range map[string]string{
		"Device: 1, NVIDIA H200, pciBusID: 0, pciDeviceID: a, pciDomainID:0":                            "0000:00:0a.0",
		"Device 0: NVIDIA H200 (00000000:00:06)":                                                        "0000:00:06.0",
		"#  Rank  0 Group  0 Pid   2214 on ip-10-40-12-77 device  0 [0000:53:00] NVIDIA H100 80GB HBM3": "0000:53:00.0",
		"#   Rank  0 Pid  41706 on    labws02 device  0 [0x01] NVIDIA RTX A6000":                        "",
		"Device: 1, NVIDIA H200, pciBusID: zz, pciDeviceID: a, pciDomainID:0":                           "",
	} {
		gpus := texttest.Sections("x", line).GPUs.Devices
		expect.Equal(t, want, append(gpus, facts.GPU{})[0].Address, "%q", line)
	}
}

// Processes of a build without MPI write one list each; two runs, one after the other, are something else.
func TestNCCLTestsAlone(t *testing.T) {
	device := "#  Rank  0 Group  0 Pid   2214 on node7 device  0 [0x53] NVIDIA H100 80GB HBM3\n"
	head := "# nThread 1 nGpus 1 minBytes 8 maxBytes 128\n# Using devices\n"
	for text, want := range map[string]int{
		head + device + device + device: 3,
		head + device + head + device:   2,
		head + device:                   0,
		head + device + "node7:1:1 [0] NCCL INFO cudaDriverVersion 12040\n" + head + device: 0,
	} {
		got := texttest.Parse("x.txt", text).Benchmarks
		expect.That(t, len(got) > 0 && got[0].Jobs == want, "%q: want %d processes of rank 0, got %v", text, want, got)
	}
}

const peerChecksHIP = `$ ./hip_p2p_min
GPU count: 2

[Step 1] hipDeviceCanAccessPeer matrix
0 -> 0 : 0
0 -> 1 : 1
1 -> 0 : 0
1 -> 1 : 0

[Step 2] Enable peer access
Enabled peer access from GPU 0 to GPU 1

[Step 3] Do one hipMemcpyPeerAsync
P2P copy success: GPU 0 -> GPU 1, bytes = 67108864
`

func TestPeerMatrix(t *testing.T) {
	f := texttest.Parse("x.txt", peerChecksHIP)
	got := expect.Map(f.GPUs.P2P, func(p facts.GPUPeer) string { return p.A + ">" + p.B + " " + p.Read })
	expect.NoDiff(t, []string{"GPU0>GPU1 ok", "GPU1>GPU0 not-supported"}, got, "it")
	expect.That(t, len(f.GPUs.Devices) == 2 && f.GPUs.Devices[0].Vendor == "amd", "got %+v", f.GPUs.Devices)
	expect.That(t, len(f.Benchmarks) == 1 && f.Benchmarks[0].Wrong == nil && f.Benchmarks[0].Points[0].B == "GPU1", "got %+v", f.Benchmarks)
}

func TestPeerCopy(t *testing.T) {
	for line, want := range map[string]string{
		"copy cuda:0 -> cuda:1 : max abs diff 3.9921875, all zeros on target: True": "wrong",
		"copy cuda:0 -> cuda:1 : max abs diff 0.0, all zeros on target: False":      "right",
		"Copy from GPU 0 to GPU 1: MISMATCH":                                        "wrong",
		"memcpy GPU0 -> GPU1: 12 mismatches: 12":                                    "wrong",
		"copied GPU 2 -> GPU 3, mismatches=0":                                       "right",
		"P2P copy success: GPU 0 -> GPU 1, bytes = 67108864":                        "not compared",
		"Enabled peer access from GPU 0 to GPU 1":                                   "",
		"transfer GPU 0 -> GPU 1 took 3 ms":                                         "",
		"copying layer 12 from cuda:0 to cuda:1":                                    "",
	} {
		got := ""
		for _, b := range texttest.Parse("x.txt", line+"\n").Benchmarks {
			switch {
			case b.Wrong == nil:
				got = "not compared"
			case *b.Wrong > 0:
				got = "wrong"
			default:
				got = "right"
			}
		}
		expect.NoDiff(t, want, got, "%s", line)
	}
}
