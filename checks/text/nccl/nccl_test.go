package nccl_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// said writes lines as one process of a host would.
func said(host string, lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%s:4021:4077 [0] NCCL INFO %s\n", host, l)
	}
	return b.String()
}

func TestNCCLTransports(t *testing.T) {
	yes, no := true, false
	for text, want := range map[string]facts.Transport{
		said("a", "Ring 00 : 0 -> 1 via P2P/common device"):                                                                                                    {Kind: "p2p-direct", SameHost: &yes, Channels: 1, B: 1},
		said("a", "Ring 01 : 0[3000] -> 1[4000] via P2P/IPC"):                                                                                                  {Kind: "p2p-ipc", SameHost: &yes, Channels: 1, B: 1},
		said("a", "Channel 00 : 0[3000] -> 1[4000] via P2P/direct pointer", "Channel 01 : 0[3000] -> 1[4000] via P2P/direct pointer"):                          {Kind: "p2p-direct", SameHost: &yes, Channels: 2, B: 1},
		said("a", "Channel 00/0 : 2[2] -> 5[5] via P2P/CUMEM/read"):                                                                                            {Kind: "p2p-cumem", SameHost: &yes, Channels: 1, A: 2, B: 5},
		said("a", "Channel 00/0 : 2[2] -> 5[5] via P2P/indirect/3[3]/read"):                                                                                    {Kind: "p2p-indirect", SameHost: &yes, Channels: 1, A: 2, B: 5},
		said("a", "Channel 00/0 : 2[2] -> 5[5] via P2P/MNNVL"):                                                                                                 {Kind: "p2p-mnnvl", Channels: 1, A: 2, B: 5},
		said("a", "Channel 00 : 0[3000] -> 1[4000] via direct shared memory comm 0x7f00 nRanks 02"):                                                            {Kind: "shm", SameHost: &yes, Channels: 1, B: 1},
		said("a", "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct"):                                                                                           {Kind: "shm", SameHost: &yes, Channels: 1, B: 1},
		"Channel 00 : 0[0] -> 1[1] via SHM/direct":                                                                                                             {Kind: "shm", SameHost: &yes, Channels: 1, B: 1},
		said("a", "Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0(6)/GDRDMA(PCI)/Shared"):                                                                     {Kind: "net", Network: "IB", GDR: true, Channels: 1, A: 7, B: 8},
		said("a", "Channel 00/0 : 7[7] -> 8[0] [send] via NET/Socket/0") + said("b", "Channel 00/0 : 7[7] -> 8[0] [receive] via NET/Socket/0"):                 {Kind: "net", Network: "Socket", SameHost: &no, Channels: 1, A: 7, B: 8},
		said("a", "Channel 00/0 : 0[0] -> 1[1] [send] via NET/AWS Libfabric/3/GDRDMA", "Channel 00/0 : 0[0] -> 1[1] [receive] via NET/AWS Libfabric/3/GDRDMA"): {Kind: "net", Network: "AWS Libfabric", GDR: true, SameHost: &yes, Channels: 1, B: 1},
		said("a", "CollNet 00/0 : 3 [send] via COLLNET/SHARP/0/GDRDMA"):                                                                                        {Kind: "collnet", Network: "SHARP", GDR: true, Channels: 1, A: 3, B: 3},
	} {
		f := texttest.Parse("nccl.log", text)
		want.Source, want.Line = "nccl.log", 1
		expect.That(t, f.Logs != nil && len(f.Logs.Transports) == 1 && reflect.DeepEqual(f.Logs.Transports[0], want), "%q:\ngot  %+v\nwant %+v", text, f.Logs, want)
	}
	for _, text := range []string{
		said("a", "Channel 00/24 :    0   1"), said("a", "Ring 00 : 0 -> 1 -> 0"), said("a", "Channel 00/0 : 0[0] -> 1[1] via P2P"),
		said("a", "Channel 00/0 : 0[0] -> "), "The channel goes via NET/IB/0 to the other node.",
	} {
		expect.Len(t, 0, texttest.Sections("nccl.log", text).Logs.Transports, "%q", text)
	}
}

// TestNCCLHostOfRank checks that the host of a rank is known from the line of
// its start, where the log has only one end of a channel.
func TestNCCLHostOfRank(t *testing.T) {
	start := "ncclCommInitRank comm 0x7f%d rank %d nranks 2 cudaDev 0 nvmlDev 0 busId 3000 commId 0x5a - Init START"
	channel := "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0"
	for other, same := range map[string]bool{"a": true, "b": false} {
		f := texttest.Parse("x", said("a", fmt.Sprintf(start, 0, 0))+said(other, fmt.Sprintf(start, 1, 1))+said("a", channel))
		got := f.Logs.Transports
		expect.That(t, len(got) == 1 && got[0].SameHost != nil && *got[0].SameHost == same, "%s: got %+v", other, got)
	}
}

func TestNCCLCommunicators(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []facts.Communicator
	}{
		"2.28, one rank does not end": {"n1:1:5 [0] NCCL INFO ncclCommInitRankConfig comm 0x10 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 3000 commId 0x5a - Init START\n" +
			"n2:1:5 [0] NCCL INFO [Rank 1] ncclCommInitRankConfig comm 0x10 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 3000 commId 0x5a - Init START\n" +
			"n1:1:5 [0] NCCL INFO comm 0x10 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0\n" +
			"n1:1:5 [0] NCCL INFO 16 coll channels, 0 collnet channels, 8 nvls channels, 24 p2p channels, 24 p2p channels per peer\n" +
			"n1:1:5 [0] NCCL INFO ncclCommInitRankConfig comm 0x10 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 3000 commId 0x5a - Init COMPLETE\n", []facts.Communicator{{
			ID: "0x5a", Library: "nccl", Ranks: 2, Nodes: 2, Hosts: []string{"n1", "n2"}, Started: 2, Completed: 1, Line: 1,
		}}},
		"2.12, two one after the other": {"n1:1:5 [0] NCCL INFO 2 coll channels, 4 p2p channels, 2 p2p channels per peer\n" +
			"n1:1:5 [0] NCCL INFO comm 0x10 rank 0 nranks 2 cudaDev 0 busId 3000 - Init COMPLETE\n" +
			"n1:2:6 [1] NCCL INFO comm 0x20 rank 1 nranks 2 cudaDev 1 busId 4000 - Init COMPLETE\n" +
			"n1:1:5 [0] NCCL INFO comm 0x30 rank 0 nranks 2 cudaDev 0 busId 3000 - Init COMPLETE\n", []facts.Communicator{
			{Library: "nccl", Ranks: 2, Hosts: []string{"n1"}, Started: 2, Completed: 2, Line: 2},
			{Library: "nccl", Ranks: 2, Hosts: []string{"n1"}, Started: 1, Completed: 1, Line: 4},
		}},
		"2.4": {
			"n1:1:5 [0] NCCL INFO comm 0x10 rank 0 nranks 1 cudaDev 0 nvmlDev 3 - Init COMPLETE\n",
			[]facts.Communicator{{Library: "nccl", Ranks: 1, Hosts: []string{"n1"}, Started: 1, Completed: 1, Line: 1}},
		},
		"split off, 2.24": {
			"n1:1:5 [0] NCCL INFO ncclCommSplit comm 0x10 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 3000 parent 0x5 splitCount 1 color 0 key 0- Init START\n" +
				"n1:2:5 [0] NCCL INFO ncclCommSplit comm 0x20 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 4000 parent 0x6 splitCount 1 color 0 key 1- Init START\n" +
				"n1:1:5 [0] NCCL INFO ncclCommSplit comm 0x10 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 3000 parent 0x5 splitCount 1 color 0 key 0 - Init COMPLETE\n" +
				"n1:2:5 [0] NCCL INFO ncclCommSplit comm 0x20 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 4000 parent 0x6 splitCount 1 color 0 key 1 - Init COMPLETE\n",
			[]facts.Communicator{{Library: "nccl", Ranks: 2, Hosts: []string{"n1"}, Started: 2, Completed: 2, Line: 1}},
		},
		"RCCL": {
			"RCCL version 2.18.6+hip6.0 HEAD:2f6d59e\n" +
				"n1:1:5 [0] NCCL INFO comm 0x10 rank 0 nranks 1 cudaDev 0 busId 3000 commId 0x77 localSize 224 used 42949 bytes - Init COMPLETE\n",
			[]facts.Communicator{{ID: "0x77", Library: "rccl", Ranks: 1, Hosts: []string{"n1"}, Started: 1, Completed: 1, Line: 2}},
		},
	} {
		f := texttest.Parse("", c.text)
		expect.That(t, f.Logs != nil && reflect.DeepEqual(f.Logs.Communicators, c.want), "%s:\ngot  %+v\nwant %+v", name, f.Logs, c.want)
	}
}

func TestNCCLVersions(t *testing.T) {
	for text, want := range map[string]string{
		"NCCL version 2.21.5+cuda12.4":                                                                      "nccl 2.21.5, cuda-runtime 12.4",
		"n1:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda12.9":                                                 "nccl 2.28.9 on n1, cuda-runtime 12.9 on n1",
		"0: NCCL version 2.8.3rc1+cuda10.2":                                                                 "nccl 2.8.3rc1, cuda-runtime 10.2",
		"n1:1:1 [0] NCCL INFO cudaDriverVersion 12080":                                                      "cuda-driver 12.8 on n1",
		"RCCL version 2.18.6+hip6.0 HEAD:2f6d59e":                                                           "rccl 2.18.6, hip 6.0",
		"RCCL version : 2.21.5-develop:0cbce2a":                                                             "rccl 2.21.5",
		"HIP version  : 6.2.41134-65d174c3e":                                                                "hip 6.2.41134",
		"ROCm version : 6.2.1.0-90-20df1c0":                                                                 "rocm 6.2.1.0",
		"n1:1:1 [0] NCCL INFO Kernel version: 5.15.0-125-generic":                                           "kernel 5.15.0-125-generic on n1",
		"RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:825, unhandled system error, NCCL version 2.7.8": "nccl 2.7.8",
		"This needs NCCL version 2.18.1 or newer.":                                                          "",
		"compiled with NCCL version 2.30.3, but is running with NCCL library version 2.29.7.":               "",
		"n1:1:1 [0] NCCL INFO Using non-device net plugin version 0":                                        "",
	} {
		var got []string
		for _, p := range texttest.Parse("x", text).Software {
			name := p.Name + " " + p.Version
			if p.Host != "" {
				name += " on " + p.Host
			}
			got = append(got, name)
		}
		expect.Equal(t, want, strings.Join(got, ", "), "%q", text)
	}
}

func TestNCCLVariables(t *testing.T) {
	f := texttest.Parse("x", said("a",
		"NCCL_P2P_DISABLE set by environment to 1.", "NCCL_SOCKET_IFNAME set by environment to ^lo,docker0", "NCCL_IB_HCA set to =mlx5_0:1,mlx5_1:1",
		"TUNER/Plugin: NCCL_TUNER_PLUGIN set to /opt/tuner.so", "NCCL_HOSTID set by environment to node.", "P2P Chunksize set to 524288", "Comm config Blocking set to 1",
		"NCCL_NET_GDR_LEVEL set by environment to PHB", "NCCL_IB_TC set by environment to -1."))
	got := expect.Map(f.Env.Variables, func(v facts.Variable) string { return v.Name + "=" + v.Value })
	want := "NCCL_P2P_DISABLE=1 NCCL_SOCKET_IFNAME=^lo,docker0 NCCL_IB_HCA==mlx5_0:1,mlx5_1:1 NCCL_TUNER_PLUGIN=/opt/tuner.so NCCL_HOSTID=node. NCCL_NET_GDR_LEVEL=PHB NCCL_IB_TC=-1"
	expect.Equal(t, want, strings.Join(got, " "), "it")
}

func TestNCCLDevices(t *testing.T) {
	f := texttest.Parse("x", said("a",
		"Bootstrap : Using eth0:10.1.2.3<0>", "Bootstrap: Using N/A:-1",
		"NET/IB : Using [0]mlx5_0:1/IB/SHARP [1]mlx5_bond_0:1/RoCE [RO]; OOB eth0:10.1.2.3<0>",
		"NET/IB: [2] mlx5_7:uverbs7:1/RoCE provider=Mlx5 speed=400000 context=0x55 pciPath=/sys/devices/pci0000:37/0000:37:01.0/0000:3b:00.0 ar=1",
		"NET/Socket : Using [0]eth0:10.1.2.3<0> [1]ib0:fe80::1%ib0<0>")+
		said("b", "NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} ; OOB eth0:10.1.2.4<0>"))
	got := expect.Map(f.NICs.RDMA, func(p facts.RDMAPort) string {
		return fmt.Sprintf("%s/%s:%d %s %g %s %s", p.Host, p.Device, p.Port, p.LinkLayer, p.RateGbps, p.Address, p.State)
	})
	expect.NoDiff(t, []string{
		"a/mlx5_0:1 InfiniBand 0  active", "a/mlx5_bond_0:1 Ethernet 0  active", "a/mlx5_7:1 Ethernet 400 0000:3b:00.0 active",
		"b/mlx5_0:1 InfiniBand 0  active", "b/mlx5_1:1 InfiniBand 0  active",
	}, got, "ports")
	got = expect.Map(f.NICs.Interfaces, func(i facts.Interface) string { return i.Host + "/" + i.Name + " " + strings.Join(i.Addresses, " ") })
	expect.NoDiff(t, []string{"a/eth0 10.1.2.3", "a/ib0 fe80::1", "b/eth0 10.1.2.4"}, got, "addresses")
}

func TestNCCLChoices(t *testing.T) {
	f := texttest.Parse("x", said("a", "Using network AWS Libfabric", "Using network AWS Libfabric", "Setting affinity for GPU 1 to ff,0000000f",
		"ncclTopoGetCpuAffinity: Affinity for GPU 0 is 0-15,64-79. (GPU affinity = 0-15,64-79 ; CPU affinity = 0-127).",
		"ncclTopoGetCpuAffinity: Affinity for GPU 2 is empty, ignoring. (GPU affinity =  ; CPU affinity = 0-31)."))
	expect.NoDiff(t, []facts.NetworkChoice{{Host: "a", Name: "AWS Libfabric", Source: "x", Line: 1, Count: 2}}, f.Logs.Networks, "networks")
	want := []facts.Affinity{{Host: "a", GPU: 1, Mask: "ff,0000000f", CPUs: 12, Source: "x", Line: 3}, {Host: "a", GPU: 0, Mask: "0-15,64-79", CPUs: 32, Source: "x", Line: 4}}
	expect.That(t, reflect.DeepEqual(f.Logs.Affinities, want), "got %+v, want %+v", f.Logs.Affinities, want)
	f = texttest.Parse("x", "hello\nworld\n")
	expect.That(t, f.Logs == nil, "a text without NCCL: got %+v", f.Logs)
}

// TestNCCLHealthyLines checks that lines of healthy runs, alarming as some look, are no complaint.
func TestNCCLHealthyLines(t *testing.T) {
	text := said("a",
		"NET/Plugin: Could not find: libnccl-net.so", "NET/Plugin : No plugin found (libnccl-net.so), using internal implementation",
		"NET/Plugin : dlerror=libnccl-net.so: cannot open shared object file: No such file or directory No plugin found (libnccl-net.so), using internal implementation",
		"NET/Plugin : Plugin load (libnccl-net.so) returned 2 : libnccl-net.so: cannot open shared object file: No such file or directory",
		"TUNER/Plugin: Could not find: libnccl-tuner.so", "PROFILER/Plugin: Could not find: libnccl-profiler.so",
		"NET/Plugin: Failed to find ncclCollNetPlugin symbol (>= v5). ncclCollNetPlugin symbols v4 and lower are not supported.",
		"Failed to initialize NET plugin IB", "NET/IB : No device found.", "Failed to open libibverbs.so[.1]",
		"Could not get speed from /sys/class/net/eth0/speed. Defaulting to 10 Gbps.", "Could not find real path of /sys/class/pci_bus/fffffff/../../fffffff:ff:f",
		"Topology detection : could not read /sys/devices/system/node/node-1/cpumap, ignoring",
		"dlvsym failed on mlx5dv_reg_dmabuf_mr - /lib/libmlx5.so: undefined symbol: mlx5dv_reg_dmabuf_mr, version MLX5_1.25 version MLX5_1.25",
		"KV Convert to int : could not find value of '' in dictionary, falling back to 60", "Attribute coll of node net not found",
		"Call to connect returned Connection refused, retrying", "socketPollConnect: connect to 10.1.2.3<4000> returned Connection refused, retrying (1/34) after sleep for 100 msec",
		"Call to ibv_reg_mr_iova2 failed with error Bad address errno 14", "[Service thread] Connection closed by localRank 0",
		"transport/p2p.cc:300 Cuda failure 1 'invalid argument'", "nvmlDeviceGetNvLinkState() failed: Not Supported",
		"comm 0x10 rank 0 nranks 2 cudaDev 0 busId 3000 - Destroy COMPLETE", "comm 0x10 rank 0 nranks 2 cudaDev 0 busId 3000 - Abort COMPLETE",
		"NVLS multicast support is not available on dev 0", "P2P is disabled between connected GPUs 0 and 1. You can repress this message with NCCL_IGNORE_DISABLED_P2P=1.",
		"RAS client listening socket at ::1<28028>", "AllReduce: opCount 0 sendbuff 0x7f recvbuff 0x7f count 1 datatype 7 op 0 root 0 comm 0x10 [nranks=2] stream 0x5")
	for _, m := range texttest.Parse("x", text).Logs.Messages {
		expect.That(t, m.Role == "setting", "%s (%s): %s", m.ID, m.Role, m.Text)
	}
}

// benchmark are lines as a log of many ranks has them.
var benchmark = []string{
	"node017:40211:40877 [3] NCCL INFO Channel 03/0 : 131[3] -> 132[4] via P2P/CUMEM/read",
	"node017:40211:40877 [3] NCCL INFO Channel 07/0 : 131[3] -> 139[3] [send] via NET/IB/3/GDRDMA",
	"node017:40211:40877 [3] NCCL INFO Channel 07/0 : 123[3] -> 131[3] [receive] via NET/IB/3/GDRDMA",
	"node017:40211:40877 [3] NCCL INFO Trees [0] 132/-1/-1->131->130 [1] 132/-1/-1->131->130 [2] 132/-1/-1->131->130 [3] 132/-1/-1->131->130",
	"node017:40211:40877 [3] NCCL INFO Connected to proxy localRank 3 -> connection 0x7f23a4003e60",
	"node017:40211:40877 [3] NCCL INFO P2P Chunksize set to 131072",
	"node017:40211:40902 [3] NCCL INFO New proxy send connection 14 from local rank 3, transport 2",
	"node017:40211:40877 [3] NCCL INFO NCCL_IB_HCA set to mlx5",
}

func FuzzNCCL(f *testing.F) {
	for _, l := range benchmark {
		f.Add(l)
	}
	f.Add("n1:1:5 [0] NCCL INFO comm 0x10 rank 0 nranks 1 cudaDev 0 nvmlDev 3 - Init COMPLETE\nRCCL version 2.18.6+hip6.0")
	f.Add(said("a", "NET/IB : Using [0]={[0] mlx5_0:1/IB} ; OOB eth0:10.1.2.4<0>", "Setting affinity for GPU 0 to ff", "16 coll channels, 24 p2p channels"))
	f.Add("n1:1:5 [0] NCCL INFO comm 0x10 rank 1 nranks 4 cudaDev 0 nvmlDev 3\nn1:1:5 [0] NCCL INFO comm 0x10 rank 0 nranks 0")
	f.Add("a:1:2 [0] misc/socket.cc:58 (f) NCCL WARN socketProgress: Connection closed by remote peer b<4>")
	f.Fuzz(func(t *testing.T, text string) {
		f := texttest.Sections("x", text)
		lines := strings.Count(text, "\n") + 1
		n := len(f.Logs.Communicators) + len(f.Logs.Transports) + len(f.Logs.Networks) + len(f.Logs.Affinities)
		expect.That(t, n <= lines, "%d facts of %d lines", n, lines)
		for _, c := range f.Logs.Communicators {
			expect.That(t, c.Completed <= c.Started && c.Started <= c.Ranks && c.Ranks != 0, "%+v", c)
		}
	})
}

// TestUnequal checks which settings of two ranks are told to differ.
func TestUnequal(t *testing.T) {
	rank := func(n int, settings ...string) string {
		var b strings.Builder
		for _, l := range settings {
			fmt.Fprintf(&b, "a:40%d:40%d [%d] NCCL INFO %s\n", n, n, n, l)
		}
		return b.String()
	}
	start := func(n int, id, what string) string {
		return rank(n, fmt.Sprintf("ncclCommInitRank comm 0x7%d rank %d nranks 2 cudaDev %d nvmlDev %d busId 3000 commId %s - Init %s", n, n, n, n, id, what))
	}
	set := func(name, value string) string { return name + " set by environment to " + value + "." }
	for _, c := range []struct{ what, text, want string }{
		{"equal", start(0, "0x5", "START") + start(1, "0x5", "START") + rank(0, set("NCCL_PROTO", "1")) + rank(1, set("NCCL_PROTO", "1")), ""},
		{"different", start(0, "0x5", "START") + start(1, "0x5", "START") + rank(0, set("NCCL_P2P_DISABLE", "1")) + rank(1, set("NCCL_P2P_DISABLE", "0")), "NCCL_P2P_DISABLE 0=1 1=0"},
		{"set before the start", rank(0, set("NCCL_P2P_DISABLE", "1")) + start(0, "0x5", "START") + start(1, "0x5", "START") + rank(1, set("NCCL_P2P_DISABLE", "0")), "NCCL_P2P_DISABLE 0=1 1=0"},
		{"not set, and started", rank(0, set("NCCL_ALGO", "1")) + start(0, "0x5", "START") + start(1, "0x5", "COMPLETE"), "NCCL_ALGO 0=1 1 unset"},
		{"not set so far", rank(0, set("NCCL_ALGO", "1")) + start(0, "0x5", "START") + start(1, "0x5", "START"), ""},
		{"two jobs", start(0, "0x5", "START") + start(1, "0x6", "START") + rank(0, set("NCCL_ALGO", "1")) + rank(1, set("NCCL_ALGO", "0")), ""},
	} {
		var got []string
		for _, u := range texttest.Parse("nccl.log", c.text).Logs.Unequal {
			got = append(got, u.Name)
			for _, v := range u.Values {
				if v.Set {
					got = append(got, fmt.Sprintf("%d=%s", v.Rank, v.Value))
				} else {
					got = append(got, fmt.Sprintf("%d unset", v.Rank))
				}
			}
		}
		expect.That(t, strings.Join(got, " ") == c.want, "%s: got %q, want %q", c.what, got, c.want)
	}
}

// TestUnequalOfSeveralTexts checks that of several communicators that begin at the same line of their texts it is always
// the same one that counts.
func TestUnequalOfSeveralTexts(t *testing.T) {
	for range 32 {
		r := text.NewReading()
		for _, host := range []string{"b", "c", "a"} {
			texttest.Text(r, host+".log", strings.ReplaceAll(
				"HOST:401:401 [0] NCCL INFO ncclCommInitRank comm 0x70 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 3000 commId 0xHOST - Init START\n"+
					"HOST:402:402 [1] NCCL INFO ncclCommInitRank comm 0x71 rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 4000 commId 0xHOST - Init COMPLETE\n"+
					"HOST:401:401 [0] NCCL INFO NCCL_ALGO set by environment to HOST.\n", "HOST", host))
		}
		got := r.Finish().Logs.Unequal
		expect.Must(t, len(got) == 1 && got[0].Values[0].Source == "a.log", "got %+v", got)
	}
}
