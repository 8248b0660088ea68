package job

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestMembers checks the stories of random jobs: each rank and each process that a text of the run names is in it once,
// what a text says of a process is kept, and the one that failed first is one of them and the only one.
func TestMembers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // Only a test.
		f, size := randomJob(rnd)
		j := Of(f)
		if j == nil || len(j.Members) == 0 {
			continue
		}
		name := fmt.Sprintf("seed %d", seed)
		firsts, seen := 0, map[int]bool{}
		for _, m := range j.Members {
			if m.Role == facts.RoleFirst {
				firsts++
			}
			expect.Must(t, m.Rank != nil, "%s: a member without a rank", name)
			expect.That(t, !seen[*m.Rank], "%s: rank %d twice", name, *m.Rank)
			seen[*m.Rank] = true
			expect.That(t, m.Role != facts.RoleSilent || m.Said == "" && m.End == nil && m.Waits == nil, "%s: rank %v is quiet and is not", name, m.Rank)
		}
		expect.Equal(t, j.First != nil, firsts == 1, "%s: the first", name)
		expect.Equal(t, size, len(j.Members), "%s: members", name)
		expect.Equal(t, size, j.Size, "%s: size", name)
	}
}

// randomJob is a job of which each rank tells its start, and some of them what became of them, in one text or in one
// for each; another run of it is in a text of its own.
func randomJob(rnd *rand.Rand) (f *facts.Facts, size int) {
	f, size = &facts.Facts{Logs: &facts.LogFacts{}}, 1+rnd.IntN(5)
	apart := rnd.IntN(2) == 0
	for rank := range size {
		source := "job.log"
		if apart {
			source = fmt.Sprintf("rank%d.log", rank)
		}
		pid, line := 100+rank, 10*rank
		p := facts.Process{Rank: &rank, Host: "node1", PID: pid, Ranks: size, Ready: true, Source: source}
		switch rnd.IntN(4) {
		case 0:
			f.Logs.Deaths = append(f.Logs.Deaths, facts.Death{What: "exception", Class: "KeyError", Uncaught: true, PID: pid, Source: source, Line: line, Begins: line})
		case 1:
			p.Said, p.Line = "nccl-closed-by-peer", line
			f.Logs.Messages = append(f.Logs.Messages, facts.Message{ID: p.Said, Role: "consequence", PID: pid, Source: source, Line: line})
		case 2:
			seq := 7
			f.Logs.Progress = append(f.Logs.Progress, facts.Progress{Rank: rank, Seq: &seq, Op: "ALLREDUCE", Source: source, Line: line})
		}
		f.Logs.Processes = append(f.Logs.Processes, p)
	}
	for rank := range size {
		f.Logs.Processes = append(f.Logs.Processes, facts.Process{Rank: &rank, Host: "node1", PID: 900 + rank, Ranks: size, Source: "zagain.log"})
	}
	return f, size
}

// TestWhoseDeath checks that the rank of a process that only its number names comes from the lines that tell both, of
// the same text or host, and from no other.
func TestWhoseDeath(t *testing.T) {
	t.Parallel()
	one := 1
	known := facts.Process{Rank: &one, Host: "node1", PID: 77, Source: "a.log"}
	for name, c := range map[string]struct {
		death facts.Death
		want  bool
	}{
		"the same text":         {facts.Death{PID: 77, Source: "a.log"}, true},
		"the same host":         {facts.Death{PID: 77, Host: "node1", Source: "b.log"}, true},
		"another text":          {facts.Death{PID: 77, Source: "b.log"}, false},
		"another host":          {facts.Death{PID: 77, Host: "node2", Source: "b.log"}, false},
		"another process":       {facts.Death{PID: 78, Source: "a.log"}, false},
		"a process not known":   {facts.Death{Source: "a.log"}, false},
		"a rank of its own too": {facts.Death{Rank: new(int), PID: 77, Source: "a.log"}, false},
	} {
		f := &facts.Facts{Logs: &facts.LogFacts{Processes: []facts.Process{known}, Deaths: []facts.Death{c.death}}}
		got := withRanks(f).Logs.Deaths[0].Rank
		expect.Equal(t, c.want, got != nil && *got == one, "%s", name)
		expect.Equal(t, c.death.Rank, f.Logs.Deaths[0].Rank, "%s: the facts were changed", name)
	}
}

// TestAsserted checks that an assertion of device code is of the rank whose exception reports it, if that is one.
func TestAsserted(t *testing.T) {
	t.Parallel()
	raised := func(rank int) facts.Death {
		return facts.Death{What: "exception", Class: "AcceleratorError", Said: "CUDA error: device-side assert triggered", Rank: &rank, Uncaught: true, Source: "a.log", Line: 30, Begins: 20}
	}
	assertion := facts.Death{What: "assertion", Said: "index out of bounds", Source: "a.log", Line: 10, Begins: 10}
	for name, c := range map[string]struct {
		others []facts.Death
		want   int
	}{
		"one":         {[]facts.Death{raised(3)}, 3},
		"twice":       {[]facts.Death{raised(3), raised(3)}, 3},
		"two of them": {[]facts.Death{raised(3), raised(4)}, -1},
		"none":        {nil, -1},
	} {
		j := Of(&facts.Facts{Logs: &facts.LogFacts{Deaths: append([]facts.Death{assertion}, c.others...)}})
		expect.Must(t, j != nil && j.First != nil, "%s: nothing failed first", name)
		got := -1
		if j.First.Rank != nil {
			got = *j.First.Rank
		}
		expect.Equal(t, c.want, got, "%s", name)
	}
}

// TestSettled checks that the words of the exception that ended the first process need no cause of their own: neither
// what states a cause, nor what another process says too, nor what stands elsewhere.
func TestSettled(t *testing.T) {
	t.Parallel()
	one := 1
	first := facts.Death{
		What: "exception", Class: "URLError", Said: "Connection refused", RaisedIn: "/usr/lib/python3/urllib/request.py", Rank: &one, Uncaught: true, Source: "a.log", Line: 20, Begins: 10,
	}
	wait := facts.Message{ID: "torch-watchdog-timeout", Role: "category", Rank: new(int), Source: "a.log", Line: 90, Order: 9}
	for name, c := range map[string]struct {
		message facts.Message
		want    int
	}{
		"its last line":         {facts.Message{ID: "socket-refused", Role: "category", Source: "a.log", Line: 20, Rank: &one}, 1},
		"of its traceback":      {facts.Message{ID: "socket-refused", Role: "category", Source: "a.log", Line: 12, Rank: &one}, 1},
		"of two processes":      {facts.Message{ID: "socket-refused", Role: "category", Source: "a.log", Line: 20, Rank: &one, Ranks: 2}, 0},
		"behind it, a sequel":   {facts.Message{ID: "nccl-closed-by-peer", Role: "consequence", Source: "a.log", Line: 30, Rank: &one}, 0},
		"of another text":       {facts.Message{ID: "nccl-closed-by-peer", Role: "consequence", Source: "b.log", Line: 20, Rank: &one}, 0},
		"a setting on the line": {facts.Message{ID: "socket-refused", Role: "setting", Source: "a.log", Line: 20, Rank: &one}, 0},
	} {
		j := Of(&facts.Facts{Logs: &facts.LogFacts{Deaths: []facts.Death{first}, Messages: []facts.Message{c.message, wait}}})
		expect.Must(t, j.First != nil, "%s: nothing failed first", name)
		expect.Equal(t, c.want, len(j.Settled), "%s", name)
	}
}
