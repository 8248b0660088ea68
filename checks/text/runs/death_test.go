package runs_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/job"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// told writes a death briefly.
func told(d facts.Death) string {
	rank := "-"
	if d.Rank != nil {
		rank = fmt.Sprint(*d.Rank)
	}
	code := ""
	if d.Code != nil {
		code = fmt.Sprintf(" code %d", *d.Code)
	}
	at := ""
	if d.File != "" {
		at = fmt.Sprintf(" at %s:%d %s", d.File, d.FileLine, d.Function)
	}
	return fmt.Sprintf("%s rank %s pid %d host %q: %s: %s%s%s line %d-%d", d.What, rank, d.PID, d.Host, d.Class, d.Said, code, at, d.Begins, d.Line)
}

func traceback(file, exception string) string {
	return "Traceback (most recent call last):\n  File \"/work/main.py\", line 9, in <module>\n    run()\n  File \"" + file + "\", line 41, in step\n    x()\n    ^^^\n" + exception + "\n"
}

// interleaved takes one line of each text at a time, each behind the mark of its own.
func interleaved(marks []string, texts ...string) string {
	var b strings.Builder
	lines := expect.Map(texts, func(text string) []string { return strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n") })
	for i := range lines[0] {
		for k := range lines {
			b.WriteString(marks[k] + strings.TrimSuffix(lines[k][i], "\n") + "\n")
		}
	}
	return b.String()
}

func TestDeaths(t *testing.T) {
	const library = "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py"
	key, value := traceback("/work/data.py", "KeyError: 'x'"), traceback("/work/train.py", "ValueError: bad: batch")
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"one":     {value, []string{`exception rank - pid 0 host "": ValueError: bad: batch at /work/train.py:41 step line 1-7`}},
		"library": {traceback(library, "RuntimeError: shapes"), []string{`exception rank - pid 0 host "": RuntimeError: shapes at /work/main.py:9 <module> line 1-7`}},
		"interleaved of torch": {interleaved([]string{"[rank0]: ", "[rank3]: "}, key, value), []string{
			`exception rank 0 pid 0 host "": KeyError: 'x' at /work/data.py:41 step line 1-13`,
			`exception rank 3 pid 0 host "": ValueError: bad: batch at /work/train.py:41 step line 2-14`,
		}},
		"between lines of others": {strings.Replace(value, "ValueError", "[rank3]: KeyError: 'x'\n7: done\nValueError", 1), []string{
			`exception rank - pid 0 host "": ValueError: bad: batch at /work/train.py:41 step line 1-9`,
		}},
		"numbered": {"     1\t" + strings.ReplaceAll(strings.TrimSpace(value), "\n", "\n     9\t"), []string{`exception rank - pid 0 host "": ValueError: bad: batch at /work/train.py:41 step line 1-7`}},
		"interleaved of srun": {interleaved([]string{"0: ", "13: "}, key, value), []string{
			`exception rank 0 pid 0 host "": KeyError: 'x' at /work/data.py:41 step line 1-13`,
			`exception rank 13 pid 0 host "": ValueError: bad: batch at /work/train.py:41 step line 2-14`,
		}},
		"interleaved of mpirun": {interleaved([]string{"[1,0]<stderr>:", "[1,3]<stderr>:"}, key, value), []string{
			`exception rank 0 pid 0 host "": KeyError: 'x' at /work/data.py:41 step line 1-13`,
			`exception rank 3 pid 0 host "": ValueError: bad: batch at /work/train.py:41 step line 2-14`,
		}},
		"interleaved of ray": {interleaved([]string{"(Worker pid=12, ip=10.0.0.2) ", "(Worker pid=13, ip=10.0.0.2) "}, key, value), []string{
			`exception rank - pid 12 host "": KeyError: 'x' at /work/data.py:41 step line 1-13`,
			`exception rank - pid 13 host "": ValueError: bad: batch at /work/train.py:41 step line 2-14`,
		}},
		"of multiprocessing": {"Process SpawnProcess-2:\n" + key, []string{`exception rank - pid 0 host "": KeyError: 'x' at /work/data.py:41 step line 2-8`}},
		"handled": {strings.Replace(key, "\nKeyError: 'x'", "\nKeyError: 'x'\n\nDuring handling of the above exception, another exception occurred:\n", 1) + "\n" + value, []string{
			`exception rank - pid 0 host "": ValueError: bad: batch at /work/train.py:41 step line 1-18`,
		}},
		"of a loader": {"[rank1]: " + strings.ReplaceAll(strings.TrimSpace(traceback("/work/main.py", "KeyError: Caught KeyError in DataLoader worker process 0.")+"Original "+value), "\n", "\n[rank1]: "), []string{
			`exception rank 1 pid 0 host "": ValueError: bad: batch at /work/train.py:41 step line 1-14`,
		}},
		"spawned": {"-- Process 1 terminated with the following error:\n" + value, []string{`exception rank 1 pid 0 host "": ValueError: bad: batch at /work/train.py:41 step line 2-8`}},
		"times": {
			"2025-11-22T10:00:00.123Z " + strings.ReplaceAll(strings.TrimSpace(value), "\n", "\n2025-11-22T10:00:00.1Z "),
			[]string{`exception rank - pid 0 host "": ValueError: bad: batch at /work/train.py:41 step line 1-7`},
		},
		"faulthandler": {
			"Fatal Python error: Segmentation fault\n\nThread 0x01 (most recent call first):\n  File \"/work/other.py\", line 1 in wait\n\nCurrent thread 0x02 (most recent call first):\n  File \"" + library + "\", line 7 in forward\n  File \"/work/train.py\", line 41 in step\n",
			[]string{`signal rank - pid 0 host "": SIGSEGV: Segmentation fault at /work/train.py:41 step line 1-1`},
		},
		"torchrun":  {"E1 api.py:874] failed (exitcode: -11) local_rank: 1 (pid: 12) of binary: python\n", []string{`signal rank - pid 12 host "": SIGSEGV:  code -11 line 1-1`}},
		"deepspeed": {"[launch.py:321:sigkill_handler] ['python', '--local_rank=3'] exits with return code = 1\n", []string{`exit rank 3 pid 0 host "": :  code 1 line 1-1`}},
		"slurm": {"srun: error: node7: task 3: Exited with exit code 139\nsrun: error: node8: tasks 4-7: Killed\nsrun: error: node8: task 9: Segmentation fault (core dumped)\n", []string{
			`signal rank 3 pid 0 host "node7": SIGSEGV:  code 139 line 1-1`, `signal rank 4 pid 0 host "node8": SIGKILL:  line 2-2`, `signal rank 9 pid 0 host "node8": SIGSEGV:  line 3-3`,
		}},
		"mpirun": {
			"  Process name: [[26867,1],3]\n  Exit code:    9\nmpirun noticed that process rank 2 with PID 12 on node node7 exited on signal 9 (Killed).\n",
			[]string{`exit rank 3 pid 0 host "": :  code 9 line 2-2`, `signal rank 2 pid 12 host "node7": SIGKILL:  line 3-3`},
		},
		"mpiexec": {
			"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 12 RUNNING AT node7\n=   EXIT CODE: 139\nx: node8: rank 4 died from signal 9\n",
			[]string{`signal rank - pid 12 host "node7": SIGSEGV:  code 139 line 3-3`, `signal rank 4 pid 0 host "node8": SIGKILL:  line 4-4`},
		},
		"hydra's exit code is a signal": {
			"=   RANK 3 PID 33121 RUNNING AT node07\n=   EXIT CODE: 9\n=   CLEANING UP REMAINING PROCESSES\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n",
			[]string{`signal rank 3 pid 33121 host "node07": SIGKILL:  line 2-4`},
		},
		"kernel": {
			"python3[44123]: segfault at 0 ip 00007f22 sp 00007ffd error 4 in libtokenizers.so[7f2200+100000]\nXorg[12]: segfault at 0 ip 0 sp 0 error 4 in libc.so.6[1+2]\n" +
				"[77.1] traps: pt_main_thread[7] trap invalid opcode ip:7f sp:7e error:0 in libtorch_cpu.so[7f00+1]\n",
			[]string{`signal rank - pid 44123 host "": SIGSEGV:  at libtokenizers.so:0  line 1-1`, `signal rank - pid 7 host "": SIGILL:  at libtorch_cpu.so:0  line 3-3`},
		},
		"assertion": {"python: src/a.cpp:12: void f(int): Assertion `n > 0' failed.\n", []string{`assertion rank - pid 0 host "": : n > 0 at src/a.cpp:12 void f(int) line 1-1`}},
		"device assertion": {
			"../a/Loss.cu:242: kernel: block: [0,0,0], thread: [4,0,0] Assertion `t < n` failed.\n../a/Loss.cu:242: kernel: block: [0,0,0], thread: [5,0,0] Assertion `t < n` failed.\n",
			[]string{`assertion rank - pid 0 host "": : t < n at ../a/Loss.cu:242 kernel line 1-1`},
		},
		"fortran": {
			"forrtl: severe (24): end-of-file during read, unit 10\nforrtl: severe (174): SIGSEGV, segmentation fault occurred\nforrtl: severe (41): insufficient virtual memory\nFortran runtime error: End of file\n",
			[]string{
				`exit rank - pid 0 host "": : end-of-file during read, unit 10 code 24 line 1-1`, `signal rank - pid 0 host "": SIGSEGV:  code 174 line 2-2`,
				`exit rank - pid 0 host "": : End of file line 4-4`,
			},
		},
		"ended well": {"Process 1 exit with status code 0\nsrun: error: node7: task 3: Requested node configuration is not available\n", nil},
	} {
		got := expect.Map(texttest.Sections("job.log", test.text).Logs.Deaths, told)
		expect.NoDiff(t, test.want, got, "%s: %s", name, test.text)
	}
}

// TestDeathsOfOthers checks what is known of a death beside its words: whether it ended
// the process, what was behind it, and who was meant by the name of the text.
func TestDeathsOfOthers(t *testing.T) {
	value := traceback("/work/train.py", "ValueError: x")
	one := func(name, text string) facts.Death {
		f := texttest.Parse(name, text)
		expect.Must(t, f.Logs != nil && len(f.Logs.Deaths) == 1, "got %+v of\n%s", f.Logs, text)
		return f.Logs.Deaths[0]
	}
	d := one("a.log", "Exception ignored in: <function f at 0x7f>\n"+value)
	expect.That(t, d.Ignored, "not ignored: %+v", d)
	two := texttest.Parse("a.log", "ERROR sample 7, taking the next one\n"+value+"ERROR sample 9, skipping it\n"+traceback("/work/train.py", "OSError: y")).Logs.Deaths
	expect.That(t, len(two) == 2 && two[0].Ignored && two[1].Ignored, "what is said to go on is not ignored: %+v", two)
	expect.That(t, !one("a.log", "ERROR sample 7\n"+value).Ignored, "what is only logged is ignored")
	d = one("a.log", value+strings.Repeat("step 3 loss 2.1\n", 9))
	expect.That(t, d.StepsAfter == 8 && !d.Uncaught && !d.Ignored, "got %+v", d)
	d = one("attempt_0/3/stderr.log", value)
	expect.That(t, d.Rank != nil && *d.Rank == 3, "got %+v", d)
	chained := traceback("/work/a.py", "KeyError: 'k'") + "\nThe above exception was the direct cause of the following exception:\n\n" + value
	d = one("a.log", chained)
	expect.That(t, len(d.Behind) == 1 && d.Behind[0] == "KeyError: 'k'", "got %+v", d)
	d = one("a.log", value+value+value)
	expect.That(t, d.Count == 3 && d.Line == 21, "got %+v", d)
}

// TestWaitsThatEnd checks that a job goes on where XLA or a server says that a wait is over.
func TestWaitsThatEnd(t *testing.T) {
	const stuck = "E0312 10:11:02.881000 12345 rendezvous.cc:102] [id=3] This thread has been waiting for `run_id=7` for 20 seconds and may be stuck.\n"
	const unstuck = "E0312 10:11:32.881000 12345 rendezvous.cc:108] [id=3] This thread is unstuck waiting for `run_id=7` after 50.3s.\n"
	const waits = "(EngineCore_DP0 pid=6120) INFO [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds.\n"
	for text, want := range map[string]bool{
		stuck: false, stuck + unstuck: true, stuck + unstuck + stuck: false,
		waits: false, waits + "(APIServer pid=1) INFO:     Application startup complete.\n": true,
	} {
		f := texttest.Parse("job.log", text)
		expect.That(t, f.Logs != nil && job.Of(f).WentOn == want, "went on: %v, want %v:\n%s", !want, want, text)
	}
}

func FuzzDeaths(f *testing.F) {
	f.Add(traceback("/work/a.py", "KeyError: 'k'"))
	f.Add("Fatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):\n  File \"a.py\", line 1 in f\n")
	f.Add("[rank3]: During handling of the above exception, another exception occurred:\n")
	f.Add("srun: error: node7: task 3: Exited with exit code 1\nstep 1 loss 2.0\n")
	f.Add("Root Cause (first observed failure):\n[0]:\n  rank      : 13 (local_rank: 5)\n  exitcode  : -7 (pid: 3327)\n")
	f.Fuzz(func(t *testing.T, text string) {
		deaths := texttest.Sections("fuzz.log", text).Logs.Deaths
		expect.That(t, len(deaths) <= 64, "%d deaths", len(deaths))
		for _, d := range deaths {
			expect.That(t, len(d.Text) <= 300 && len(d.Said) <= 300 && len(d.Class) <= 200 && len(d.File) <= 200 && len(d.Behind) <= 4, "too long: %+v", d)
		}
	})
}

// The forms of PyTorch 2.9: the timeout names the collective, the status the group.
const (
	timedOut = "[rank{r}]:[E1122 21:06:11.437315714 ProcessGroupNCCL.cpp:689] [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=22, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600073 milliseconds before timing out.\n"
	status   = "[rank{r}]:[E1122 21:06:11.437470193 ProcessGroupNCCL.cpp:2303] [PG ID 0 PG GUID 0(default_pg) Rank {r}]  failure detected by watchdog at work sequence id: 22 PG status: last enqueued work: 81, last completed work: 21\n"
	dump     = "[rank{r}]:[E1122 21:06:12.667221745 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank {r}] Received a dump signal due to a collective timeout from  rank 1 and we will try our best to dump the debug info. Last enqueued NCCL work: 24, last completed NCCL work: 21.This is most likely caused by incorrect usages of collectives\n"
	ended    = "[rank{r}]:[E1122 21:07:12.055483662 ProcessGroupNCCL.cpp:2119] [PG ID 0 PG GUID 0(default_pg) Rank {r}] Process group watchdog thread terminated with exception: [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=22, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600073 milliseconds before timing out.\n"
	unnamed  = "[E ProcessGroupNCCL.cpp:1458] [Rank {r}] Timeout at NCCL work: 22, last enqueued NCCL work: 24, last completed NCCL work: 21.\n"
)

func of(rank string, lines ...string) string {
	return strings.ReplaceAll(strings.Join(lines, ""), "{r}", rank)
}

func TestProgress(t *testing.T) {
	unranked := strings.TrimPrefix(strings.ReplaceAll(status, " Rank {r}]", "]"), "[rank{r}]:")
	for _, tt := range []struct {
		name, text string
		want       string
	}{
		{"timeout and status", of("1", timedOut, status, ended), `[{"group":"0(default_pg)","rank":1,"seq":22,"op":"ALLREDUCE","elements":1024,"enqueued":81,"completed":21}]`},
		{"another rank's signal", of("0", dump), `[{"group":"0(default_pg)","rank":0,"enqueued":24,"completed":21}]`},
		{"own timeout behind the signal", of("0", dump, timedOut), `[{"group":"0(default_pg)","rank":0,"seq":22,"op":"ALLREDUCE","elements":1024,"enqueued":24,"completed":21}]`},
		{"more enqueued later", of("0", dump, status), `[{"group":"0(default_pg)","rank":0,"enqueued":81,"completed":21}]`},
		{"without a group", of("2", timedOut, unnamed), `[{"rank":2,"seq":22,"op":"ALLREDUCE","elements":1024,"enqueued":24,"completed":21}]`},
		{"two ranks", of("1", timedOut, status) + of("0", dump), `[{"group":"0(default_pg)","rank":0,"enqueued":24,"completed":21},{"group":"0(default_pg)","rank":1,"seq":22,"op":"ALLREDUCE","elements":1024,"enqueued":81,"completed":21}]`},
		{
			"another hang of the same rank", of("0", dump) + strings.ReplaceAll(of("0", dump), "completed NCCL work: 21", "completed NCCL work: 3"),
			`[{"group":"0(default_pg)","rank":0,"enqueued":24,"completed":21},{"group":"0(default_pg)","rank":0,"enqueued":24,"completed":3}]`,
		},
		{
			"a timeout of another group", of("0", dump) + strings.ReplaceAll(of("0", timedOut), "SeqNum=22", "SeqNum=99"),
			`[{"group":"0(default_pg)","rank":0,"enqueued":24,"completed":21},{"rank":0,"seq":99,"op":"ALLREDUCE","elements":1024}]`,
		},
		{"no rank", unranked, `null`},
		{"rank5.log", unranked, `[{"group":"0(default_pg)","rank":5,"enqueued":81,"completed":21}]`},
	} {
		list := texttest.Sections(tt.name, tt.text).Logs.Progress
		for i := range list {
			expect.That(t, list[i].Text != "" && list[i].Line != 0 && list[i].Source == tt.name, "%s: got %+v", tt.name, list[i])
			list[i].Text, list[i].Line, list[i].Source = "", 0, ""
		}
		raw := expect.Value(json.Marshal(list))(t)
		expect.Equal(t, tt.want, strings.ReplaceAll(string(raw), `,"text":"","source":"","line":0`, ""), "%s", tt.name)
	}
}

// TestClosings checks which last words of a program show that it survived an exception before them.
func TestClosings(t *testing.T) {
	t.Parallel()
	said := func(closing string) string {
		return traceback("/work/train.py", "RuntimeError: CUDA error: x") + closing
	}
	for closing, want := range map[string]bool{
		"rank 0: 5 steps done at batch 16384\n": true, "all tests passed\n": true, "[worker] finished.\n": true, "max error 0.0, failures 0\n": true,
		"worker 0: sum 3.0, exit 0\n": true, "SUCCESS\n": true, "verify: OK\n": true, "0 errors\n": true, "training finished, 40 steps\n": true, "rank 0: sum 3.0\nrank 1: sum 5.0\n": true, "saved\nrank 1: done\nrank 0: done\n": true,
		"": false, "going on\n": false, "12 failures\n": false, "not done\n": false, "waiting until all ranks are done\n": false, "model loading done\n": false,
		"process group initialized: ok\n": false, "node7:1:1 [0] NCCL INFO comm 0x1 rank 0 - Destroy COMPLETE\n": false, "exit 1\n": false, "$ grep -c x /proc/modules\nnvidia 12 0\nnvidia_uvm 13 0\ndone\n": false, "8\n8\n": false, "done\nWhy did it not work for me?\n": false, "done\nIt is slow on this machine as well.\n": false, "rank 0: starts 3\nrank 1: starts 3\n": false, "done\nother output\n": false,
	} {
		expect.Equal(t, want, texttest.Parse("a.log", said(closing)).Logs.Deaths[0].StepsAfter == facts.EndedWell, "%q: survived", closing)
	}
	expect.That(t, texttest.Parse("a.log", "done\n"+said("")).Logs.Deaths[0].StepsAfter == 0, "it counts before the exception")
	ranked := func(closing string) int {
		return texttest.Parse("a.log", "[rank1]: begins\n[rank1]: step 1 loss 2.00\n"+said(closing)).Logs.Deaths[0].StepsAfter
	}
	expect.That(t, ranked("[rank0]: done\n") != facts.EndedWell && ranked("[rank0]: done\n[rank1]: done\n") == facts.EndedWell, "one rank's word counts for the other, or both do not")
}

// TestSurvived checks that an error behind which its line says that the process goes on is no message, if not of a library.
func TestSurvived(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{
		"OSError: [Errno 24] Too many open files: 'x'\n":                                             1,
		"cache: [Errno 24] Too many open files: 'x'; closing the oldest 500 handles\n":               0,
		"MPI_ERR_TRUNCATE: message truncated, using the long form\n":                                 0,
		"batch too large (CUDA out of memory), skipping it\n":                                        0,
		"node7:1:1 [0] misc/x.cc:1 NCCL WARN Call to bind failed, falling back to another address\n": 1,
	} {
		got := len(cmp.Or(texttest.Parse("a.log", "step 1 loss 2.0\n"+line).Logs, &facts.LogFacts{}).Messages)
		expect.That(t, got == want, "%q: %d messages, want %d", line, got, want)
	}
}
