package texttest

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// LspciVerbose is a root port and a GPU below it, from lspci -vvv.
const LspciVerbose = `00:01.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] Starship/Matisse GPP Bridge (prog-if 00 [Normal decode])
	Control: I/O+ Mem+ BusMaster+ SpecCycle-
	Status: Cap+ 66MHz- UDF- FastB2B-
	NUMA node: 1
	IOMMU group: 14
	Bus: primary=00, secondary=01, subordinate=01, sec-latency=0
	Capabilities: [58] Express (v2) Root Port (Slot+), MSI 00
		DevCap:	MaxPayload 512 bytes, PhantFunc 0
		DevCtl:	CorrErr+ NonFatalErr+ FatalErr+ UnsupReq+
			RlxdOrd+ ExtTag+ PhantFunc- AuxPwr- NoSnoop+
			MaxPayload 256 bytes, MaxReadReq 512 bytes
		LnkCap:	Port #0, Speed 16GT/s, Width x16, ASPM L1, Exit Latency L1 <64us
		LnkSta:	Speed 2.5GT/s (downgraded), Width x8 (downgraded)
	Capabilities: [2a0 v1] Access Control Services
		ACSCap:	SrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+
		ACSCtl:	SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
	Kernel driver in use: pcieport

01:00.0 VGA compatible controller: NVIDIA Corporation AD102 [GeForce RTX 4090] (rev a1) (prog-if 00 [VGA controller])
	Control: I/O+ Mem+ BusMaster+ SpecCycle-
	Status: Cap+ 66MHz- UDF- FastB2B-
	Region 0: Memory at b2000000 (32-bit, non-prefetchable) [size=16M]
	Region 1: Memory at 28800000000 (64-bit, prefetchable) [size=256M]
	Region 3: Memory at <unassigned> (64-bit, prefetchable)
	Region 5: I/O ports at 3000 [size=128]
	Capabilities: [78] Express (v2) Legacy Endpoint, MSI 00
		LnkCap:	Port #0, Speed 16GT/s, Width x16, ASPM L0s L1
		LnkSta:	Speed 2.5GT/s (downgraded), Width x8 (downgraded)
	Capabilities: [bb0 v1] Physical Resizable BAR
		BAR 0: current size: 16MB, supported: 16MB
		BAR 1: current size: 256MB, supported: 64MB 128MB 256MB 512MB 1GB 2GB 4GB 8GB 16GB 32GB
	Capabilities: [e00 v1] Address Translation Service (ATS)
		ATSCtl:	Enable+, Smallest Translation Unit: 00
	Kernel driver in use: nvidia
	Kernel modules: nvidiafb, nouveau
`

// NvsmiTableText is nvidia-smi's table.
const NvsmiTableText = `$ nvidia-smi
Tue Mar  3 10:12:44 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:1B:00.0 Off |                    3 |
| N/A   33C    P0             62W /  400W |    1024MiB /  81920MiB |     12%   E. Process |
|                                         |                        |            Disabled* |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA A100-SXM4-80GB          Off |   00000000:1C:00.0 Off |                 ERR! |
| N/A   33C    P0             62W /  400W |       0MiB /  81920MiB |      0%      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A            7713      C   /opt/venv/bin/python3                   1016MiB |
+-----------------------------------------------------------------------------------------+
`

// NCCLTestsTable is the output of all_reduce_perf.
const NCCLTestsTable = `$ ./build/all_reduce_perf -b 32M -e 64M -f 2 -g 2
# nThread 1 nGpus 2 minBytes 33554432 maxBytes 67108864 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   2214 on node7 device  0 [0x53] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   2214 on node7 device  1 [0x64] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
node7:2214:2214 [0] NCCL INFO Launch mode Parallel
    33554432       8388608     float     sum      -1    911.2   36.82   36.82      0    912.0   36.79   36.79      3
    67108864      16777216     float     sum      -1   1800.0   37.28   37.28      0   1801.0   37.26   37.26    N/A
# Out of bounds values : 3 FAILED
# Avg bus bandwidth    : 37.0375
#
`

// PCIDevice returns a PCI function of a text's facts.
func PCIDevice(t *testing.T, f *facts.Facts, address string) facts.PCIDevice {
	t.Helper()
	if f.PCI != nil {
		for _, d := range f.PCI.Devices {
			if d.Address == address {
				return d
			}
		}
	}
	t.Fatalf("no function %s in %+v", address, f.PCI)
	return facts.PCIDevice{}
}
