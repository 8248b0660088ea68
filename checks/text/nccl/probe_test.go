package nccl_test

import (
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/collective"
	"github.com/gpudoctor/gpudoctor/checks/text/nccl"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestRead checks what is taken from the log of the probe's own ranks.
func TestRead(t *testing.T) {
	t.Parallel()
	log := `node:7:8 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>
node:7:8 [0] NCCL INFO Using network Socket
node:7:8 [0] NCCL INFO ncclCommInitRank comm 0x55 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 6000 commId 0x9a - Init START
node:7:8 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
node:7:8 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM
node:9:9 [1] NCCL INFO Channel 00/0 : 1[1] -> 0[0] via SHM/direct/direct

node:9:9 [1] transport/p2p.cc:250 NCCL WARN Cuda failure 'peer access is not supported'
node:9:9 [1] transport/p2p.cc:250 NCCL WARN Cuda failure 'peer access is not supported'
node:7:8 [0] NCCL INFO 2 coll channels, 2 collnet channels, 16 nvls channels, 2 p2p channels, 2 p2p channels per peer
node:7:8 [0] NCCL INFO ncclCommInitRank comm 0x55 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 6000 commId 0x9a - Init COMPLETE
`
	expect.NoDiff(t, collective.Log{
		Transports: []probe.CollectiveTransport{{A: 0, B: 1, Kind: "p2p-cumem", Channels: 2}, {A: 1, B: 0, Kind: "shm", Channels: 1}},
		Channels:   map[string]int{"coll": 2, "collnet": 2, "nvls": 16, "p2p": 2}, Network: "Socket", Devices: []string{"eth0"},
		Warnings: []string{"Cuda failure 'peer access is not supported'"},
	}, nccl.Read(log, false), "it")
	adapters := nccl.Read("node:7:8 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.1.2.3<0>\n", false)
	expect.NoDiff(t, []string{"mlx5_0:1", "mlx5_1:1"}, adapters.Devices, "the adapters, and not the interface of the rendezvous")
}

// TestReadMessages checks that the warnings of ranks that failed are messages of the catalogue, without the host and
// the process, and that those of ranks that work are not.
func TestReadMessages(t *testing.T) {
	t.Parallel()
	log := `node:7:8 [0] NCCL INFO Using network Socket

node:7:8 [0] misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-AbC123 to 9637892 bytes, error: No space left on device (28)
node:9:9 [1] misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-AbC123 to 9637892 bytes, error: No space left on device (28)
node:9:9 [1] misc/widget.cc:12 NCCL WARN The widget is at odds with itself
`
	works := nccl.Read(log, false)
	expect.That(t, len(works.Warnings) == 2 && len(works.Messages) == 0, "ranks that work: %+v", works)
	got := nccl.Read(log, true).Messages
	expect.Must(t, len(got) == 2 && got[0].ID == "nccl-shm-no-space" && got[1].ID == "nccl-warning", "got %+v", got)
	m := got[0]
	if m.Role != "cause" || m.Host != "" || m.PID != 0 || m.Device == nil || *m.Device != 0 || m.Place == nil || m.Place.Area != "shm" || m.Fields["bytes"] != "9637892" || !strings.HasPrefix(m.Text, "misc/shmutils.cc:87 NCCL WARN") {
		t.Errorf("got %+v, place %+v", m, m.Place)
	}
}

// FuzzRead checks the bounds of what is taken.
func FuzzRead(f *testing.F) {
	f.Add("node:7:8 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n")
	f.Fuzz(func(t *testing.T, text string) {
		l := nccl.Read(text, true)
		expect.That(t, len(l.Messages) <= len(l.Warnings) && len(l.Transports) <= 256 && len(l.Warnings) <= 8 && len(l.Network) <= 64+strings.Count(text, ""), "%d transports, %d warnings", len(l.Transports), len(l.Warnings))
	})
}
