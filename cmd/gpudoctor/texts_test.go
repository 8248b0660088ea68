package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

// ofRank are the noises by which one rank wrote each line.
var ofRank = regexp.MustCompile(`^(?:rank|srun|sagemaker|double|vllm)|mpi`)

// TestHealthyNoise checks that healthy texts stay so behind whatever launchers, collectors
// of logs and people put around their lines: each kind of noise is tried on one of them.
func TestHealthyNoise(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../fixtures/texts/*healthy*.txtar")
	expect.Must(t, err == nil && len(files) > 0, "no cases: %v", err)
	for i, how := range slices.Sorted(maps.Keys(texttest.Noises)) {
		if expect.FewRows() && i%8 > 0 {
			continue
		}
		t.Run(how, func(t *testing.T) {
			file := files[i%len(files)]
			oneRank, dated := ofRank.MatchString(how), strings.Contains(texttest.Noises[how].Do("x\n"), ":02")
			collected := dated || strings.Contains(strings.ToLower(how), "json")
			// PyTorch writes "[rank3]:" before the traceback of an exception that ended the process, and steps of rank 3 alone do not
			// show that the others go on. A date before each line is another one than the text's own. What people write, or git shows,
			// is no line of a collector of logs.
			unsuited := func(file string) bool {
				has := func(part string) bool { return strings.Contains(file, part) }
				return oneRank && (has("caught-exceptions") || has("watchdog-recovers") || has("ended-")) || dated && has("past-") ||
					collected && (has("change-") || has("questions") || has("pull-request"))
			}
			for unsuited(file) {
				i++
				file = files[(i+1)%len(files)]
			}
			a := expect.Value(txtar.ParseFile(file))(t)
			dir := t.TempDir()
			for _, f := range a.Files {
				noisy := string(f.Data)
				if noise := texttest.Noises[how]; !noise.Lines || strings.HasSuffix(f.Name, ".log") {
					noisy = noise.Do(noisy)
				}
				expect.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(f.Name)), []byte(noisy), 0o600))
			}
			d := concluded(t, dir)
			expect.Len(t, 0, grave(d.Findings), "%s: false alarms", file)
		})
	}
}

// madeFault is a fault that was made on purpose, as fixtures/faults/faults.yaml describes it.
type madeFault struct {
	Cause        string
	Also         []string
	Open, Missed []string // Levels of NCCL_DEBUG.
}

// leastNamed is the part of the faults made on purpose that must be named right.
const leastNamed = 0.95

// TestFaults checks that the outputs of faults which were made on purpose with a real job on two H200 are named right,
// that each that is not is known to be missed, and that there is no alarm on a job that went through.
func TestFaults(t *testing.T) {
	t.Parallel()
	raw := expect.Value(os.ReadFile("../../fixtures/faults/faults.yaml"))(t)
	var halves map[string]map[string]madeFault
	expect.NoError(t, yaml.Unmarshal(raw, &halves))
	for half, faults := range halves {
		named, judged := 0, 0
		for _, name := range expect.SomeRows(8, slices.Sorted(maps.Keys(faults))) {
			fault := faults[name]
			for _, level := range []string{"unset", "warn", "info"} {
				if slices.Contains(fault.Open, level) {
					continue
				}
				file := filepath.Join("../../fixtures/faults/logs", name, level+".log")
				if _, err := os.Stat(file); half != "learned" && half != "held" && os.IsNotExist(err) {
					continue // These are made with one or two levels.
				}
				d := concluded(t, file)
				var first rules.Finding
				if len(d.Findings) > 0 {
					first = d.Findings[0]
				}
				if fault.Cause == "none" {
					expect.That(t, first.Rule == "" || first.Severity.Rank() > rules.Medium.Rank(), "%s at %s went through; alarm of %s: %s", name, level, first.Rule, first.Message)
					continue
				}
				judged++
				right := first.Cause == fault.Cause || slices.Contains(fault.Also, first.Cause)
				if right {
					named++
				}
				missed := slices.Contains(fault.Missed, level)
				expect.That(t, right != missed, "%s at %s: the first cause is %q (%s), want %s, missed %v", name, level, first.Cause, first.Rule, fault.Cause, missed)
			}
		}
		expect.That(t, float64(named) >= leastNamed*float64(judged), "%s: %d of %d named right", half, named, judged)
		t.Logf("%s: %d of %d named right", half, named, judged)
	}
}

// failedConnects are the lines by which libraries say that a connection failed: {a} is the address, which libfabric does not name,
// {e} and {n} the error.
var failedConnects = map[string]string{
	"nccl":         "node7:4021:4077 [3] misc/socket.cc:592 NCCL WARN socketPollConnect: connect to {a}<45117> failed : {e}",
	"nccl retries": "node7:4021:4077 [3] misc/socket.cc:578 NCCL WARN socketPollConnect: connect to {a}<45117> returned {e}, exceeded error retry count after 35 attempts",
	"c10d":         "torch.distributed.DistNetworkError: The client socket has failed to connect to any network address of (head, 29500). The client socket has failed to connect to [{a}]:29500 (errno: {n} - {e}).",
	"gloo":         "RuntimeError: Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:152] timed out connecting: SO_ERROR: {e}, remote=[{a}]:21877",
	"openmpi":      "[node7][[39817,1],2][btl_tcp_endpoint.c:796:mca_btl_tcp_endpoint_complete_connect] connect() to {a} failed: {e} ({n})",
	"ucx":          "[1693920302.521306] [node7:78142:0]            sock.c:334  UCX  ERROR connect(fd=52, dest_addr={a}:44389) failed: {e}",
	"libfabric":    "libfabric:4021:1755792160::tcp:ep_ctrl:xnet_ep_connect():201<warn> connect failure {n}({e})",
	"rxm":          "libfabric:4021:1755792160::ofi_rxm:ep_ctrl:rxm_handle_error():753<warn> fi_eq_readerr: err: {e} ({n}), prov_err: Success (0)",
	"ray":          "[2026-03-01 22:48:01,851 W 6578 6578] rpc_client.h:153: Failed to connect to GCS at address {a}:6379 within 5 seconds.",
}

// unroutable are addresses by which no other machine can be reached; anotherMachine is that of one.
var unroutable = []string{"127.0.0.1", "127.0.1.1", "::1", "172.17.0.3", "192.168.122.5", "169.254.3.1", "fe80::5054:ff:fe12:3456", "0.0.0.0"}

const anotherMachine = "10.3.0.9"

// connectCause is why a connection to an address fails. PyTorch and Ray are told the address of the first rank by a variable,
// and Ray names no error.
func connectCause(library, address, words string) string {
	told := library == "c10d" || library == "ray"
	switch {
	case told && slices.Contains(unroutable[:3], address):
		return "env-misconfig"
	case address != anotherMachine, words == "Network is unreachable" && library != "ray":
		return "wrong-nic"
	}
	return "firewall"
}

// connectErrors are those of connect(2), by errno.
var connectErrors = []struct{ words, number string }{
	{"Connection refused", "111"}, {"Connection timed out", "110"}, {"No route to host", "113"}, {"Network is unreachable", "101"},
}

const machines = "node8:4021:4077 [3] NCCL INFO Bootstrap : Using eth0:10.3.0.8<0>\nnode7:4021:4077 [3] NCCL INFO Bootstrap : Using eth0:10.3.0.7<0>\n"

// TestConnects checks that the address to which a connection failed says why, whichever library tells it, that one without an address
// has the causes of one to another machine, and that a host name that does not resolve is called that.
func TestConnects(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "job.log")
	try := expect.EachNth(32)
	check := func(name, form, address string, e struct{ words, number string }, want string) {
		if !try(name) {
			return
		}
		line := strings.NewReplacer("{a}", address, "{e}", e.words, "{n}", e.number).Replace(form)
		expect.NoError(t, os.WriteFile(path, []byte(machines+line+"\n"), 0o600))
		findings := slices.Concat(concluded(t, path).Findings, []rules.Finding{{Rule: "nothing"}})
		expect.Equal(t, want, findings[0].Rule, "%s: %s: %s", name, address, e.words)
	}
	for library, form := range failedConnects {
		addresses := []string{anotherMachine}
		if strings.Contains(form, "{a}") {
			addresses = append(addresses, unroutable...)
		}
		for _, address := range addresses {
			for _, e := range connectErrors {
				check(library, form, address, e, connectCause(library, address, e.words))
			}
		}
	}
	for program, form := range map[string]string{
		"c10d":   "[W1122 21:07:51.739937333 socket.cpp:764] [c10d] The IPv4 network addresses of (node9, 29500) cannot be retrieved (gai error: {n} - {e}).",
		"nccl":   "node7:4021:4077 [3] misc/socket.cc:295 NCCL WARN Net : error encountered when getting address info : {e}",
		"python": "Traceback (most recent call last):\n  File \"/app/train.py\", line 8, in main\n    addresses = socket.getaddrinfo(head, port)\nsocket.gaierror: [Errno {n}] {e}",
		"hydra":  "[proxy:0:1@node8] HYDU_sock_connect (utils/sock/sock.c:113): unable to get host address for node9 (1)",
		"mpirun": "ssh: Could not resolve hostname node9: {e}\nORTE was unable to reliably start one or more daemons.",
	} {
		for words, number := range map[string]string{"Name or service not known": "-2", "Temporary failure in name resolution": "-3", "No address associated with hostname": "-5"} {
			check(program+" resolves", form, "", struct{ words, number string }{words, number}, "wrong-nic")
		}
	}
}

// death is a way for a rank to die by itself: what its process prints, and how the kernel sees it end.
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
	{"file", traceback(userFrame+libraryFrame, "FileNotFoundError: [Errno 2] No such file or directory: '/data/shard-00017.tar'"), 1, "FileNotFoundError", true},
	{"own class", traceback(userFrame, "trainer.errors.BadBatch: sample 17 has no label"), 1, "BadBatch: sample 17", true},
	{"handled", traceback(libraryFrame, "KeyError: 'x'") + "\nDuring handling of the above exception, another exception occurred:\n\n" +
		traceback(userFrame, "TypeError: unsupported operand"), 1, "TypeError: unsupported operand", true},
	{"faulthandler", "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f0000000000 (most recent call first):\n" +
		"  File \"/opt/venv/lib/python3.12/site-packages/numpy/core.py\", line 7 in dot\n  File \"/work/train.py\", line 41 in step\n", -11, "SIGSEGV", true},
	{"segmentation fault", "", -11, "SIGSEGV", false},
	{"killed", "", -9, "SIGKILL", false},
	{"exit", "", 9, "with code 9", false},
	{"device assertion", "../aten/src/ATen/native/cuda/Loss.cu:242: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [4,0,0] Assertion `t >= 0 && t < n_classes` failed.\n" +
		traceback(userFrame, "RuntimeError: CUDA error: device-side assert triggered"), 1, "t >= 0 && t < n_classes", false},
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

var signalWords = map[int]string{6: "Aborted", 9: "Killed", 11: "Segmentation fault"}

var starters = []starter{
	{"torchrun", func(rank int) string { return fmt.Sprintf("[rank%d]: ", rank) }, torchrunEnds, byRank},
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
				if (i+k+o)%3 > 0 || expect.FewRows() && (i+k)%4 > 0 {
					continue // Each launcher and each death with what the others say is there once.
				}
				rank := k / 3 % 2 * 3
				t.Run(fmt.Sprintf("%s/%s/rank %d/%s", s.name, d.name, rank, name), func(t *testing.T) {
					text := s.text(d, rank, name)
					found := diagnosed(t, text)
					expect.Must(t, len(found) > 0 && found[0].Rule == "app-failure", "got %v of\n%s", found, text)
					message := found[0].Message
					expect.That(t, strings.Contains(message, d.words) && (!d.line || strings.Contains(message, "/work/train.py:41")), "got %q of\n%s", message, text)
					expect.That(t, strings.HasPrefix(message, s.names(rank)), "got %q, want %s of\n%s", message, s.names(rank), text)
				})
			}
		}
	}
}

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

func diagnosed(t *testing.T, text string) []rules.Finding {
	t.Helper()
	file := filepath.Join(t.TempDir(), "job.log")
	expect.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return grave(concluded(t, file).Findings)
}

// TestGoldenVerdicts compares what is said of every case, host, text, launch file and log of a fault with
// fixtures/verdicts.txt, so that a change shows all that it changes: for each input its verdict and exit code, digests
// of its facts and of the report as text, Markdown and HTML, and then each finding. GPUDOCTOR_VERDICTS is a regular expression:
// only inputs of which the file says something that it matches are judged and compared.
func TestGoldenVerdicts(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	t.Parallel()
	cases := expect.Value(fixtures.Cases(os.DirFS("../../fixtures")))(t)
	recorded := expect.Value(os.ReadFile("../../fixtures/verdicts.txt"))(t)
	want := map[string]string{} // Of each input, what is recorded.
	for _, block := range regexp.MustCompile(`(?m)^\w.*\n(?: .*\n)*`).FindAllString(string(recorded), -1) {
		name, _, _ := strings.Cut(block, ": ")
		want[name] = block
	}
	only := regexp.MustCompile(os.Getenv("GPUDOCTOR_VERDICTS"))
	var b, wanted bytes.Buffer
	leftOut := func(name string) bool {
		if only.String() != "" && !only.MatchString(want[name]) {
			return true
		}
		wanted.WriteString(want[name])
		return false
	}
	add := func(kind, name string, d *report.Document) {
		raw := expect.Value(json.Marshal(d.Facts()))(t)
		fmt.Fprintf(&b, "%s %s: %s %d, facts %s", kind, name, d.Verdict.State, d.Verdict.ExitCode, digestOf(raw))
		d.Timing, d.RulesDigest = report.Timing{}, "" // They differ from run to run, and with every comment in a rule.
		for _, format := range []string{"text", "markdown", "html"} {
			fmt.Fprintf(&b, ", %s %s", format, digestOf([]byte(writtenAs(format, d, report.Style{}))))
		}
		b.WriteByte('\n')
		for _, f := range d.Findings {
			fmt.Fprintf(&b, "  %s %s: %s %s, %s\n", f.Rule, f.Subject, f.Severity, f.Confidence, strings.Join(f.Remedies, " "))
		}
	}
	for _, c := range cases {
		if leftOut("case " + c.Name) {
			continue
		}
		s := selection{profile: rules.Profile(c.Want.Profile), failOn: report.Threshold(rules.High)}
		add("case", c.Name, judge(t, learnt(t), c.Facts, s))
	}
	inputs := func(kind, pattern string, profile rules.Profile) {
		files, err := filepath.Glob(pattern)
		expect.Must(t, err == nil && len(files) > 0, "no %s: %v", kind, err)
		for _, file := range files {
			if leftOut(kind + " " + filepath.Base(file)) {
				continue
			}
			d, err := diagnose(t.Context(), requestFor(profile, file))
			expect.Must(t, err == nil, "%s: %v", file, err)
			if kind == "text" {
				asItSays(t, file, d)
			}
			add(kind, filepath.Base(file), d)
		}
	}
	inputs("host", "../../fixtures/hosts/*.txtar", rules.Training)
	inputs("text", "../../fixtures/texts/*.txtar", rules.Training)
	inputs("launch", "../../fixtures/launches/*.txtar", rules.Launch)
	inputs("fault", "../../fixtures/faults/logs/*", rules.Training)
	if only.String() != "" {
		diff := cmp.Diff(strings.Split(wanted.String(), "\n"), strings.Split(b.String(), "\n"))
		expect.That(t, diff == "" && b.Len() != 0, "%d bytes, (-want +got):\n%s", b.Len(), diff)
		return
	}
	expect.Golden(t, "../../fixtures/verdicts.txt", b.Bytes())
}

// asItSays checks that a case of fixtures/texts is diagnosed as its comment says: "want: RULE SEVERITY CONFIDENCE" is the
// first finding, "first: REMEDY" the first advice, and "healthy" that nothing of medium or above is found.
func asItSays(t *testing.T, file string, d *report.Document) {
	t.Helper()
	got, first, told := "", "", 0
	if len(d.Findings) > 0 {
		f := d.Findings[0]
		got = fmt.Sprintf("%s %s %s", f.Rule, f.Severity, f.Confidence)
	}
	if len(d.Advice) > 0 {
		first = d.Advice[0].Remedy
	}
	for line := range strings.Lines(string(expect.Value(txtar.ParseFile(file))(t).Comment)) {
		line = strings.TrimSpace(line)
		if want, ok := strings.CutPrefix(line, "want: "); ok {
			told++
			expect.Equal(t, want, got, "%s: the first finding", file)
		} else if want, ok := strings.CutPrefix(line, "first: "); ok {
			expect.Equal(t, want, first, "%s: the first advice", file)
		} else if line == "healthy" {
			told++
			expect.That(t, got == "" || d.Findings[0].Severity.Rank() > rules.Medium.Rank(), "%s: a false alarm: %s", file, got)
		}
	}
	expect.That(t, told != 0, "%s: the comment says neither what is wanted nor that all is well", file)
}

func digestOf(raw []byte) string { return fmt.Sprintf("%x", sha256.Sum256(raw))[:12] }

// TestExamplesJudged checks which rules could not be judged on a recorded machine that is healthy.
func TestExamplesJudged(t *testing.T) {
	// The links of a virtual machine are not the real ones, and the recordings are older than the section storage.
	old := []string{"gds-compat-mode", "nvme-failed", "pcie-link-degraded", "raid-degraded"}
	for name, skipped := range map[string][]string{"h200x2": old, "h200x4": old, "model-8x-pcie": nil, "model-mi300x8": nil} {
		d := expect.Value(diagnose(t.Context(), requestFor(rules.Training, examplePrefix+name)))(t)
		got := expect.Map(d.Skipped, func(s report.Skipped) string { return s.Rule })
		expect.That(t, d.Verdict.State == report.Healthy && slices.Equal(got, skipped) && len(d.Passed) >= 17, "%s is %s; %v are skipped, want %v; %d passed", name, d.Verdict.State, got, skipped, len(d.Passed))
	}
}

// TestTreesJudged checks that the copy of a machine's files is never healthy, and that no rule finds anything in it
// which it does not find in the recording, unless the recording has what explains it, such as the probe.
func TestTreesJudged(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	judge := func(from string) *report.Document {
		t.Helper()
		d := expect.Value(diagnose(t.Context(), requestFor(rules.Training, from)))(t)
		return d
	}
	for _, name := range fixtures.Examples() {
		files, _ := checktest.SplitRecording(t, name)
		file := filepath.Join(t.TempDir(), name+".tgz")
		expect.NoError(t, os.WriteFile(file, checktest.Gzip(checktest.Tar(t, name, files)), 0o600))
		whole, copied := judge("example:"+name), judge(file)
		expect.That(t, copied.Verdict.State != report.Healthy && !copied.TextsOnly(), "%s: the verdict on its files is %s, texts only: %t", name, copied.Verdict.State, copied.TextsOnly())
		found := map[string]bool{}
		for _, f := range whole.Findings {
			found[f.Rule] = true
		}
		for _, f := range copied.Findings {
			expect.That(t, found[f.Rule], "%s: only its files show %s: %s", name, f.Rule, f.Message)
		}
	}
}
