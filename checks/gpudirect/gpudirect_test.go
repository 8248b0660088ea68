package gpudirect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/attempt"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/drivers"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

func TestMain(m *testing.M) {
	child.Main()
	os.Exit(m.Run())
}

// alive is a machine whose questions are answered by whoever asks.
type alive struct{ host.Memory }

func (*alive) Recorded() bool { return false }

func (*alive) Ask(ctx context.Context, _ string, by host.Answerer) (json.RawMessage, error) {
	v, err := by(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// on is a machine with GPUs and NICs after a probe.
func on(mode probe.Mode, gpus, nics int) *facts.Facts {
	f := &facts.Facts{Transfers: &probe.Report{Mode: mode, API: "cuda"}, NICs: &facts.NICFacts{}, Links: &facts.LinkFacts{}}
	for i := range gpus {
		f.Transfers.Devices = append(f.Transfers.Devices, probe.Device{Address: fmt.Sprintf("0000:%02x:00.0", 6+i), Outcome: probe.OK})
	}
	for i := range nics {
		f.NICs.RDMA = append(f.NICs.RDMA, facts.RDMAPort{Device: fmt.Sprintf("mlx5_%d", i), Port: 1, Address: fmt.Sprintf("0000:%02x:00.0", 0x80+i), State: "active"})
	}
	return f
}

// run runs the check on a source and returns what it wrote, with what is unknown.
func run(t *testing.T, src host.Source, f *facts.Facts) (*facts.GPUDirectFacts, []facts.Unknown) {
	t.Helper()
	own := *f
	g := checktest.On(src, &own)
	expect.NoError(t, Check.Gather(t.Context(), g))
	return own.GPUDirect, g.Unknowns()
}

// simulate has children load the simulated libraries.
func simulate(t *testing.T, env map[string]string) {
	t.Helper()
	t.Setenv("LD_LIBRARY_PATH", drivers.Build(t, "verbs")+":"+drivers.Build(t, "cuda"))
	for name, value := range env {
		t.Setenv(name, value)
	}
}

// words are the outcomes of a NIC in short: "mlx5_0 host=ok 0000:06:00.0=ok/refused".
func words(d *facts.GPUDirectFacts) string {
	of := func(a *facts.Attempt) string {
		if a == nil {
			return "unknown"
		}
		return strings.Join(slices.DeleteFunc([]string{a.Outcome, a.Errno}, func(s string) bool { return s == "" }), " ")
	}
	var b strings.Builder
	for _, n := range d.NICs {
		fmt.Fprintf(&b, "%s host=%s", n.Device, of(n.Host))
		for _, g := range n.GPUs {
			fmt.Fprintf(&b, " %s=%s/%s", strings.TrimSuffix(strings.TrimPrefix(g.Address, "0000:"), ":00.0"), of(g.DMABuf), of(g.Peermem))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestRegistrations checks the facts that follow from each behavior of the libraries, that what is unknown has a
// reason and no outcome, and that a recording replays all of it.
func TestRegistrations(t *testing.T) {
	for _, tt := range []struct{ verbs, cuda, want, reason string }{
		{"", "", "mlx5_0 host=ok 06=ok/ok\nmlx5_1 host=ok 07=ok/ok\n", ""},
		{"error-peermem=14", "", "mlx5_0 host=ok 06=ok/refused EFAULT\nmlx5_1 host=ok 07=ok/refused EFAULT\n", ""},
		{"error-peermem=14,error-dmabuf-mr=95@0", "", "mlx5_0 host=ok 06=refused EOPNOTSUPP/refused EFAULT\nmlx5_1 host=ok 07=ok/refused EFAULT\n", ""},
		{"error-peermem=14", "no-dmabuf", "mlx5_0 host=ok 06=refused CUDA_ERROR_NOT_SUPPORTED/refused EFAULT\nmlx5_1 host=ok 07=refused CUDA_ERROR_NOT_SUPPORTED/refused EFAULT\n", ""},
		{"error-host=12", "", "mlx5_0 host=refused ENOMEM 06=ok/ok\nmlx5_1 host=refused ENOMEM 07=ok/ok\n", ""},
		{"error-open=13@*>1", "", "mlx5_0 host=ok 06=ok/ok\nmlx5_1 host=refused EACCES 07=unknown/unknown\n", "the device could not be used: ibv_open_device: EACCES: mlx5_1"},
		{"crash-dmabuf-mr@0", "", "mlx5_0 host=ok 06=unknown/ok\nmlx5_1 host=ok 07=ok/ok\n", "ibv_reg_dmabuf_mr crashed: SIGSEGV: mlx5_0"},
		{"", "error-init=802", "mlx5_0 host=ok 06=unknown/unknown\nmlx5_1 host=ok 07=unknown/unknown\n", "CUDA_ERROR_SYSTEM_NOT_READY"},
	} {
		t.Run(tt.verbs+" "+tt.cuda, func(t *testing.T) {
			simulate(t, map[string]string{"GPUDOCTOR_SIM_NICS": "2", "GPUDOCTOR_SIM_VERBS_FAULT": tt.verbs, "GPUDOCTOR_SIM_CUDA_FAULT": tt.cuda})
			f := on(probe.Full, 2, 2)
			recorded, recording := host.New(&alive{}).Record()
			g := checktest.On(nil, f)
			g.Host = recorded
			expect.NoError(t, Check.Gather(t.Context(), g))
			got, unknown := f.GPUDirect, g.Unknowns()
			expect.That(t, words(got) == tt.want, "got\n%swant\n%s%v", words(got), tt.want, unknown)
			reasons := fmt.Sprint(unknown)
			expect.That(t, (tt.reason != "" || len(unknown) == 0) && strings.Contains(reasons, tt.reason), "the reasons are %v, want %q", reasons, tt.reason)
			var snapshot bytes.Buffer
			expect.NoError(t, recording.Write(&snapshot, host.RecordOptions{Version: "test"}))
			h := expect.Value(host.ParseSnapshot("test", snapshot.Bytes()))(t)
			own := *on(probe.Full, 2, 2)
			again := checktest.On(nil, &own)
			again.Host = h
			expect.NoError(t, Check.Gather(t.Context(), again))
			expect.NoDiff(t, own.GPUDirect, got, "the replay")
		})
	}
}

// TestLate checks that the check ends before the time of the whole is over, whatever hangs, and that what it does not
// know has a reason.
func TestLate(t *testing.T) {
	simulate(t, map[string]string{"GPUDOCTOR_SIM_NICS": "1", "GPUDOCTOR_SIM_VERBS_FAULT": "hang-host"})
	for _, after := range []time.Duration{0, time.Second, time.Minute} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		defer cancel()
		g := checktest.On(&alive{}, on(probe.Full, 1, 1))
		expect.NoError(t, Check.Gather(ctx, g))
		expect.That(t, after <= time.Second || ctx.Err() == nil, "after %s: it took longer", after)
		if d := g.Facts.GPUDirect; d != nil && len(d.NICs) > 0 && d.NICs[0].Host != nil || len(g.Unknowns()) == 0 {
			t.Errorf("after %s: got %+v, %v", after, d, g.Unknowns())
		}
	}
}

// TestNothingToTry checks that nothing is asked where nothing can be tried, and that the full probe is named where
// something could be.
func TestNothingToTry(t *testing.T) {
	down := on(probe.Full, 2, 2)
	for i := range down.NICs.RDMA {
		down.NICs.RDMA[i].State = "down"
	}
	elsewhere := on(probe.Full, 2, 1)
	elsewhere.NICs.RDMA[0].Host = "node7"
	busy := on(probe.Full, 1, 1)
	busy.Transfers.Devices[0].Outcome = probe.Unknown
	unread := on(probe.Full, 1, 0)
	unread.NICs = nil
	for name, f := range map[string]*facts.Facts{
		"no facts": {}, "no NIC": on(probe.Full, 2, 0), "no GPU": on(probe.Full, 0, 2), "ports are down": down, "of another host": elsewhere,
		"a GPU in use": busy, "NICs are not known": unread,
	} {
		got, unknown := run(t, &alive{}, f)
		expect.That(t, got == nil && len(unknown) == 0, "%s: got %+v, %v", name, got, unknown)
	}
	hip := on(probe.Full, 2, 2)
	hip.Transfers.API = "hip"
	for name, f := range map[string]*facts.Facts{"quick": on(probe.Quick, 2, 2), "HIP": hip} {
		got, unknown := run(t, &alive{}, f)
		expect.That(t, got == nil && len(unknown) == 1 && unknown[0].Kind == facts.NotAsked, "%s: got %+v, %v", name, got, unknown)
	}
	got, unknown := run(t, &host.Memory{}, on(probe.Quick, 2, 2))
	expect.That(t, got == nil && len(unknown) == 1, "an empty machine: got %+v, %v", got, unknown)
}

// TestHostileAnswer checks that what a recording claims is bounded, and that nothing but the three outcomes is taken
// over.
func TestHostileAnswer(t *testing.T) {
	var a Answer
	for i := range 5000 {
		a.Tried = append(a.Tried, Tried{
			Try:    Try{Way: []string{wayHost, wayDMABuf, "\x1b[31mway"}[i%3], Device: fmt.Sprintf("\x1b[31m%d", i/50), GPU: "\n"},
			Result: attempt.Result{Outcome: []string{"ok", "fine", "corrupt", "refused", ""}[i%5], Bytes: int64(i%7) - 1, Errno: strings.Repeat("\x00", 300)},
		})
	}
	m := &host.Memory{}
	m.Answer(question, a)
	got, unknown := run(t, m, on(probe.Full, 1, 1))
	raw, err := json.Marshal(got)
	expect.That(t, err == nil && len(raw) <= 4<<20 && !strings.ContainsAny(string(raw)+fmt.Sprint(unknown), "\x1b\x00"), "%d bytes, %v", len(raw), err)
	for _, n := range got.NICs {
		for _, o := range append([]*facts.Attempt{n.Host}, outcomesOf(n.GPUs)...) {
			expect.Must(t, o == nil || (o.Outcome == attempt.OK || o.Outcome == attempt.Refused) && o.Bytes >= 0, "got %+v", o)
		}
	}
}

func outcomesOf(gpus []facts.DirectGPU) []*facts.Attempt {
	var list []*facts.Attempt
	for _, g := range gpus {
		list = append(list, g.DMABuf, g.Peermem)
	}
	return list
}

// TestPairs checks, for machines of every shape, that each GPU and each NIC takes part, that there are never more pairs
// than both together, and that no GPU has a nearer NIC than its own.
func TestPairs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for gpus := 1; gpus <= 8; gpus++ {
		for nics := 1; nics <= 10; nics++ {
			f := on(probe.Full, gpus, nics)
			list := nicsOf(f)
			for _, g := range gpusOf(f) {
				for _, n := range list {
					paths := append(slices.Clone(data.Rates().Paths), "")
					path := paths[random.IntN(len(paths))]
					f.Links.Pairs = append(f.Links.Pairs, facts.Pair{A: g, B: n.address, Kind: "gpu-nic", Path: path})
				}
			}
			with := pairs(f, gpusOf(f), list)
			count, seen := 0, map[string]bool{}
			for _, n := range list {
				count += len(with[n.name])
				expect.That(t, len(with[n.name]) > 0, "%d GPUs, %d NICs: %s has no GPU", gpus, nics, n.name)
				for _, g := range with[n.name] {
					least := data.PathRank("")
					for _, other := range list {
						least = min(least, distance(f, g, other.address))
					}
					seen[g] = seen[g] || distance(f, g, n.address) == least
				}
			}
			expect.That(t, count <= gpus+nics, "%d GPUs, %d NICs: %d pairs", gpus, nics, count)
			for _, g := range gpusOf(f) {
				expect.That(t, seen[g], "%d GPUs, %d NICs: %s is not tried with its nearest NIC", gpus, nics, g)
			}
			n := len(tries(list, with))
			expect.That(t, n == len(list)+2*count && n <= maxTried, "%d tries", n)
		}
	}
}
