package collective

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// fake is a group whose processes are played: each rank answers as a healthy one does, and change
// may replace each message by others. counts is how many messages each rank sent. Its clock is synctest's.
func fake(t *testing.T, change func(rank, number int, raw json.RawMessage) []json.RawMessage, end child.Result) (a probe.Arm, counts [2]int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { a, counts = converse(t, change, end) })
	return a, counts
}

func converse(t *testing.T, change func(rank, number int, raw json.RawMessage) []json.RawMessage, end child.Result) (a probe.Arm, counts [2]int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	s := &session{options: Options{Patience: 100 * time.Millisecond, Start: 200 * time.Millisecond, Join: 200 * time.Millisecond}, report: &probe.Collectives{}}
	g := newGroup(s, order{Ranks: 2, Bytes: mib}, nil, nil)
	_, g.stop = context.WithCancel(ctx)
	for i := range 2 {
		m := &member{places: []place{{Rank: i}}, input: make(chan any, 64)}
		g.members, g.ranks = append(g.members, m), append(g.ranks, &rankState{member: m})
		g.ended.Go(func() { counts[i] = play(ctx, g, m, i, change, end) })
	}
	plan := plan{{probe.AllReduce, []int64{8, mib}}, {probe.AllToAll, []int64{mib}}}
	g.work(ctx, plan)
	stop()
	g.end()
	g.describe(&a)
	return a, counts
}

// play is one process.
func play(ctx context.Context, g *group, m *member, rank int, change func(rank, number int, raw json.RawMessage) []json.RawMessage, end child.Result) int {
	number := 0
	say := func(x message) {
		number++
		x.Number, x.Rank = number, rank
		raw, err := json.Marshal(x)
		if err != nil {
			panic(err)
		}
		for _, one := range change(rank, number, raw) {
			g.events <- event{from: m, raw: one}
		}
	}
	say(message{Stage: stageMemory})
	say(message{Ready: &ready{GPU: fmt.Sprint(rank), Bytes: mib}})
	for {
		select {
		case <-ctx.Done():
			g.events <- event{from: m, ended: &child.Result{Canceled: true}}
			return number
		case v := <-m.input:
			c, _ := v.(command)
			switch {
			case c.Identify && rank == 0:
				say(message{Stage: stageID})
				say(message{ID: make([]byte, 128)})
			case c.Join != nil:
				say(message{Stage: stageInit})
				say(message{Joined: true})
			case c.Run != nil:
				say(message{Stage: c.Run.Name})
				say(message{Result: &result{Seconds: 1e-5, Verified: "gpu"}})
			case c.Leave:
				say(message{Stage: stageDestroy})
				say(message{Left: true})
				g.events <- event{from: m, ended: &end}
				return number
			}
		}
	}
}

func unchanged(_, _ int, raw json.RawMessage) []json.RawMessage { return []json.RawMessage{raw} }

var finished = child.Result{Finished: true, Exited: true}

// TestGroupNoticesLoss checks, by enumeration, that an arm is ok only if every message of every
// rank came, once and as it was sent.
func TestGroupNoticesLoss(t *testing.T) {
	t.Parallel()
	whole, counts := fake(t, unchanged, finished)
	if whole.Outcome != probe.OK || len(whole.Operations) != 3 || slices.ContainsFunc(whole.Ranks, func(r probe.Rank) bool { return r.Outcome != probe.OK }) {
		t.Fatalf("the whole conversation gives %+v", whole)
	}
	changes := map[string]func(raw json.RawMessage) []json.RawMessage{
		"lost":  func(json.RawMessage) []json.RawMessage { return nil },
		"twice": func(raw json.RawMessage) []json.RawMessage { return []json.RawMessage{raw, raw} },
		"cut":   func(raw json.RawMessage) []json.RawMessage { return []json.RawMessage{raw[:len(raw)/2]} },
		"garbage": func(json.RawMessage) []json.RawMessage {
			return []json.RawMessage{json.RawMessage(`{"n":1,"rank":7,"joined":true}`)}
		},
		"fake": func(json.RawMessage) []json.RawMessage {
			return []json.RawMessage{json.RawMessage(`{"n":-3,"failure":{"outcome":"ok"}}`)}
		},
	}
	for rank := range 2 {
		for number := 1; number <= counts[rank]; number++ {
			for what, change := range changes {
				t.Run(fmt.Sprintf("%s: message %d of rank %d", what, number, rank), func(t *testing.T) {
					t.Parallel()
					a, _ := fake(t, func(r, n int, raw json.RawMessage) []json.RawMessage {
						if r == rank && n == number {
							return change(raw)
						}
						return []json.RawMessage{raw}
					}, finished)
					expect.That(t, (a.Outcome != probe.OK || what == "twice" && number >= counts[rank]) && a.Outcome != probe.Error && a.Outcome != probe.Corrupt, "the outcome is %s: %s", a.Outcome, a.Reason)
				})
			}
		}
	}
}

// TestArmsKeepOff checks that no arm turns on what an environment turned off: NVLS above all.
func TestArmsKeepOff(t *testing.T) {
	env := map[string]string{"NCCL_NVLS_ENABLE": "0", "NCCL_CUMEM_ENABLE": "0", "NCCL_MNNVL_ENABLE": "0", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_X": "y"}
	expect.NoDiff(t, []string{"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_X"}, leftovers(env, false), "cleaning removes")
	for _, a := range arms {
		for name, value := range a.set {
			off := map[string]string{"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_CUMEM_ENABLE": "0", "NCCL_NVLS_ENABLE": "0"}[name]
			expect.That(t, value == off, "arm %s sets %s=%s", a.name, name, value)
		}
	}
	for name, value := range map[string]string{"NCCL_NVLS_ENABLE": "1", "NCCL_CUMEM_ENABLE": "1"} {
		expect.That(t, slices.Contains(leftovers(map[string]string{name: value}, false), name), "cleaning leaves %s=%s", name, value)
	}
}

// TestPlans checks that every size of every plan is whole words, for every number of ranks.
func TestPlans(t *testing.T) {
	for _, p := range []plan{quickPlan, fullPlan, armPlan} {
		for _, step := range p {
			for _, bytes := range step.bytes {
				for ranks := 1; ranks <= maxRanks; ranks++ {
					n := fit(step.name, bytes, ranks)
					expect.That(t, n >= 8 && n%8 == 0 && (step.name != probe.AllToAll || n%(8*int64(ranks)) == 0) && n <= max(bytes, 8*int64(ranks)), "%s of %d bytes with %d ranks: %d", step.name, bytes, ranks, n)
				}
			}
		}
	}
}

// TestNVLSStaysOff checks, for each combination of the variables that may keep NVLS off, from the environment and from a
// file, each outcome of the first arm, each arm and each set of variables that a search removes, that no run has NVLS
// possibly on where the environment may have it off: NVLS is switched off, or all that may keep it off is as it was.
func TestNVLSStaysOff(t *testing.T) {
	t.Parallel()
	values := map[string][]string{
		"NCCL_ALGO": {"", "^NVLS", "Rung"}, "NCCL_NVLS_ENABLE": {"", "0", "2"}, "NCCL_CUMEM_ENABLE": {"", "0", "1"},
		"NCCL_MNNVL_ENABLE": {"", "0"}, "NCCL_CONF_FILE": {"", "/etc/other.conf"}, "NCCL_X": {"", "y"},
	}
	names := slices.Sorted(maps.Keys(values))
	var settings []map[string]string
	var each func(i int, chosen map[string]string)
	each = func(i int, chosen map[string]string) {
		if i == len(names) {
			settings = append(settings, chosen)
			return
		}
		for _, v := range values[names[i]] {
			own := maps.Clone(chosen)
			if v != "" {
				own[names[i]] = v
			}
			each(i+1, own)
		}
	}
	each(0, map[string]string{})
	algorithmsTried := 0
	for _, all := range settings {
		for _, inFile := range []string{"", "NCCL_ALGO", "NCCL_NVLS_ENABLE", "*"} {
			files, env := map[string]string{}, map[string]string{}
			for name, value := range all {
				if inFile == "*" || name == inFile {
					files[name] = value
				} else {
					env[name] = value
				}
			}
			s := &session{options: Options{Files: files}, env: all}
			for _, failed := range []bool{false, true} {
				removed := leftovers(all, failed)
				runs := slices.Clone(arms)
				for subset := range 1 << len(removed) {
					a := arm{name: probe.ArmWithout}
					for i, name := range removed {
						if subset>>i&1 == 1 {
							a.unset = append(a.unset, name)
						}
					}
					runs = append(runs, a)
				}
				for _, a := range runs {
					if a.cleans {
						a.unset = removed
					}
					a = a.withoutAlgorithms(all)
					got := inForce(s, a, env, files)
					if got["NCCL_NVLS_ENABLE"] == "0" {
						if slices.Contains(a.unset, "NCCL_ALGO") {
							algorithmsTried++
						}
						continue
					}
					for name, value := range all {
						expect.Must(t, !kept(name, value) || got[name] == value, "%v, of them %q in a file, failed %v: the arm %s without %q has %v", all, inFile, failed, a.name, a.unset, got)
					}
				}
			}
		}
	}
	expect.That(t, algorithmsTried != 0, "no run is without NCCL_ALGO")
}

// inForce are the variables that the library finds in an arm: those of the environment, and those of its files that
// the environment lacks.
func inForce(s *session, a arm, env, files map[string]string) map[string]string {
	set, unset := s.environmentOf(a)
	got := maps.Clone(env)
	for _, name := range unset {
		delete(got, name)
	}
	for _, setting := range set {
		name, value, _ := strings.Cut(setting, "=")
		got[name] = value
	}
	for name, value := range files {
		if _, is := got[name]; !is {
			got[name] = value
		}
	}
	return got
}
