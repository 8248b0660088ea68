package job

import (
	"cmp"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// raised is an uncaught exception in lines 10 to 20 of a text.
func raised(class, words string) facts.Death {
	return facts.Death{What: "exception", Class: class, Said: words, Uncaught: true, Source: "a.log", Line: 20, Begins: 10}
}

// ended is what a launcher says in line 40.
func ended(what, class string, code, rank int) facts.Death {
	d := facts.Death{What: what, Class: class, Source: "a.log", Line: 40, Begins: 40}
	if code >= 0 {
		d.Code = &code
	}
	if rank >= 0 {
		d.Rank = &rank
	}
	return d
}

func said(id, role string, line int) facts.Message {
	return facts.Message{ID: id, Role: role, Source: "a.log", Line: line}
}

func with(d facts.Death, change func(*facts.Death)) facts.Death {
	change(&d)
	return d
}

func first(d *facts.Death) { d.First = true }

func TestItsOwn(t *testing.T) {
	t.Parallel()
	for printed, want := range map[string]bool{
		"KeyError: 'x'": true, "ValueError: bad": true, "trainer.BadBatch: no label": true, "ray.exceptions.RayTaskError(ValueError): bad": true,
		"OSError: cannot read /home/u/nccl-tests/run/cfg.yaml": true, "OSError: [enforce fail at /src/gloo/tcp/pair.cc:534] end of stream": false,
		"AssertionError: ": true, "TypeError: nccl": true, "RuntimeError: expected cuda:0": true, "ValueError: Caught ValueError in DataLoader worker process 0.": true,
		"torch.distributed.DistBackendError: x": false, "RuntimeError: NCCL error in: x": false, "torch.OutOfMemoryError: x": false,
		"ConnectionResetError: [Errno 104]": false, "ImportError: libcudart.so.12: cannot open shared object file": false, "EOFError: ": false,
		"OSError: [Errno 24] Too many open files": false, "KeyboardInterrupt: ": false, "RuntimeError: CUDA error: x": false,
		"RuntimeError: Engine core initialization failed. See root cause above.": false, "ray.exceptions.ActorDiedError: x": false,
		"jax.errors.JaxRuntimeError: INTERNAL: x": false,
	} {
		expect.That(t, itsOwn(printed) == want, "%s: of the program %v, want %v", printed, !want, want)
	}
}

// TestFirst checks which end the others follow; -1 is no rank, and no class is no end of the program's own.
func TestFirst(t *testing.T) {
	t.Parallel()
	key := raised("KeyError", "a")
	caught := with(key, func(d *facts.Death) { d.Uncaught = false })
	steps := func(n int) facts.Death { return with(caught, func(d *facts.Death) { d.StepsAfter = n }) }
	trouble, killed := said("nccl-system-error", "category", 5), said("process-killed", "category", 5)
	lost := said("nccl-closed-by-peer", "consequence", 5)
	of := func(d facts.Death, rank int) facts.Death { return with(d, func(d *facts.Death) { d.Rank = &rank }) }
	elsewhere := with(key, func(d *facts.Death) { d.Source, d.Time = "b.log", "2025-11-22T10:10:00" })
	earlier := said("nccl-system-error", "category", 5)
	earlier.Time = "2025-11-22T10:00:00"
	exit9 := with(ended("exit", "", 9, 1), first)
	other := said("nccl-system-error", "category", 5)
	other.Rank = new(int)
	own := other
	own.Rank = exit9.Rank
	denied, wait := of(raised("PermissionError", "[Errno 13] Permission denied: '/dev/x'"), 1), said("torch-watchdog-timeout", "category", 30)
	interrupted := of(raised("KeyboardInterrupt", ""), 1)
	wait.Rank, other.Line = new(int), 35
	gone, follows := lost, said("nccl-system-error", "category", 6)
	gone.Rank, follows.Rank = new(int), new(int)
	executor := with(ended("exit", "", -1, 2), func(d *facts.Death) { d.Reporter = "vllm" })
	killedProcess := func(class string) facts.Death {
		return with(ended("signal", class, -1, 1), func(d *facts.Death) { d.PID = 12 })
	}
	for name, c := range map[string]struct {
		deaths   []facts.Death
		messages []facts.Message
		oom      bool
		class    string
		rank     int
	}{
		"by the launcher":                     {deaths: []facts.Death{of(key, 0), of(raised("ValueError", "b"), 3), with(ended("exit", "", 1, 3), first)}, class: "ValueError", rank: 3},
		"the launcher names the rank":         {deaths: []facts.Death{key, with(ended("exit", "", 1, 3), first)}, class: "KeyError", rank: 3},
		"another launcher does":               {deaths: []facts.Death{key, ended("exit", "", 1, 2)}, class: "KeyError", rank: 2},
		"SIGSEGV":                             {deaths: []facts.Death{ended("signal", "SIGSEGV", -1, -1)}, class: "SIGSEGV", rank: -1},
		"SIGXCPU":                             {deaths: []facts.Death{ended("signal", "SIGXCPU", -1, -1)}, class: "SIGXCPU", rank: -1},
		"SIGKILL":                             {deaths: []facts.Death{ended("signal", "SIGKILL", -1, -1)}, class: "SIGKILL", rank: -1},
		"SIGKILL without memory":              {deaths: []facts.Death{ended("signal", "SIGKILL", -1, -1)}, oom: true},
		"an executor's exception":             {deaths: []facts.Death{with(raised("RuntimeError", "cancelled"), func(d *facts.Death) { d.Begins, d.Line = 45, 46 }), executor}, oom: true},
		"an executor's worker":                {deaths: []facts.Death{executor}, rank: 2},
		"SIGTERM of the launcher":             {deaths: []facts.Death{ended("signal", "SIGTERM", -1, 1)}},
		"SIGTERM first":                       {deaths: []facts.Death{with(ended("signal", "SIGTERM", -1, 1), first)}, class: "SIGTERM", rank: 1},
		"SIGHUP first":                        {deaths: []facts.Death{with(ended("signal", "SIGHUP", -1, 1), first)}, class: "SIGHUP", rank: 1},
		"SIGBUS first":                        {deaths: []facts.Death{with(ended("signal", "SIGBUS", -1, 1), first)}},
		"exit behind communication":           {deaths: []facts.Death{raised("DistBackendError", "NCCL"), ended("exit", "", 1, 1)}},
		"SIGKILL told after the loss":         {deaths: []facts.Death{killedProcess("SIGKILL")}, messages: []facts.Message{gone, follows}, class: "SIGKILL", rank: 1},
		"SIGABRT told after the loss":         {deaths: []facts.Death{killedProcess("SIGABRT")}, messages: []facts.Message{gone, follows}},
		"SIGKILL told after other trouble":    {deaths: []facts.Death{killedProcess("SIGKILL")}, messages: []facts.Message{follows}},
		"a launcher without process numbers":  {deaths: []facts.Death{with(ended("signal", "SIGALRM", -1, 1), first)}, messages: []facts.Message{gone, follows}, class: "SIGALRM", rank: 1},
		"SIGABRT behind a lost peer":          {deaths: []facts.Death{ended("signal", "SIGABRT", -1, -1)}, messages: []facts.Message{lost}},
		"SIGABRT before a lost peer":          {deaths: []facts.Death{ended("signal", "SIGABRT", -1, -1)}, messages: []facts.Message{said("nccl-closed-by-peer", "consequence", 45)}, class: "SIGABRT", rank: -1},
		"an assertion of its own":             {deaths: []facts.Death{{What: "assertion", Class: "-", File: "Loss.cu"}}, class: "-", rank: -1},
		"an assertion of a library":           {deaths: []facts.Death{{What: "assertion", Class: "-", File: "src/nccl_net.c"}}},
		"trouble before":                      {deaths: []facts.Death{key}, messages: []facts.Message{trouble}},
		"a consequence before":                {deaths: []facts.Death{key}, messages: []facts.Message{lost}, class: "KeyError", rank: -1},
		"trouble after":                       {deaths: []facts.Death{key}, messages: []facts.Message{said("nccl-system-error", "category", 30)}, class: "KeyError", rank: -1},
		"the word of an end before":           {deaths: []facts.Death{key}, messages: []facts.Message{killed}, class: "KeyError", rank: -1},
		"trouble before, by time":             {deaths: []facts.Death{elsewhere}, messages: []facts.Message{earlier}},
		"claimed by a row":                    {deaths: []facts.Death{raised("ValueError", "a")}, messages: []facts.Message{said("vllm-memory-short", "cause", 20)}},
		"behind communication":                {deaths: []facts.Death{with(key, func(d *facts.Death) { d.Behind = []string{"DistBackendError: x"} })}},
		"behind another of its own":           {deaths: []facts.Death{with(key, func(d *facts.Death) { d.Behind = []string{"IndexError: x"} })}, class: "KeyError", rank: -1},
		"caught, near the end":                {deaths: []facts.Death{caught}, class: "KeyError", rank: -1},
		"ignored":                             {deaths: []facts.Death{with(caught, func(d *facts.Death) { d.Ignored = true })}},
		"many steps after":                    {deaths: []facts.Death{steps(8)}},
		"one step after":                      {deaths: []facts.Death{steps(1)}},
		"some steps after":                    {deaths: []facts.Death{steps(3)}},
		"some steps after what nobody caught": {deaths: []facts.Death{with(steps(3), func(d *facts.Death) { d.TopLevel = true })}, class: "KeyError", rank: -1},
		"some steps of others, and an end":    {deaths: []facts.Death{steps(3), ended("exit", "", 1, -1)}, class: "KeyError", rank: -1},
		// What others say of a rank that the launcher saw end first is its consequence, unless Python's exit code
		// hides an exception.
		"witnessed, others in trouble": {deaths: []facts.Death{exit9}, messages: []facts.Message{other}, rank: 1},
		"witnessed, itself in trouble": {deaths: []facts.Death{exit9}, messages: []facts.Message{own}, class: "none"},
		// What may come from the machine or a server counts where the others only wait for the rank.
		"denied, then a wait":                {deaths: []facts.Death{denied}, messages: []facts.Message{wait}, class: "PermissionError", rank: 1},
		"denied, a wait and what follows":    {deaths: []facts.Death{denied}, messages: []facts.Message{wait, other}, class: "PermissionError", rank: 1},
		"denied, and trouble":                {deaths: []facts.Death{denied}, messages: []facts.Message{other}, class: "none"},
		"denied, and nothing else":           {deaths: []facts.Death{denied}, class: "none"},
		"a wait, then denied":                {deaths: []facts.Death{denied}, messages: []facts.Message{said("torch-watchdog-timeout", "category", 3)}, class: "none"},
		"denied, witnessed":                  {deaths: []facts.Death{denied, with(ended("exit", "", 1, 1), first)}, messages: []facts.Message{other}, class: "PermissionError", rank: 1},
		"denied by a row, then a wait":       {deaths: []facts.Death{denied}, messages: []facts.Message{said("python-invalid-argument", "category", 20), wait}, class: "PermissionError", rank: 1},
		"a row's cause, then a wait":         {deaths: []facts.Death{denied}, messages: []facts.Message{said("vllm-memory-short", "cause", 20), wait}, class: "none"},
		"interrupted, then a wait":           {deaths: []facts.Death{interrupted}, messages: []facts.Message{wait}, class: "KeyboardInterrupt", rank: 1},
		"interrupted together":               {deaths: []facts.Death{interrupted, of(interrupted, 0)}, messages: []facts.Message{wait}, class: "none"},
		"a peer's connection, then a wait":   {deaths: []facts.Death{of(raised("ConnectionResetError", "[Errno 104] Connection reset by peer"), 1)}, messages: []facts.Message{wait}, class: "none"},
		"a server's connection, then a wait": {deaths: []facts.Death{with(of(raised("requests.exceptions.ConnectionError", "HTTPSConnectionPool(host='huggingface.co', port=443)"), 1), func(d *facts.Death) { d.RaisedIn = "/usr/lib/python3/dist-packages/requests/adapters.py" })}, messages: []facts.Message{wait}, class: "requests.exceptions.ConnectionError", rank: 1},
		"witnessed with an exception's code": {deaths: []facts.Death{with(ended("exit", "", 1, 1), first)}, messages: []facts.Message{other}, class: "none"},
	} {
		f := &facts.Facts{Texts: []facts.Text{{Name: "a.log", Lines: 50}}, Logs: &facts.LogFacts{Deaths: c.deaths, Messages: c.messages}}
		if c.oom {
			f.KernelLog = &facts.KernelLogFacts{Events: []facts.KernelEvent{{Kind: "oom"}}}
		}
		d := Of(f).First
		switch {
		case c.class == "none" || c.class == "" && c.rank == 0:
			expect.That(t, d == nil, "%s: %+v, want none", name, d)
		case d == nil:
			t.Errorf("%s: none, want %s", name, c.class)
		default:
			rank := -1
			if d.Rank != nil {
				rank = *d.Rank
			}
			expect.That(t, d.Class == c.class && rank == c.rank, "%s: %s of rank %d, want %s of %d", name, d.Class, rank, c.class, c.rank)
		}
	}
}

// TestUnexplained checks that an exception which ended a process is told where nothing else says why.
func TestUnexplained(t *testing.T) {
	t.Parallel()
	of := func(change func(*facts.Death), messages ...facts.Message) bool {
		d := with(raised("RuntimeError", "CUDA timed out"), change)
		return Of(&facts.Facts{Texts: []facts.Text{{Name: "a.log", Lines: 50}}, Logs: &facts.LogFacts{Deaths: []facts.Death{d}, Messages: messages}}).Unexplained != nil
	}
	atTop := func(d *facts.Death) { d.Uncaught, d.TopLevel = false, true }
	expect.That(t, of(func(*facts.Death) {}) && of(atTop) && !of(func(d *facts.Death) { d.Uncaught = false }), "an exception is not told, or one that may have been caught is")
	expect.That(t, !of(func(d *facts.Death) { d.Class = "KeyboardInterrupt" }), "one by a person is told")
	expect.That(t, !of(func(d *facts.Death) { d.StepsAfter = facts.EndedWell }) && !of(atTop, said("torch-store-closed", "consequence", 5)), "one that is over, or explained, is told")
}

// TestFar checks that far from the end of a text only a failure shows that nobody caught an exception.
func TestFar(t *testing.T) {
	t.Parallel()
	caught := with(raised("KeyError", "a"), func(d *facts.Death) { d.Uncaught = false })
	of := func(messages ...facts.Message) bool {
		return Of(&facts.Facts{Texts: []facts.Text{{Name: "a.log", Lines: 5000}}, Logs: &facts.LogFacts{Deaths: []facts.Death{caught}, Messages: messages}}).First != nil
	}
	expect.That(t, !of() && of(said("torch-store-closed", "consequence", 90)), "an exception far from the end counts without a failure, or not with one")
}

// TestWentOn checks that a job went on where each complaint that something does not end is followed by many steps.
func TestWentOn(t *testing.T) {
	t.Parallel()
	of := func(deaths []facts.Death, steps ...int) bool {
		var messages []facts.Message
		for _, n := range steps {
			m := said("torch-watchdog-timeout", "category", 5)
			m.StepsAfter = n
			messages = append(messages, m)
		}
		return Of(&facts.Facts{Logs: &facts.LogFacts{Deaths: deaths, Messages: messages}}).WentOn
	}
	expect.That(t, of(nil, 8, 8) && !of(nil, 8, 3) && !of(nil) && !of([]facts.Death{ended("exit", "", 1, -1)}, 8, 8), "a job went on, or did not, in another case")
}

// TestHasPassed checks that what can pass is no complaint of a job that goes on.
func TestHasPassed(t *testing.T) {
	t.Parallel()
	of := func(steps int) int {
		m := said("numa-call-refused", "cause", 5)
		m.StepsAfter = steps
		return len(Of(&facts.Facts{Logs: &facts.LogFacts{Messages: []facts.Message{m}}}).Settled)
	}
	expect.That(t, of(1) == 1 && of(0) == 0, "it counts, or not, in the wrong case")
}

// TestEndedWell checks that nothing is a complaint of a job that ended well afterwards, nor where a text that no
// process wrote mentions it, and that a launcher which saw a process fail weighs more.
func TestEndedWell(t *testing.T) {
	t.Parallel()
	of := func(role string, steps int, deaths ...facts.Death) int {
		m, told := said("torch-store-closed", role, 5), said("torch-store-closed", role, 7)
		m.StepsAfter, told.Source, told.Order = steps, "post.txt", 1
		logs := &facts.LogFacts{Deaths: deaths, Messages: []facts.Message{m, told}, Processes: []facts.Process{{Source: "a.log", Rank: new(int)}}}
		return len(Of(&facts.Facts{Logs: logs}).Settled)
	}
	expect.That(t, of("consequence", facts.EndedWell) == 2 && of("category", facts.EndedWell) == 2 && of("cause", facts.EndedWell) == 2, "it still complains")
	expect.That(t, of("setting", facts.EndedWell) == 0 && of("warning", facts.EndedWell) == 0, "what complains of nothing is settled")
	expect.That(t, of("consequence", 8) == 0 && of("category", facts.EndedWell, ended("exit", "", 1, 1)) == 0, "it is settled in the wrong case")
}

// TestOfAnotherJob checks that a line of a list of jobs is no complaint where the texts are those of other jobs, by their names.
func TestOfAnotherJob(t *testing.T) {
	t.Parallel()
	for name, settled := range map[string]int{
		"slurm-4711.out": 0, "slurm-4712.out": 1, "runs/train-47120.err": 1, "job_4712.log": 1, "sacct.txt": 0, "train-20251129.log": 0, "node-4712.log": 0,
	} {
		m := said("slurm-out-of-memory", "cause", 5)
		m.Fields = map[string]string{"job": "4711"}
		j := Of(&facts.Facts{Texts: []facts.Text{{Name: "a.log"}, {Name: name}}, Logs: &facts.LogFacts{Messages: []facts.Message{m}}})
		expect.That(t, len(j.Settled) == settled, "%s: %v are settled", name, j.Settled)
	}
}

// TestPassed checks that a complaint without a cause needs none where a benchmark went on to its end with right results,
// and no other began in between.
func TestPassed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		benchmarks []facts.Benchmark
		role       string
		settled    int
	}{
		"passed":          {benchmarks: []facts.Benchmark{table(10, true, 0)}, settled: 1},
		"a cause":         {benchmarks: []facts.Benchmark{table(10, true, 0)}, role: "cause"},
		"wrong values":    {benchmarks: []facts.Benchmark{table(10, true, 3)}},
		"not complete":    {benchmarks: []facts.Benchmark{table(10, false, 0)}},
		"over before":     {benchmarks: []facts.Benchmark{table(1, true, 0)}},
		"that of another": {benchmarks: []facts.Benchmark{{Source: "a.log", Line: 8}, table(10, true, 0)}},
	} {
		m := said("nccl-system-error", cmp.Or(c.role, "category"), 5)
		f := &facts.Facts{Benchmarks: c.benchmarks, Logs: &facts.LogFacts{Messages: []facts.Message{m}}}
		expect.Equal(t, c.settled, len(Of(f).Settled), "%s", name)
	}
}

// table is the table of a benchmark with one row, two lines below its first.
func table(line int, complete bool, wrong int64) facts.Benchmark {
	return facts.Benchmark{Source: "a.log", Line: line, Complete: complete, Wrong: &wrong, Points: []facts.BenchmarkPoint{{Line: line + 2}}}
}

// TestLost checks that a process is lost where others only say that it is gone.
func TestLost(t *testing.T) {
	t.Parallel()
	gone := said("gloo-peer-closed", "consequence", 5)
	of := func(deaths []facts.Death, messages ...facts.Message) *facts.Lost {
		return Of(&facts.Facts{Logs: &facts.LogFacts{Deaths: deaths, Messages: messages}}).Lost
	}
	expect.That(t, of(nil, gone) != nil, "a peer that is gone is not lost")
	expect.That(t, of(nil, gone, said("nccl-shm-extend-failed", "cause", 3)) == nil, "lost although a cause is known")
	expect.That(t, of(nil, said("torch-store-timed-out", "consequence", 3)) == nil, "lost although nobody says so")
	expect.That(t, of([]facts.Death{ended("signal", "SIGSEGV", -1, 1)}, gone) == nil, "lost although its end is known")
}
