package child

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// asParent is the environment variable that makes this test binary a parent
// of a child that does the task that it names, for the test that kills it.
const asParent = "GPUDOCTOR_TEST_AS_PARENT"

func TestMain(m *testing.M) {
	Main()
	denied()
	root()
	if os.Getenv(asParent) != "" {
		_, _ = Run(context.Background(), Spec{Task: os.Getenv(asParent), Receive: func(m json.RawMessage) { _, _ = fmt.Fprintf(os.Stdout, "%s\n", m) }})
		return
	}
	os.Exit(m.Run())
}

func init() {
	Register("talk", func(ctx context.Context, _ json.RawMessage, send func(any) error) error {
		for range 2 {
			word, err := Receive[string](ctx)
			if err != nil {
				return err
			}
			if err := send("heard " + word); err != nil {
				return err
			}
		}
		return nil
	})
	Register("echo", func(_ context.Context, args json.RawMessage, send func(any) error) error {
		return errors.Join(send(args), send(os.Getenv("GPUDOCTOR_TEST_EXTRA")))
	})
	Register("fail", func(context.Context, json.RawMessage, func(any) error) error { return errors.New("no luck") })
	Register("panic", func(_ context.Context, _ json.RawMessage, send func(any) error) error {
		_ = send("before")
		panic("a bug")
	})
	Register("exit", func(context.Context, json.RawMessage, func(any) error) error {
		fmt.Fprintln(os.Stderr, "the library gave up")
		os.Exit(7)
		return nil
	})
	Register("signal", func(_ context.Context, args json.RawMessage, send func(any) error) error {
		_ = send("before")
		var number int
		_ = json.Unmarshal(args, &number)
		_ = syscall.Kill(os.Getpid(), syscall.Signal(number))
		select {}
	})
	Register("nil-pointer", func(context.Context, json.RawMessage, func(any) error) error {
		var p *int
		*p = 1
		return nil
	})
	Register("chat", func(_ context.Context, _ json.RawMessage, send func(any) error) error {
		for {
			if err := send(1); err != nil {
				return err
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	Register("hang", func(_ context.Context, _ json.RawMessage, send func(any) error) error {
		_ = send(os.Getpid())
		select {}
	})
	Register("stopped", func(_ context.Context, _ json.RawMessage, send func(any) error) error {
		if err := send(os.Getpid()); err != nil {
			return err
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // Only the kernel ends it now.
		select {}
	})
	Register("hang-deaf", func(_ context.Context, _ json.RawMessage, send func(any) error) error {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		_ = send(os.Getpid())
		select {}
	})
	Register("noise", func(_ context.Context, _ json.RawMessage, send func(any) error) error {
		line := strings.Repeat("x", 99) + "\n"
		for range 100_000 {
			_, _ = os.Stdout.WriteString(line)
			_, _ = os.Stderr.WriteString(line)
		}
		_, _ = os.Stderr.WriteString("last line\n")
		return send("after")
	})
	Register("flood", func(_ context.Context, args json.RawMessage, send func(any) error) error {
		var fd int
		_ = json.Unmarshal(args, &fd)
		_ = send("before")
		fmt.Fprintln(os.Stderr, "first line")
		chunk := bytes.Repeat([]byte("x"), 64<<10)
		for {
			if _, err := syscall.Write(fd, chunk); err != nil && !errors.Is(err, syscall.EINTR) {
				return err
			}
		}
	})
	Register("lines", func(_ context.Context, _ json.RawMessage, send func(any) error) error {
		for {
			if err := send(1); err != nil {
				return err
			}
		}
	})
	Register("unsendable", func(_ context.Context, _ json.RawMessage, send func(any) error) error {
		// As one whose sender makes nothing of the error.
		_ = send(map[string]float64{"gbps": math.NaN()})
		_ = send(math.Inf(1))
		_ = send(strings.Repeat("x", maxMessage))
		_ = send(strings.Repeat("x", maxMessage-envelopeBytes-2))
		return nil
	})
	Register("garbled", func(_ context.Context, args json.RawMessage, _ func(any) error) error {
		var size int
		_ = json.Unmarshal(args, &size)
		_, _ = syscall.Write(messageFD, []byte(strings.Repeat("x", size)+"\n"))
		return nil
	})
	Register("nested", func(ctx context.Context, _ json.RawMessage, send func(any) error) error {
		_, err := Run(ctx, Spec{Task: "hang", Receive: func(m json.RawMessage) { _ = send([]json.RawMessage{[]byte(strconv.Itoa(os.Getpid())), m}) }})
		return err
	})
}

// outcome is what the tests compare of a Result: what it printed is apart.
type outcome struct {
	Messages string
	Result   Result
}

func run(ctx context.Context, t *testing.T, spec Spec) (outcome, Result) {
	t.Helper()
	var got outcome
	spec.Receive = func(m json.RawMessage) { got.Messages += string(m) + " " }
	r := expect.Value(Run(ctx, spec))(t)
	got.Result = r
	got.Result.Stdout, got.Result.Stderr, got.Result.Recorded = "", "", false
	return got, r
}

func TestRun(t *testing.T) {
	t.Setenv("GPUDOCTOR_TEST_EXTRA", "overridden")
	const sent = "sent by another process, or because of a limit"
	for _, tt := range []struct {
		name   string
		spec   Spec
		said   string
		want   Result
		stderr string
	}{
		{"ok", Spec{Task: "echo", Args: map[string]int{"a": 1}, Env: []string{"GPUDOCTOR_TEST_EXTRA=here"}}, `{"a":1} "here" `, Result{Finished: true, Exited: true}, ""},
		{"a task that fails", Spec{Task: "fail"}, "", Result{Finished: true, Failure: "no luck", Exited: true}, ""},
		{"no such task", Spec{Task: "nonsense"}, "", Result{Finished: true, Failure: `no task "nonsense"`, Exited: true}, ""},
		{"a library that exits", Spec{Task: "exit"}, "", Result{Exited: true, Code: 7, Death: DeathUnknown, Why: "for an unknown reason"}, "the library gave up"},
		{"a panic keeps what was sent", Spec{Task: "panic"}, `"before" `, Result{Exited: true, Code: 2, Death: DeathByBug, Why: "panic: a bug"}, "panic: a bug"},
		{"SIGSEGV", Spec{Task: "signal", Args: int(syscall.SIGSEGV)}, `"before" `, Result{Exited: true, Code: 2, Signal: "SIGSEGV", Death: DeathByOther, Why: sent}, "SIGSEGV"},
		{"SIGKILL", Spec{Task: "signal", Args: int(syscall.SIGKILL)}, `"before" `, Result{Signal: "SIGKILL", Death: DeathByOther, Why: "such as by the kernel's OOM killer"}, ""},
		{"SIGTERM", Spec{Task: "signal", Args: int(syscall.SIGTERM)}, `"before" `, Result{Signal: "SIGTERM", Death: DeathByOther, Why: sent}, ""},
		{
			"a nil pointer",
			Spec{Task: "nil-pointer"},
			"",
			Result{Exited: true, Code: 2, Death: DeathByBug, Why: "panic: runtime error: invalid memory address or nil pointer dereference"},
			"invalid memory address",
		},
		{"much noise", Spec{Task: "noise"}, `"after" `, Result{Finished: true, Exited: true}, "xxx\nlast line\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, r := run(t.Context(), t, tt.spec)
			expect.NoDiff(t, outcome{tt.said, tt.want}, got, "Run")
			expect.That(t, strings.Contains(r.Stderr, tt.stderr), "stderr = %q, want it to hold %q", r.Stderr, tt.stderr)
			expect.That(t, len(r.Stderr) <= maxOutput && len(r.Stdout) <= maxOutput, "kept %d and %d bytes of output, want at most %d", len(r.Stdout), len(r.Stderr), maxOutput)
		})
	}
}

// TestGarbled checks that noise among the messages is counted, and that a message that is too long is a flood.
func TestGarbled(t *testing.T) {
	for size, want := range map[int]Result{5: {Malformed: 1}, maxMessage: {Flooded: Messages}} {
		r := expect.Value(Run(t.Context(), Spec{Task: "garbled", Args: size, Deadline: time.Minute}))(t)
		expect.That(t, r.Malformed == want.Malformed && r.Flooded == want.Flooded && r.Finished == (want.Flooded == ""), "%d bytes: %+v", size, r)
	}
}

// TestTalk checks that a child gets the words of its parent.
func TestTalk(t *testing.T) {
	input := make(chan any, 2)
	input <- "one"
	input <- "two"
	var got []string
	result, err := Run(t.Context(), Spec{
		Task: "talk", Input: input, Deadline: 10 * time.Second,
		Receive: func(m json.RawMessage) { got = append(got, string(m)) },
	})
	expect.Must(t, err == nil && result.Finished && result.Failure == "", "Run: %+v, %v", result, err)
	expect.NoDiff(t, []string{`"heard one"`, `"heard two"`}, got, "messages")
}

func TestDeadlineAndCancel(t *testing.T) {
	for _, tt := range []struct {
		name, task string
		cancel     bool
		want       Result
	}{
		{"hang", "hang", false, Result{Signal: "SIGKILL", TimedOut: true}},
		{"hang that ignores SIGTERM", "hang-deaf", false, Result{Signal: "SIGKILL", TimedOut: true}},
		{"cancel", "hang-deaf", true, Result{Signal: "SIGKILL", Canceled: true}},
		{"grandchild", "nested", false, Result{Signal: "SIGKILL", TimedOut: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			spec := Spec{Task: tt.task, Deadline: 2 * time.Second}
			if tt.cancel {
				spec.Deadline = 5 * time.Minute
			}
			var pids []int
			spec.Receive = func(m json.RawMessage) {
				pids = pidsIn(t, m)
				if tt.cancel {
					cancel()
				}
			}
			start := time.Now()
			got := expect.Value(Run(ctx, spec))(t)
			took := time.Since(start)
			expect.That(t, took <= time.Minute, "took %s, want the deadline of 2 s and little more", took)
			got.Stdout, got.Stderr, got.Recorded, got.Quiet = "", "", false, 0
			expect.NoDiff(t, tt.want, got, "Run")
			expect.Must(t, len(pids) > 0, "the child sent no process id before it was ended")
			for _, pid := range pids {
				awaitGone(t, pid)
			}
		})
	}
}

// TestSilence checks that a child that says nothing is ended soon, and one that says something forever, always in
// time, by its deadline.
func TestSilence(t *testing.T) {
	const limit = 200 * time.Millisecond
	said := 0
	r := expect.Value(Run(t.Context(), Spec{Task: "hang", Deadline: 5 * time.Minute, Receive: func(json.RawMessage) { said++ }, Silence: func() time.Duration {
		if said == 0 {
			return time.Minute
		}
		return limit
	}}))(t)
	expect.That(t, said == 1 && r.Silent && !r.TimedOut && r.Quiet >= limit && r.Death == "", "%d messages, then %+v", said, r)
	r = expect.Value(Run(t.Context(), Spec{Task: "chat", Deadline: 2 * time.Second, Silence: func() time.Duration { return time.Minute }}))(t)
	expect.That(t, r.TimedOut && !r.Silent, "it ended with %+v", r)
}

func TestNoChild(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Fails(Run(ctx, Spec{Task: "echo"}))(t, context.Canceled, "Run with a context that is canceled")
	expect.Fails(Run(t.Context(), Spec{Task: "echo", Args: func() {}}))(t, nil, "Run with arguments that are no JSON")
}

// TestParentKilled checks that a child ends with a parent that is killed by SIGKILL, even if
// it is stopped, and that its own child does.
func TestParentKilled(t *testing.T) {
	for _, task := range []string{"nested", "stopped"} {
		t.Run(task, func(t *testing.T) { killParent(t, task) })
	}
}

func killParent(t *testing.T, task string) {
	t.Helper()
	exe := expect.Value(os.Executable())(t)
	r, w, err := os.Pipe()
	expect.NoError(t, err)
	defer shut(r)
	parent, err := os.StartProcess(exe, []string{exe}, &os.ProcAttr{Env: append(os.Environ(), asParent+"="+task), Files: []*os.File{nil, w, os.Stderr}})
	shut(w)
	expect.NoError(t, err)
	line := expect.Value(bufio.NewReader(r).ReadBytes('\n'))(t)
	expect.NoError(t, parent.Kill())
	expect.Value(parent.Wait())(t)
	for _, pid := range pidsIn(t, line) {
		awaitGone(t, pid)
	}
}

// pidsIn decodes a message that is one process id or a list of them.
func pidsIn(t *testing.T, m []byte) []int {
	t.Helper()
	var pids []int
	if bytes.HasPrefix(m, []byte("[")) {
		expect.NoError(t, json.Unmarshal(m, &pids))
		return pids
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(m)))
	expect.That(t, err == nil, "%v", err)
	return []int{pid}
}

// awaitGone waits until a process has ended. A child that has ended must not even
// be there as a zombie; one whose parent died may be.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	expect.Must(t, pid > 1, "process id %d", pid)
	for range 500 {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			return
		}
		// pid (comm) state ppid: proc_pid_stat(5).
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		family.Lock()
		child := family.pids[pid]
		family.Unlock()
		if fields[0] == "Z" && !child {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
}

func TestOwn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var child, grandchild int
	_, err := Run(ctx, Spec{Task: "nested", Receive: func(m json.RawMessage) {
		pids := pidsIn(t, m)
		child, grandchild = pids[0], pids[1]
		expect.That(t, Own(child) && Own(grandchild), "Own(%d) = %t, Own(%d) = %t, want true of child and grandchild", child, Own(child), grandchild, Own(grandchild))
		cancel()
	}})
	expect.Must(t, err == nil && child != 0, "child %d, error %v", child, err)
	for pid, want := range map[int]bool{os.Getpid(): true, child: true, os.Getppid(): false, 1: false, 0: false, -1: false} {
		expect.Equal(t, want, Own(pid), "Own(%d)", pid)
	}
}

func TestParentIn(t *testing.T) {
	for stat, want := range map[string]int{
		"7 (python) S 42 7 7 0 -1": 42, "7 (a) S 1 (b) R 43 7": 43, "7 (python) S": 0, "7 (python) S x 1": 0, "": 0,
	} {
		expect.Equal(t, want, parentIn([]byte(stat)), "parentIn(%q)", stat)
	}
}

func TestByHand(t *testing.T) {
	exe := expect.Value(os.Executable())(t)
	proc := expect.Value(os.StartProcess(exe, []string{exe, mark, "echo", "null"}, &os.ProcAttr{Files: []*os.File{nil, nil, nil}}))(t)
	expect.Equal(t, 2, expect.Value(proc.Wait())(t).ExitCode(), "exit code")
}

// TestWords checks that an error that a child tells is bounded, and stays UTF-8.
func TestWords(t *testing.T) {
	for in, want := range map[string]int{
		"": 0, "no luck": 7, strings.Repeat("x", maxWords): maxWords, strings.Repeat("x", maxWords+1): maxWords,
		strings.Repeat("x", maxWords-1) + "é": maxWords - 1,
	} {
		got := words(in)
		expect.That(t, len(got) == want && strings.HasPrefix(in, got), "of %d bytes %d are kept, want %d", len(in), len(got), want)
	}
}

func TestTail(t *testing.T) {
	for _, tt := range []struct {
		writes []string
		want   string
	}{
		{nil, ""},
		{[]string{"abc"}, "abc"},
		{[]string{"abc", "def"}, "bcdef"},
		{[]string{"abcdefgh"}, "defgh"},
		{[]string{"abcde", "f", "gh"}, "defgh"},
		{[]string{"ab\xff"}, "ab?"},
	} {
		got := &tail{max: 5}
		for _, w := range tt.writes {
			n, err := got.Write([]byte(w))
			expect.That(t, n == len(w) && err == nil, "Write(%q) = %d, %v", w, n, err)
		}
		expect.That(t, got.String() == tt.want, "after %q: %q, want %q", tt.writes, got, tt.want)
	}
}

func TestRuntimeSignal(t *testing.T) {
	for _, tt := range []struct{ stderr, want string }{
		{"", ""},
		{"SIGSEGV: segmentation violation\nPC=0x46 m=0 sigcode=1 addr=0x0\nsignal arrived during cgo execution\n", "SIGSEGV"},
		{"panic: runtime error\n[signal SIGSEGV: segmentation violation code=0x1]\n", "SIGSEGV"},
		{"noise\nSIGABRT: abort\nPC=0x7f\n", "SIGABRT"},
		{"the library ignores SIGSEGV: always\n", ""},
	} {
		expect.Equal(t, tt.want, runtimeSignal.First(tt.stderr), "the signal in %q", tt.stderr)
	}
}
