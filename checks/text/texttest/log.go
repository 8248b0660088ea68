package texttest

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// initLines are what one rank of eight writes while it makes a communicator, as NCCL
// 2.28 wrote it on eight H200 with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=ALL, and how
// often. # is which time it is, and @ is the rank.
var initLines = []struct {
	times int
	line  string
}{
	{1, "cudaDriverVersion 13000"},
	{1, "NCCL version 2.28.9+cuda13.0"},
	{1, "NET/Plugin: Could not find: libnccl-net.so"},
	{1, "dlvsym failed on mlx5dv_reg_dmabuf_mr - /lib/x86_64-linux-gnu/libmlx5.so: undefined symbol: mlx5dv_reg_dmabuf_mr, version MLX5_1.25 version MLX5_1.25"},
	{1, "NET/IB : No device found."},
	{1, "NET/IB : Using [RO]; OOB eth0:192.0.2.2<0>"},
	{1, "Failed to initialize NET plugin IB"},
	{1, "NET/Socket : Using [0]eth0:192.0.2.2<0>"},
	{1, "Initialized NET plugin Socket"},
	{1, "Assigned NET plugin Socket to comm"},
	{1, "Using network Socket"},
	{1, "ncclCommInitRankConfig comm 0x5584a0@ rank @ nranks 8 cudaDev @ nvmlDev @ busId 60000 commId 0x9a41c07be2d6f318 - Init START"},
	{1, "NCCL_NVLS_ENABLE set by environment to 0."},
	{3, "Could not get speed from /sys/class/net/eth0/speed. Defaulting to 10 Gbps."},
	{3, "Topology detection : could not read /sys/devices/pci0000:00/0000:00:0@.0/max_link_speed, ignoring"},
	{1, "NET/Socket : GPU Direct RDMA Disabled for HCA 0 'eth0'"},
	{1, "=== System : maxBw 370.8 totalBw 370.8 ==="},
	{7, "+ PCI[48.0] - GPU/0-#0 (@)"},
	{7, "              + NVL[370.8] - NVS/0-0"},
	{5, "GPU/0-80 :GPU/0-60 (2/370.8/NVL) GPU/0-70 (2/370.8/NVL) GPU/0-80 (0/5000.0/LOC) GPU/0-90 (2/370.8/NVL) CPU/0-ffffffffffffff (1/48.0/PHB)"},
	{1, "ncclTopoGetCpuAffinity: Affinity for GPU @ is empty, ignoring. (GPU affinity =  ; CPU affinity = 0-95)."},
	{2, "Pattern 4, crossNic 0, nChannels 12, bw 30.000000/30.000000, type NVL/PIX, sameChannels 1"},
	{15, " # : GPU/0-60 GPU/0-70 GPU/0-80 GPU/0-90 GPU/0-a0 GPU/0-b0 GPU/0-c0 GPU/0-d0"},
	{1, "comm 0x5584a0@ rank @ nRanks 8 nNodes 1 localRanks 8 localRank @ MNNVL 0"},
	{16, "Ring # : 7 -> @ -> 1"},
	{1, "Trees [0] 1/-1/-1->@->-1 [1] 1/-1/-1->@->-1 [2] 1/-1/-1->@->-1 [3] 1/-1/-1->@->-1"},
	{1, "P2P Chunksize set to 524288"},
	{21, "New proxy send connection # from local rank @, transport 0"},
	{20, "New proxy recv connection # from local rank @, transport 0"},
	{41, "Connected to proxy localRank @ -> connection 0x7f6b68004f#0"},
	{37, "Allocated shareable buffer 0x7f1c0040#000 size 10485760 ipcDesc 0x7f1ba4008bb0"},
	{37, "Imported shareable buffer device @ size 10485760 ptr 0xa0a6#0000"},
	{19, "UDS converted handle 0x7f50a8008c#0 to fd 112 on remote peer @"},
	{10, "Channel #/0 : @[@] -> 1[1] via P2P/CUMEM"},
	{9, "Channel #/0 : @[@] -> 0[0] via P2P/IPC"},
	{1, "24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p channels, 32 p2p channels per peer"},
	{1, "ncclCommInitRankConfig comm 0x5584a0@ rank @ nranks 8 cudaDev @ nvmlDev @ busId 60000 commId 0x9a41c07be2d6f318 - Init COMPLETE"},
}

// AllSubsystems is the log of a number of hosts of eight GPUs with all subsystems of
// NCCL, one host after the other.
func AllSubsystems(hosts int) []byte {
	var b bytes.Buffer
	for host := range hosts {
		for _, form := range initLines {
			for i := range form.times * 8 {
				rank := strconv.Itoa(i % 8)
				line := strings.NewReplacer("#", fmt.Sprintf("%02d", i/8), "@", rank).Replace(form.line)
				fmt.Fprintf(&b, "node%d:281%s:281%s [%s] NCCL INFO %s\n", host, rank, rank, rank, line)
			}
		}
	}
	return b.Bytes()
}
