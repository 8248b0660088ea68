package runs_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// head is how nccl-tests begins its output (src/common.cu), for GPUs of one machine.
func head(gpus int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# nThread 1 nGpus %d minBytes 33554432 maxBytes 67108864 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n", gpus)
	for i := range gpus {
		fmt.Fprintf(&b, "#  Rank %2d Group  0 Pid   4121 on    node1 device %2d [0x%d1] NVIDIA L40S\n", i, i, i+1)
	}
	return b.String() + `#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
`
}

func rows(gbps float64) string {
	return fmt.Sprintf("    33554432       8388608     float     sum      -1    3195.7   10.50   %.2f      0    3195.7   10.50   %.2f      0\n", gbps, gbps)
}

// table is that of two GPUs, to its end.
func table(gbps float64) string {
	return head(2) + rows(gbps) + fmt.Sprintf("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : %.4f\n#\n", gbps)
}

const (
	watchdog = "[rank3]:[E1119 10:12:44.113254561 ProcessGroupNCCL.cpp:685] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600021 milliseconds before timing out.\n"
	dies     = "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:93, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.7\n"
	steps    = "step 10 loss 3.71\nstep 20 loss 3.21\nstep 30 loss 2.90\nstep 40 loss 2.80\n"
)

// output is an output and the outcome that it shows.
type output struct {
	what, output, outcome string
	told                  bool
}

func (e output) trains() bool   { return strings.Contains(e.output, " loss ") }
func (e output) measures() bool { return strings.Contains(e.output, " nThread ") }

var outcomes = []output{
	{"a table to its end", table(10), "ok", true},
	{"steps that go on", steps, "ok", true},
	{"exit code 0", "Process finished with exit code 0\n", "ok", true},
	{"a test that passes", "all_reduce on 2 ranks: PASSED\n", "ok", true},
	{"a table without rows", head(2) + "^C\n", "hung", false},
	{"a table whose rows stop", head(2) + rows(10) + "^C\n", "hung", false},
	{"a table whose rows stop, and a word", head(2) + "hangs here\n", "hung", false},
	{"a watchdog's timeout", watchdog, "hung", true},
	{"the code of timeout(1)", "srun: error: task 0: Exited with exit code 124\n", "hung", true},
	{"^C", "loading\n^C\n", "hung", false},
	{"an error", dies, "failed", true},
	{"wrong results", head(2) + rows(10) + "# Out of bounds values : 3 FAILED\n# Avg bus bandwidth    : 10.5\n", "failed", true},
	{"an exit code", "node1: task 0: exit code 1\n", "failed", true},
	{"nothing", "loading\n", "unknown", false},
	{"steps, and ^C", steps + "^C\n", "unknown", false},
	{"a stop by hand", "loading\nexit code 130\n", "unknown", false},
}

// texts are one or two texts with two runs, the first without a variable, and the second
// with it.
type texts [][2]string

// ways are how people set a variable for a run, and tell runs apart: pairs of a text's name and its content, in which NAME=VALUE
// stands for the variable, and {without} and {with} for what the two runs put out.
var ways = map[string][]string{
	"prefix":                          typed("$ ./all_reduce_perf -b 8 -g 2", "$ NAME=VALUE ./all_reduce_perf -b 8 -g 2"),
	"prefix, quoted, of a named host": typed("ana@node1:~/t$ ./build/all_reduce_perf -b 8 -g 2", "ana@node1:~/t$ NAME='VALUE' ./build/all_reduce_perf -b 8 -g 2"),
	"env":                             typed("[root@node1 t]# python train.py", "[root@node1 t]# env NAME=VALUE python train.py"),
	"export before":                   typed("$ torchrun --nproc_per_node=2 train.py", "$ export NAME=VALUE\n$ torchrun --nproc_per_node=2 train.py"),
	"unset before":                    {"terminal.txt", "$ export NAME=VALUE\n$ ./all_reduce_perf -g 2\n{with}$ unset NAME\n$ ./all_reduce_perf -g 2\n{without}$ \n"},
	"docker run":                      typed("$ docker run --rm --gpus all image ./all_reduce_perf -g 2", "$ docker run --rm --gpus all -e NAME=VALUE image ./all_reduce_perf -g 2"),
	"docker run of several lines": typed(
		"$ docker run --rm \\\n  --gpus all \\\n  image ./all_reduce_perf -g 2", "$ docker run --rm \\\n  --gpus all \\\n  -e NAME=VALUE \\\n  image ./all_reduce_perf -g 2",
	),
	"mpirun -x":              typed("$ mpirun -np 2 ./all_reduce_perf -b 8", "$ mpirun -np 2 -x NAME=VALUE ./all_reduce_perf -b 8"),
	"mpirun env":             typed("$ mpirun -np 2 ./all_reduce_perf -b 8", "$ mpirun -np 2 env NAME=VALUE ./all_reduce_perf -b 8"),
	"srun --export":          typed("$ srun -n 2 --export=ALL ./all_reduce_perf -b 8", "$ srun -n 2 --export=ALL,NAME=VALUE ./all_reduce_perf -b 8"),
	"without a prompt":       typed("mpirun -np 2 ./all_reduce_perf -b 8", "NAME=VALUE mpirun -np 2 ./all_reduce_perf -b 8"),
	"set -x":                 typed("+ mpirun -np 2 ./all_reduce_perf -b 8", "+ mpirun -np 2 -x NAME=VALUE ./all_reduce_perf -b 8"),
	"headings":               {"notes.md", "Without:\n\n{without}\nWith NAME=VALUE:\n\n{with}"},
	"headings in Markdown":   {"notes.md", "## NAME=VALUE\n```\n{with}```\n## without NAME\n```\n{without}```\n"},
	"headings over commands": {"notes.md", "1. default\n$ ./all_reduce_perf -g 2\n{without}2. with NAME=VALUE\n$ ./all_reduce_perf -g 2\n{with}"},
	"files":                  {"default.log", "{without}", "NAME=VALUE.log", "{with}"},
}

func typed(command, other string) []string {
	return []string{"terminal.txt", command + "\n{without}" + other + "\n{with}$ \n"}
}

// written are the texts of two runs in a way.
func written(way string, v [2]string, without, with string) (all texts) {
	fill := strings.NewReplacer("NAME", v[0], "VALUE", v[1], "{without}", without, "{with}", with).Replace
	for pair := range slices.Chunk(ways[way], 2) {
		all = append(all, [2]string{fill(pair[0]), fill(pair[1])})
	}
	return all
}

// variables are those of the table, with a value that turns something off.
var variables = [][2]string{
	{"NCCL_P2P_DISABLE", "1"},
	{"NCCL_P2P_LEVEL", "LOC"},
	{"NCCL_SHM_DISABLE", "1"},
	{"NCCL_IB_DISABLE", "1"},
	{"NCCL_NET_GDR_LEVEL", "0"},
	{"NCCL_NET_GDR_READ", "0"},
	{"NCCL_NVLS_ENABLE", "0"},
	{"NCCL_CUMEM_ENABLE", "0"},
	{"NCCL_CUMEM_HOST_ENABLE", "0"},
	{"NCCL_SOCKET_IFNAME", "eth0"},
	{"NCCL_ALGO", "Ring"},
	{"NCCL_PROTO", "Simple"},
}

func read(all texts) *facts.Facts {
	r := text.NewReading()
	for _, t := range all {
		texttest.Text(r, t[0], t[1])
	}
	return r.Finish()
}

// TestRuns checks that two runs are told apart however a variable is set, that it is put
// down to the one that has it, that each outcome is known, and that only runs whose
// outcomes are known are compared. By day, each outcome is tried in each way, first and last.
func TestRuns(t *testing.T) {
	try := expect.EachNth(8)
	for _, way := range slices.Sorted(maps.Keys(ways)) {
		for n, without := range outcomes {
			for m, with := range outcomes {
				v := variables[(n+m)%len(variables)]
				if testing.Short() && (n+m)%12 > 0 || !try(way+", first "+without.what, way+", last "+with.what) {
					continue
				}
				t.Run(fmt.Sprintf("%s, %s: %s, then %s", way, v[0], without.what, with.what), func(t *testing.T) {
					checkRuns(t, way, read(written(way, v, without.output, with.output)), v, without, with)
				})
			}
		}
	}
}

// TestNoise checks that what launchers, collectors of logs and people put around the lines of
// a text changes nothing but where things stand: there are the same runs, in the same order,
// with the same variables, GPUs and outcomes for the same reasons, and so the same
// comparisons; and the same variables are taken for those of trials.
func TestNoise(t *testing.T) {
	t.Parallel()
	for i, how := range slices.Sorted(maps.Keys(texttest.Noises)) {
		if testing.Short() && i%8 > 0 {
			continue
		}
		noise := texttest.Noises[how]
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			try := expect.EachNth(4)
			for _, way := range slices.Sorted(maps.Keys(ways)) {
				for n := i % pairsOfNoise; n < len(outcomes); n += pairsOfNoise {
					if !try(way) {
						continue
					}
					without, with := outcomes[n], outcomes[(n+i)%len(outcomes)]
					v := variables[(n+i)%len(variables)]
					clean := written(way, v, without.output, with.output)
					noisy := slices.Clone(clean)
					for i := range noisy {
						noisy[i][1] = noise.Do(noisy[i][1])
					}
					got, want := runsAnywhere(read(noisy), noise), runsAnywhere(read(clean), noise)
					expect.That(t, got == want, "%s, %s: %s, then %s: got\n%swant\n%s", way, v[0], without.what, with.what, got, want)
				}
			}
		})
	}
}

// pairsOfNoise is of how many outcomes TestNoise takes one: each noise takes others, and all
// of them together take each. By day it takes one of each way, and every fourth.
const pairsOfNoise = 4

// runsAnywhere is what facts tell of runs, but for what noise takes away: the lines; the
// host, which a label before the lines tells; and where a screen breaks lines in the middle,
// the rows of tables and the ends of commands, with the counts of GPUs that they tell.
func runsAnywhere(f *facts.Facts, noise texttest.Noise) string {
	var b strings.Builder
	for _, r := range f.Runs {
		r.Host, r.Line, r.Shown, r.Text = "", 0, 0, ""
		if r.GBps != nil && !noise.Breaks {
			fmt.Fprintln(&b, *r.GBps)
		}
		if r.GBps, r.Microseconds = nil, nil; noise.Breaks {
			r.GPUs = 0
		}
		fmt.Fprintf(&b, "%+v\n", r)
	}
	fmt.Fprintf(&b, "%+v\n", f.Comparisons)
	for _, v := range cmp.Or(f.Env, &facts.EnvFacts{}).Variables {
		fmt.Fprintln(&b, v.Name, v.Value, v.Trial, v.Effective)
	}
	return b.String()
}

// TestWidths checks that an output whose last line is as wide as a screen is not taken for
// one that goes on in the heading or the command below it.
func TestWidths(t *testing.T) {
	for way := range ways {
		for _, width := range []int{80, 100, 120, 132, 160, 200} {
			const said = "ncclSystemError: System call (e.g. socket, malloc) or external library call failed "
			wide := output{"an error", said[:min(len(said), width)] + strings.Repeat("x", max(0, width-len(said))) + "\n", "failed", true}
			t.Run(fmt.Sprintf("%s, %d", way, width), func(t *testing.T) {
				v := variables[0]
				checkRuns(t, way, read(written(way, v, wide.output, wide.output)), v, wide, wide)
			})
		}
	}
}

// noCommand are the ways that show what was run by its output alone: a training and a
// benchmark are then two programs.
var noCommand = map[string]bool{"headings": true, "headings in Markdown": true, "files": true}

func checkRuns(t *testing.T, way string, f *facts.Facts, v [2]string, without, with output) {
	t.Helper()
	if noCommand[way] && (without.trains() && with.measures() || with.trains() && without.measures()) {
		expect.Len(t, 0, f.Comparisons, "a training and a benchmark are compared")
		return
	}
	if without.outcome == "unknown" && with.outcome == "unknown" {
		expect.That(t, len(f.Runs)+len(f.Comparisons) == 0, "nothing is known, and there are runs: %+v", f.Runs)
		return
	}
	set := slices.IndexFunc(f.Runs, func(r facts.Run) bool { return r.Variables[v[0]] == v[1] })
	plain := slices.IndexFunc(f.Runs, func(r facts.Run) bool { return r.Variables[v[0]] == "" })
	// Where nothing stands under a heading or in a file there is no run.
	if (set < 0 || plain < 0) && (without.outcome == "unknown" || with.outcome == "unknown") {
		expect.Len(t, 0, f.Comparisons, "it")
		return
	}
	expect.Must(t, len(f.Runs) == 2 && set >= 0 && plain >= 0, "got %+v", f.Runs)
	for i, want := range map[int]output{set: with, plain: without} {
		r := f.Runs[i]
		expect.That(t, r.Outcome == want.outcome && r.Told == want.told && (r.Shown == 0) == (want.outcome == "unknown"), "got %+v, want %s, told: %v", r, want.outcome, want.told)
	}
	known := without.outcome != "unknown" && with.outcome != "unknown"
	want := []facts.Comparison{{Kind: "variable", Name: v[0], A: min(set, plain), B: max(set, plain)}}
	expect.That(t, known && slices.Equal(f.Comparisons, want) || !known && len(f.Comparisons) == 0, "got %+v, want %+v: %v", f.Comparisons, want, known)
	if f.Env == nil {
		return // Headings and names of files set nothing.
	}
	for _, e := range f.Env.Variables {
		expect.That(t, e.Name != v[0] || e.Trial && !e.Effective, "%+v is taken for the job's", e)
	}
}

// TestTrials checks which variables are taken for those of trials: what all runs have, what
// a manifest sets too and what env shows is the job's.
func TestTrials(t *testing.T) {
	const with, without = "$ NCCL_P2P_DISABLE=1 ./all_reduce_perf -g 2\n", "$ ./all_reduce_perf -g 2\n"
	for _, tt := range []struct {
		what  string
		texts texts
		trial bool
	}{
		{"one of two runs", texts{{"a", with + table(10) + without + head(2) + "^C\n"}}, true},
		{"all runs", texts{{"a", with + table(10) + with + head(2) + "^C\n"}}, false},
		{"one run", texts{{"a", with + table(10)}}, false},
		{"another program", texts{{"a", with + table(10) + "$ python train.py\n" + steps}}, false},
		{"no outcome", texts{{"a", with + without}}, false},
		{"env shows it", texts{{"a", "$ env\nNCCL_P2P_DISABLE=1\n" + with + table(10) + "$ NCCL_P2P_DISABLE=0 ./all_reduce_perf -g 2\n" + head(2) + "^C\n"}}, false},
		{"a script sets it", texts{{"run.sh", "#!/bin/bash\nexport NCCL_P2P_DISABLE=1\n"}, {"a", with + table(10) + without + head(2) + "^C\n"}}, false},
	} {
		f := read(tt.texts)
		i := slices.IndexFunc(f.Env.Variables, func(v facts.Variable) bool { return v.Name == "NCCL_P2P_DISABLE" && v.Value == "1" })
		expect.Must(t, i >= 0, "%s: the variable is missing", tt.what)
		v := f.Env.Variables[i]
		expect.That(t, v.Trial == tt.trial && v.Effective != tt.trial, "%s: got %+v, trial: %v", tt.what, v, tt.trial)
	}
}

// TestDifferences checks what two runs differ in, and which are not compared.
func TestDifferences(t *testing.T) {
	const stops = "^C\n"
	run := func(command, output string) string { return "$ " + command + "\n" + output }
	file := func(name, output string) [2]string { return [2]string{name, output} }
	for _, tt := range []struct {
		what string
		of   texts
		want string // The kind and the name of each comparison.
	}{
		{"other GPUs", texts{file("a", run("CUDA_VISIBLE_DEVICES=0,1 ./all_reduce_perf -g 2", table(9))+run("CUDA_VISIBLE_DEVICES=2,3 ./all_reduce_perf -g 2", head(2)+stops))}, "devices"},
		{"more GPUs", texts{file("a", run("./all_reduce_perf -g 2", table(9))+run("./all_reduce_perf -g 4", head(4)+stops))}, "gpus"},
		{"more processes", texts{file("a", run("torchrun --nproc_per_node=2 t.py", steps)+run("torchrun --nproc_per_node=4 t.py", dies))}, "gpus"},
		{"more machines", texts{file("a", run("mpirun -np 8 -H a ./all_reduce_perf", steps)+run("mpirun -np 16 -H a,b ./all_reduce_perf", dies))}, "nodes"},
		{"GPUs by headings", texts{file("a", "GPUs 0,1:\n"+table(9)+"GPUs 1,2:\n"+head(2)+stops)}, "devices"},
		{"counts by headings", texts{file("a", "2 GPUs:\n"+table(9)+"4 GPUs:\n"+head(4)+stops)}, "gpus"},
		{"counts by files", texts{file("2gpu.log", table(9)), file("4gpu.log", head(4)+stops)}, "gpus"},
		{"another version", texts{file("a", run("./t.sh", "NCCL version 2.18.3+cuda12.2\n"+steps)+run("./t.sh", "NCCL version 2.27.7+cuda12.2\n"+dies))}, "version nccl"},
		{"versions that pip installs", texts{file("a", run("pip install nvidia-nccl-cu12==2.26.2", "")+run("python t.py", steps)+run("pip install nvidia-nccl-cu12==2.27.3", "")+run("python t.py", "it hangs\n"))}, "version nccl"},
		{"the IOMMU by headings", texts{file("a", "## before iommu=pt\n"+table(6)+"## with iommu=pt\n"+table(20))}, "variable iommu"},
		{"the IOMMU by files", texts{file("iommu-on.log", table(6)), file("iommu-off.log", table(20))}, "variable iommu"},
		{"ACS by headings", texts{file("a", "ACS on:\n"+head(2)+stops+"ACS off:\n"+table(20))}, "variable acs"},
		{"words in files' names", texts{file("p2p-on.log", head(2)), file("p2p-off.log", table(20))}, "variable NCCL_P2P_DISABLE"},
		{"words in files' names", texts{file("with-nvls.log", head(2)), file("no-nvls.log", table(20))}, "variable NCCL_NVLS_ENABLE"},
		{"outcomes that people say", texts{file("a", "NCCL_P2P_DISABLE=1: works\ndefault: hangs\n")}, "variable NCCL_P2P_DISABLE"},
		{"what a log says it read", texts{
			file("default.log", ncclInfo("NCCL_DEBUG set by environment to INFO")+dies), file("nop2p.log", ncclInfo("NCCL_P2P_DISABLE set by environment to 1")+"PASSED\n"),
		}, "variable NCCL_P2P_DISABLE"},
		{"an option of a server that answers", texts{file("a", run("vllm serve m -tp 2", "$ curl localhost\n{\"text\":\"!!!!!!!!!!!!!!!!!!!!!!!!\"}\n")+run("vllm serve m -tp 2 --disable-custom-all-reduce", "$ curl localhost\n{\"text\": \" Paris, and more\"}\n"))}, "variable custom-all-reduce"},
		// Not one thing alone.
		{"two variables", texts{file("a", run("./all_reduce_perf -g 2", head(2)+stops)+run("NCCL_P2P_DISABLE=1 NCCL_IB_DISABLE=1 ./all_reduce_perf -g 2", table(9)))}, ""},
		{"a variable and the number of GPUs", texts{file("a", run("./all_reduce_perf -g 4", head(4)+stops)+run("NCCL_P2P_DISABLE=1 ./all_reduce_perf -g 2", table(9)))}, ""},
		{"what is printed", texts{file("a", run("NCCL_DEBUG=INFO ./all_reduce_perf -g 2", head(2)+stops)+run("./all_reduce_perf -g 2", table(9)))}, ""},
		{"nothing", texts{file("a", run("./all_reduce_perf -g 2", head(2)+stops)+run("./all_reduce_perf -g 2", table(9)))}, ""},
		{"now and then", texts{file("a", run("./t.sh", dies)+run("./t.sh", steps)+run("NCCL_P2P_DISABLE=1 ./t.sh", steps))}, ""},
		{"another program", texts{file("a", run("./broadcast_perf -g 2", head(2)+stops)+run("NCCL_P2P_DISABLE=1 ./all_reduce_perf -g 2", table(9)))}, ""},
		{"other arguments", texts{file("a", run("./all_reduce_perf -e 8G -g 2", head(2)+stops)+run("NCCL_P2P_DISABLE=1 ./all_reduce_perf -e 1M -g 2", table(9)))}, ""},
		{"another host", texts{file("a", "a@node1:~$ ./all_reduce_perf -g 2\n"+head(2)+stops+"a@node2:~$ NCCL_P2P_DISABLE=1 ./all_reduce_perf -g 2\n"+table(9))}, ""},
		{"ranks of one job", texts{file("rank0.log", ncclInfo("NCCL_P2P_DISABLE set by environment to 1")+dies), file("rank1.log", steps)}, ""},
		{"prose", texts{file("a", "If it hangs, try NCCL_P2P_DISABLE=1.\nWith NCCL_P2P_DISABLE=1 it may work, without it it may hang.\n"+dies)}, ""},
		{"a program that writes of its GPUs", texts{file("a", run("NCCL_P2P_DISABLE=1 ./t.sh", "Found 2 GPUs:\nloading\nUsing 2 GPUs:\n"+steps)+run("./t.sh", "Found 2 GPUs:\n"+dies))}, "variable NCCL_P2P_DISABLE"},
		{"what a log says again", texts{file("a", "+ mpirun -np 2 ./t.sh\n"+ncclInfo("NCCL_IB_DISABLE set by environment to 1")+dies+"+ mpirun -np 2 -x NCCL_ALGO=Ring ./t.sh\n"+ncclInfo("NCCL_IB_DISABLE set by environment to 1")+"PASSED\n")}, "variable NCCL_ALGO"},
		{"steps of a run that goes on from a checkpoint", texts{file("a", "+ mpirun -np 2 ./t.sh\n"+steps+"+ mpirun -np 2 -x NCCL_ALGO=Ring ./t.sh\n"+strings.ReplaceAll(steps, "step ", "step 1")+"+ mpirun -np 2 -x NCCL_ALGO=Tree ./t.sh\n"+dies)}, "variable NCCL_ALGO, variable NCCL_ALGO, variable NCCL_ALGO"},
		{"a variable of another host", texts{file("a", "a@node1:~$ export NCCL_P2P_DISABLE=1\na@node2:~$ ./t.sh\n"+dies+"a@node2:~$ NCCL_P2P_DISABLE=1 ./t.sh\nPASSED\n")}, "variable NCCL_P2P_DISABLE"},
		{"a variable that somebody else exports", texts{file("a", "> $ export NCCL_P2P_DISABLE=1\n"+run("./t.sh", dies)+run("NCCL_P2P_DISABLE=1 ./t.sh", "PASSED\n"))}, "variable NCCL_P2P_DISABLE"},
		{"an answer to a request", texts{file("a", run("./t.sh", dies)+"> Could you try with NCCL_P2P_DISABLE=1?\n"+run("NCCL_P2P_DISABLE=1 ./t.sh", "PASSED\n"))}, "variable NCCL_P2P_DISABLE"},
		{"looks at the machine between", texts{file("a", run("./t.sh", dies)+"$ nvidia-smi -L\n$ pip list\n$ ip addr\n$ pkill python\n$ cat /proc/cmdline\n"+run("NCCL_P2P_DISABLE=1 ./t.sh", "PASSED\n"))}, "variable NCCL_P2P_DISABLE"},
		{"sudo that keeps the variables", texts{file("a", "$ export NCCL_P2P_DISABLE=1\n"+run("sudo -E ./t.sh", "PASSED\n")+"$ unset NCCL_P2P_DISABLE\n"+run("sudo -E ./t.sh", dies))}, "variable NCCL_P2P_DISABLE"},
		{"ACS, and a reboot between", texts{file("a", "ACS on:\n"+head(2)+stops+"\nThen I rebooted.\n\nACS off:\n"+table(20))}, "variable acs"},
		{"outputs of thousands of lines", texts{file("a", run("./t.sh", strings.Repeat(ncclInfo("NCCL_IB_DISABLE set by environment to 1"), 900)+dies)+run("NCCL_P2P_DISABLE=1 ./t.sh", strings.Repeat(ncclInfo("NCCL_IB_DISABLE set by environment to 1"), 900)+steps))}, "variable NCCL_P2P_DISABLE"},
		{"the second prompt of a shell", texts{file("a", run("docker run --rm \\\n> --gpus all \\\n> image ./t.sh", dies)+run("docker run --rm \\\n> --gpus all \\\n> -e NCCL_P2P_DISABLE=1 \\\n> image ./t.sh", "PASSED\n"))}, "variable NCCL_P2P_DISABLE"},
	} {
		f := read(tt.of)
		got := expect.Map(f.Comparisons, func(c facts.Comparison) string { return strings.TrimSpace(c.Kind + " " + c.Name) })
		expect.That(t, strings.Join(got, ", ") == tt.want, "%s: got %q, want %q: %+v", tt.what, got, tt.want, f.Runs)
	}
}

// TestNoConclusion checks that nothing is concluded where a text does not show that two runs
// differ in one thing alone, and of which run an outcome is.
func TestNoConclusion(t *testing.T) {
	const (
		plain, set = "$ ./t.sh\n", "$ NCCL_P2P_DISABLE=1 ./t.sh\n"
		passes     = "PASSED\n"
	)
	for what, content := range map[string]string{
		// Who writes.
		"another one's quote":                     "> $ ./t.sh\n> " + dies + "\nIt works for me:\n" + set + passes,
		"a quote below one's own run":             set + passes + "\n> $ ./t.sh\n> " + dies,
		"a quoted outcome below a run":            set + "loading\n> PASSED\n" + plain + dies,
		"a heading that asks":                     "Default:\n" + dies + "Does it work with NCCL_P2P_DISABLE=1?\n" + passes,
		"a heading in Markdown that asks":         "## Default\n" + dies + "## Does it work with NCCL_P2P_DISABLE=1?\n" + passes,
		"a heading that requests":                 "Default:\n" + dies + "Could you please try with NCCL_P2P_DISABLE=1:\n" + passes,
		"an indented prompt in a program's words": plain + "It hangs? Try this:\n    $ NCCL_P2P_DISABLE=1 ./t.sh\n" + dies + plain + passes,
		// Where it runs.
		"a shell on another host":         "$ export NCCL_P2P_DISABLE=1\n$ ssh node2\n" + plain + passes + "$ NCCL_P2P_DISABLE=0 ./t.sh\n" + dies,
		"a shell in a container":          "$ export NCCL_P2P_DISABLE=1\n$ docker exec -it c bash\n" + plain + passes + "$ NCCL_P2P_DISABLE=0 ./t.sh\n" + dies,
		"sudo leaves variables out":       "$ export NCCL_P2P_DISABLE=1\n$ sudo ./t.sh\n" + passes + "$ NCCL_P2P_DISABLE=0 ./t.sh\n" + dies,
		"another folder":                  "$ cd /a\n" + plain + dies + "$ cd /b\n" + set + passes,
		"a variable that is not exported": "$ ./t.sh\n" + dies + "$ NCCL_P2P_DISABLE=1\n$ ./t.sh\n" + passes,
		// What happened between.
		"a reboot between":                  plain + dies + "$ sudo reboot\n" + set + passes,
		"another driver between":            plain + dies + "$ sudo apt install nvidia-driver-580\n" + set + passes,
		"a module between":                  plain + dies + "$ sudo modprobe nvidia-peermem\n" + set + passes,
		"a file of variables between":       plain + dies + "$ source nccl.env\n" + set + passes,
		"another build between":             plain + dies + "$ git pull && make -j\n" + set + passes,
		"an edit between":                   plain + dies + "$ vim t.sh\n" + set + passes,
		"a setting of the machine between":  plain + dies + "$ sudo sysctl -w net.ipv4.tcp_mem=1\n" + set + passes,
		"a GPU that was reset between":      plain + dies + "$ sudo nvidia-smi --gpu-reset -i 0\n" + set + passes,
		"a heading that tells of a change":  plain + dies + "After a reboot:\n" + set + passes,
		"a sentence that tells of a change": plain + dies + "Then I rebooted the machine and tried again.\n" + set + passes,
		// What became of it.
		"a program that does not exist":           plain + passes + set + "bash: ./t.sh: No such file or directory\nexit code 127\n",
		"a program that may not be run":           plain + passes + set + "bash: ./t.sh: Permission denied\nexit status 126\n",
		"a training and a benchmark":              "Default:\n" + head(2) + "^C\nNCCL_P2P_DISABLE=1:\n" + steps,
		"the same twice, once cut off":            plain + table(9) + plain + head(2) + set + table(9),
		"a money's sign":                          plain + dies + "$ saved with NCCL_P2P_DISABLE=1\n" + passes,
		"a command whose end is in the next line": "$ mpirun -np 2 -H node1,node2 -x LD_LIBRARY_PATH -x NCCL_P2P_DISABLE=1 -x NCCL_I\nB_DISABLE=1 ./t.sh\n" + passes + "$ mpirun -np 2 -H node1,node2 -x LD_LIBRARY_PATH ./t.sh\n" + dies,
	} {
		f := texttest.Parse("a.txt", content)
		expect.That(t, len(f.Comparisons) == 0, "%s: %q: got %+v of %+v", what, content, f.Comparisons, f.Runs)
	}
}

func ncclInfo(said string) string {
	const before = "node1:2265:2265 [0] NCCL INFO "
	return before + "NCCL version 2.27.7+cuda12.9\n" + before + said + "\n" +
		before + "ncclCommInitRankConfig comm 0x15b10940 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 60 commId 0x793a730156002d12 - Init COMPLETE\n"
}

// TestNoRuns checks that texts without several runs have none.
func TestNoRuns(t *testing.T) {
	for _, content := range []string{
		table(10), dies, watchdog, "$ nvidia-smi\n$ lspci\n", "## Without\n## With\n", "$ ./all_reduce_perf -g 2\n" + table(10), "it hangs\n",
		"services:\n  a:\n    image: x\n    environment:\n      NCCL_P2P_DISABLE: \"1\"\n",
	} {
		f := texttest.Parse("a.txt", content)
		expect.That(t, len(f.Runs)+len(f.Comparisons) == 0, "%q: got %+v", content, f.Runs)
	}
}

// FuzzRuns checks the bounds of the facts, whatever the text.
func FuzzRuns(f *testing.F) {
	for way := range ways {
		for _, t := range written(way, variables[0], outcomes[4].output, outcomes[0].output) {
			f.Add(t[1])
		}
	}
	f.Add(strings.Repeat("$ ./t.sh\n^C\n$ NCCL_ALGO=Ring ./t.sh\nexit code 0\n", 100))
	f.Fuzz(func(t *testing.T, content string) {
		got := texttest.Parse("p2p-on.log", content)
		expect.That(t, len(got.Runs) <= 64 && len(got.Comparisons) <= 64, "%d runs, %d comparisons", len(got.Runs), len(got.Comparisons))
		for _, r := range got.Runs {
			expect.That(t, slices.Contains([]string{"ok", "failed", "hung", "unknown"}, r.Outcome) && r.Line >= 1 && len(r.Variables) <= 64 && len(r.Devices) <= 64, "got %+v", r)
		}
		for _, c := range got.Comparisons {
			expect.That(t, c.A >= 0 && c.A < c.B && c.B < len(got.Runs), "got %+v", c)
		}
	})
}

// TestMatrix checks that a table of what was tried gives a run for each outcome, and compares rows that differ in one thing.
func TestMatrix(t *testing.T) {
	t.Parallel()
	rows := func(header string, rows ...string) string {
		ruler := strings.Repeat("|---", strings.Count(header, "|")-1) + "|\n"
		return "What I tried:\n\n" + header + "\n" + ruler + strings.Join(rows, "\n") + "\n\nAny ideas?\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"versions":           {rows("| NCCL | 8 ranks | 32 ranks |", "| 2.26.5 | ok | ok |", "| 2.27.3 | ok | **hang at step 41** |"), "version nccl"},
		"files of a library": {rows("| ROCm | librccl.so.1 | graph |", "| 6.2.0 | 2.20.5 of 6.2.0 | hangs 20/20 |", "| 6.2.0 | 2.18.6 copied in | ok 20/20 |"), "version rccl"},
		"a variable":         {rows("| NCCL_P2P_DISABLE | result |", "| 0 | ❌ |", "| 1 | ✅ |"), "variable NCCL_P2P_DISABLE"},
		"words":              {rows("| setting | result |", "| baseline | hangs |", "| `NCCL_P2P_DISABLE=1` | works |"), "variable NCCL_P2P_DISABLE"},
		"rates":              {rows("| ACS | busbw (GB/s) |", "| on | 8.7 |", "| off | 26.1 |"), "variable acs"},
		"attempts":           {rows("| NCCL | runs |", "| 2.26.5 | 5/5 ok |", "| 2.27.3 | 0/5 ok |"), "version nccl"},
		"all of them":        {rows("| NCCL | graphs | result |", "| 2.28.9 | on | hangs, request 3 / 5 |", "| **2.30.4** | on | **200/200, 0 stalls** |", "| 2.28.9 again | on | hangs |"), "version nccl"},
		"beside a setting":   {rows("| GPUs | busbw (GB/s) |", "| ours | 17.6 |", "| ours and `NCCL_NET_GDR_LEVEL=SYS` | 33.1 |"), "variable NCCL_NET_GDR_LEVEL"},
		"some of them":       {rows("| NCCL | result |", "| 2.28.9 | 3/5 |", "| 2.30.4 | 5/5 |"), ""},
		"two differences":    {rows("| NCCL | driver | result |", "| 2.26.5 | 550 | ok |", "| 2.27.3 | 570 | hangs |"), ""},
		"not tried":          {rows("| NCCL | result |", "| 2.26.5 | ok |", "| 2.27.3 | - |"), ""},
		"no outcomes":        {rows("| NCCL | size |", "| 2.26.5 | 300 MB |", "| 2.27.3 | 301 MB |"), ""},
		"no table":           {"| NCCL | result |\n| 2.26.5 | ok |\n| 2.27.3 | hangs |\n", ""},
	} {
		f := texttest.Parse("issue.md", c.text)
		got := expect.Map(f.Comparisons, func(o facts.Comparison) string { return strings.TrimSpace(o.Kind + " " + o.Name) })
		expect.Equal(t, c.want, strings.Join(slices.Compact(got), ", "), "%s: %+v", name, f.Runs)
	}
}

// TestPeerAccessInWords checks that peer access that is not enabled is off, and that what is not broken works.
func TestPeerAccessInWords(t *testing.T) {
	f := texttest.Parse("issue.md", "I copy between GPUs. As long as peer access is not enabled, the copy is correct. With peer access enabled the data are lost. When I disable it, nothing is broken.\n")
	for _, r := range f.Runs {
		expect.That(t, (r.Variables["NCCL_P2P_DISABLE"] == "1") == (r.Outcome == "ok"), "got %+v", r)
	}
	expect.Len(t, 1, f.Comparisons, "comparisons of P2P on and off")
}
