package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
	"github.com/gpudoctor/gpudoctor/rules"
)

// death is a way for a rank to die by itself: what its process prints, and how the
// kernel sees it end.
type death struct {
	name   string
	prints string // {user} is the program's own frame.
	code   int    // As Python's subprocess has it: negative for signals.
	words  string // What the finding says of it.
	line   bool   // Whether the finding names the program's line.
}

const userFrame = `  File "/work/train.py", line 41, in step
    loss = model(batch)
           ^^^^^^^^^^^^
`

func traceback(frames, exception string) string {
	return "Traceback (most recent call last):\n  File \"/work/train.py\", line 90, in <module>\n    main()\n" + frames + exception + "\n"
}

const libraryFrame = "  File \"/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py\", line 1773, in _wrapped_call_impl\n    return self._call_impl(*args, **kwargs)\n"

var deaths = []death{
	{"value", traceback(userFrame+libraryFrame, "ValueError: too many values to unpack (expected 2)"), 1, "ValueError: too many values", true},
	{"key", traceback(userFrame, "KeyError: 'input_ids'"), 1, "KeyError: 'input_ids'", true},
	{"assertion", traceback(userFrame, "AssertionError"), 1, "AssertionError", true},
	{"file", traceback(userFrame+libraryFrame, "FileNotFoundError: [Errno 2] No such file or directory: '/data/shard-00017.tar'"), 1, "FileNotFoundError", true},
	{"import", traceback(userFrame, "ModuleNotFoundError: No module named 'flash_attn'"), 1, "ModuleNotFoundError", true},
	{"own class", traceback(userFrame, "trainer.errors.BadBatch: sample 17 has no label"), 1, "BadBatch: sample 17", true},
	{"shapes", traceback(userFrame+libraryFrame, "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x512 and 1024x64)"), 1, "mat1 and mat2", true},
	{
		"handled", traceback(libraryFrame, "KeyError: 'x'") + "\nDuring handling of the above exception, another exception occurred:\n\n" +
			traceback(userFrame, "TypeError: unsupported operand"), 1, "TypeError: unsupported operand", true,
	},
	{
		"faulthandler", "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f0000000000 (most recent call first):\n" +
			"  File \"/opt/venv/lib/python3.12/site-packages/numpy/core.py\", line 7 in dot\n  File \"/work/train.py\", line 41 in step\n", -11, "SIGSEGV", true,
	},
	{"segmentation fault", "", -11, "SIGSEGV", false},
	{"killed", "", -9, "SIGKILL", false},
	{"aborted", "", -6, "SIGABRT", false},
	{"exit", "", 9, "with code 9", false},
	{
		"device assertion", "../aten/src/ATen/native/cuda/Loss.cu:242: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [4,0,0] Assertion `t >= 0 && t < n_classes` failed.\n" +
			traceback(userFrame, "RuntimeError: CUDA error: device-side assert triggered"), 1, "t >= 0 && t < n_classes", false,
	},
}

// starter is a launcher: how it marks the lines of a rank, and how it says that one ended.
type starter struct {
	name string
	mark func(rank int) string
	ends func(d death, rank int) string
	// names is how the finding names the rank.
	names func(rank int) string
}

func byRank(rank int) string { return fmt.Sprintf("Rank %d", rank) }

func unmarked(int) string { return "" }

var signalWords = map[int]string{6: "Aborted", 9: "Killed", 11: "Segmentation fault"}

var starters = []starter{
	{"torchrun", func(rank int) string { return fmt.Sprintf("[rank%d]: ", rank) }, torchrunEnds, byRank},
	{"torchrun of 2.1", unmarked, torchrunEnds, byRank},
	{"srun", func(rank int) string { return fmt.Sprintf("%d: ", rank) }, func(d death, rank int) string {
		if d.code < 0 {
			return fmt.Sprintf("srun: error: node7: task %d: %s\n", rank, signalWords[-d.code])
		}
		return fmt.Sprintf("srun: error: node7: task %d: Exited with exit code %d\n", rank, d.code)
	}, byRank},
	{"mpirun", func(rank int) string { return fmt.Sprintf("[1,%d]<stderr>:", rank) }, func(d death, rank int) string {
		if d.code < 0 {
			return fmt.Sprintf("mpirun noticed that process rank %d with PID %d on node node7 exited on signal %d (%s).\n", rank, 1000+rank, -d.code, signalWords[-d.code])
		}
		return fmt.Sprintf("mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so was:\n\n  Process name: [[26867,1],%d]\n  Exit code:    %d\n", rank, d.code)
	}, byRank},
	{"deepspeed", unmarked, func(d death, rank int) string {
		return fmt.Sprintf("[2025-11-22 10:00:09,000] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python', '-u', 'train.py', '--local_rank=%d'] exits with return code = %d\n", rank, d.code)
	}, byRank},
	{"ray", func(rank int) string { return fmt.Sprintf("(RayTrainWorker pid=%d, ip=10.0.0.2) ", 1000+rank) }, nil, func(rank int) string { return fmt.Sprintf("Process %d", 1000+rank) }},
}

func torchrunEnds(d death, rank int) string {
	failed := fmt.Sprintf("E1122 10:00:09.000000 99 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: %d) local_rank: %d (pid: %d) of binary: /usr/bin/python\n", d.code, rank, 1000+rank)
	own := traceback("  File \"/opt/venv/lib/python3.12/site-packages/torch/distributed/launcher/api.py\", line 317, in launch_agent\n    raise ChildFailedError(\n", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ")
	told := "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
	if d.code < 0 {
		told = fmt.Sprintf("Signal %d (%s) received by PID %d", -d.code, map[int]string{6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV"}[-d.code], 1000+rank)
	}
	return failed + own + fmt.Sprintf("============\ntrain.py FAILED\n------------\nRoot Cause (first observed failure):\n[0]:\n  time      : 2025-11-22_10:00:09\n  host      : node7\n  rank      : %d (local_rank: %d)\n  exitcode  : %d (pid: %d)\n  error_file: <N/A>\n  traceback : %s\n============\n", rank, rank, d.code, 1000+rank, told)
}

// others are what the other rank prints because one has died.
var others = map[string]func(s starter, rank int) string{
	"silent": func(starter, int) string { return "" },
	"closed": func(s starter, rank int) string {
		return marked(s.mark(rank), fmt.Sprintf("node7:%d:%d [%d] NCCL INFO [Service thread] Connection closed by localRank 1\n", 1000+rank, 1000+rank, rank)+
			traceback("  File \"/opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py\", line 2810, in all_reduce\n    work = group.allreduce([tensor], opts)\n",
				"torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, remote process exited or there was a network error, NCCL version 2.28.9"))
	},
	"timeout": func(_ starter, rank int) string {
		return fmt.Sprintf("[rank%d]:[E1122 10:10:09.1 ProcessGroupNCCL.cpp:685] [PG ID 0 PG GUID 0(default_pg) Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600041 milliseconds before timing out.\n"+
			"[rank%d]:[E1122 10:10:09.2 ProcessGroupNCCL.cpp:735] [Rank %d] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.\n", rank, rank, rank, rank)
	},
}

func marked(mark, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(mark + line)
	}
	return b.String()
}

// TestDeaths checks that a rank that died by itself is named with its line, however the
// job was started, whichever rank it was and whatever the others say of it.
func TestDeaths(t *testing.T) {
	t.Parallel()
	for i, s := range starters {
		for k, d := range deaths {
			if d.prints == "" && s.ends == nil {
				continue
			}
			for o, name := range []string{"silent", "closed", "timeout"} {
				if (i+k+o)%3 > 0 || night.Few() && (i+k)%4 > 0 {
					continue // Each launcher and each death with what the others say is there once.
				}
				rank := k / 3 % 2 * 3
				t.Run(fmt.Sprintf("%s/%s/rank %d/%s", s.name, d.name, rank, name), func(t *testing.T) {
					text := s.text(d, rank, name)
					found := diagnosed(t, text)
					expect.Must(t, len(found) > 0 && found[0].Rule == "app-failure", "got %v of\n%s", found, text)
					message := found[0].Message
					expect.That(t, strings.Contains(message, d.words) && (!d.line || strings.Contains(message, "/work/train.py:41")), "got %q of\n%s", message, text)
					if !strings.HasPrefix(message, s.names(rank)) {
						t.Errorf("got %q, want %s of\n%s", message, s.names(rank), text)
					}
				})
			}
		}
	}
}

// text is what the job writes.
func (s starter) text(d death, rank int, other string) string {
	text, end := "step 11 loss 2.31\n"+marked(s.mark(rank), d.prints), ""
	if s.ends != nil {
		end = s.ends(d, rank)
	}
	switch {
	case s.name == "srun" || s.name == "mpirun": // These tell at once.
		return text + end + others[other](s, 1)
	case d.prints == "" && other == "timeout":
		return text + end // Torchrun and DeepSpeed end the others before they time out.
	}
	return text + others[other](s, 1) + end
}

// diagnosed are the findings of medium severity and above for a text.
func diagnosed(t *testing.T, text string) []rules.Finding {
	t.Helper()
	file := filepath.Join(t.TempDir(), "job.log")
	expect.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	d := concluded(t, file)
	var found []rules.Finding
	for _, f := range d.Findings {
		if f.Severity.Rank() <= rules.Medium.Rank() {
			found = append(found, f)
		}
	}
	return found
}

// TestCaughtExceptions checks that a traceback is no alarm where the work goes on.
func TestCaughtExceptions(t *testing.T) {
	var steps strings.Builder
	for i := range 12 {
		fmt.Fprintf(&steps, "step %d loss %.2f\n", i, 2.5-float64(i)/10)
	}
	caught := traceback(userFrame, "ValueError: bad sample 17")
	for name, text := range map[string]string{
		"logged, and steps follow": steps.String() + "ERROR:root:skipping a sample\n" + caught + steps.String(),
		"by a logger":              steps.String() + marked("WARNING 11-22 10:00:00 [data.py:12] ", caught) + "done\n",
		"ignored in a destructor":  steps.String() + "Exception ignored in: <function Pool.__del__ at 0x7f0000000000>\n" + caught + "done\n",
		"of one rank of several":   marked("0: ", steps.String()) + marked("1: ", caught) + marked("1: ", steps.String()) + marked("0: ", steps.String()),
		"logging itself":           "--- Logging error ---\n" + caught + "Call stack:\n  File \"/work/train.py\", line 3, in <module>\n    main()\nMessage: 'x'\nArguments: ()\n" + steps.String(),
		"exit code 0":              steps.String() + caught + steps.String() + "Process 0 exit with status code 0\n",
	} {
		t.Run(name, func(t *testing.T) {
			found := diagnosed(t, text)
			expect.That(t, len(found) == 0, "a false alarm: %v of\n%s", found, text)
		})
	}
}
