//go:build linux && cgo

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	osignal "os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// oldRecording is longer than a recording of a machine without GPUs: a rest of it would show.
var oldRecording = []byte(strings.Repeat("before\n", 300_000))

// TestSignalsWhileWriting checks that, whenever a signal ends the program, nothing is left but the file: the old one
// or the new one, whole.
func TestSignalsWhileWriting(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	program := expect.Value(exec.LookPath("gpudoctor"))(t)
	const runs = 24
	begun := time.Now()
	expect.NoError(t, exec.Command(program, "snapshot", "--probe", "off", "-o", filepath.Join(t.TempDir(), "r.txtar")).Run())
	took := time.Since(begun)
	ended, written := 0, 0
	for n := range runs {
		dir := t.TempDir()
		file := filepath.Join(dir, "r.txtar")
		if n%2 == 1 {
			writeTestFile(t, file, oldRecording)
		}
		c := exec.Command(program, "snapshot", "--probe", "off", "-o", file)
		expect.NoError(t, c.Start())
		time.AfterFunc(took*time.Duration(n+1)/runs, func() { _ = c.Process.Signal(syscall.SIGTERM) })
		_ = c.Wait() // Its state tells how it ended.
		switch code := c.ProcessState.ExitCode(); code {
		case signalExitBase + int(syscall.SIGTERM), -1: // -1: before it could handle signals.
			ended++
		case exitOK:
			written++
		default:
			t.Errorf("exit code %d", code)
		}
		content, err := os.ReadFile(file)
		expect.That(t, err == nil && whole(content) || n%2 != 1 && errors.Is(err, fs.ErrNotExist), "the file holds %d bytes, %.40q..., %v", len(content), content, err)
		expect.Len(t, 0, slices.DeleteFunc(names(t, dir), func(name string) bool { return name == "r.txtar" }), "the folder also holds")
	}
	t.Logf("%d were ended by the signal, %d had written the file", ended, written)
}

// whole reports whether a file is the old one or a recording to its end.
func whole(content []byte) bool {
	return bytes.Equal(content, oldRecording) || !bytes.Contains(content, []byte("before\n")) && bytes.HasSuffix(content, []byte("-- !end --\n"))
}

// TestSignalsWhileGathering checks that each signal that ends the program does so while it waits for its input, with
// the code of the signal and without a word; and that a signal that the program was started without is not heard.
func TestSignalsWhileGathering(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup // At once: each takes the grace, and most of it is waiting.
	for _, s := range signalEnding {
		signal, ok := s.(syscall.Signal)
		expect.Must(t, ok, "%v has no number", s)
		all.Go(func() { signalWhileGathering(t, signal, false) })
		if signal == syscall.SIGHUP || signal == syscall.SIGINT { // Go's runtime respects no others (package os/signal).
			all.Go(func() { signalWhileGathering(t, signal, true) })
		}
	}
	all.Wait()
}

// hear lets programs that the test starts hear a signal even if the test itself was started without it, by nohup say:
// they inherit that a signal is ignored, but not that it is handled.
func hear(t *testing.T, signal os.Signal) {
	t.Helper()
	heard := make(chan os.Signal, 1)
	osignal.Notify(heard, signal)
	t.Cleanup(func() { osignal.Stop(heard) })
}

func signalWhileGathering(t *testing.T, signal syscall.Signal, ignored bool) {
	t.Helper()
	hear(t, signal)
	fail := func(err error) bool {
		expect.That(t, err == nil, "%s, ignored %t: %v", signal, ignored, err)
		return err != nil
	}
	fifo := filepath.Join(t.TempDir(), "in")
	if fail(syscall.Mkfifo(fifo, 0o600)) {
		return
	}
	args := []string{"facts", "--from", fifo} // It ends soonest.
	c := exec.Command("gpudoctor", args...)
	if ignored {
		c = exec.Command("sh", append([]string{"-c", fmt.Sprintf(`trap '' %d; exec gpudoctor "$@"`, signal), "sh"}, args...)...)
	}
	var said bytes.Buffer
	c.Stderr = &said
	if fail(c.Start()) {
		return
	}
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0) // Until it is read.
	if fail(err) || fail(c.Process.Signal(signal)) {
		return
	}
	want := signalExitBase + int(signal)
	if ignored {
		want = exitOK
		_, err := io.WriteString(w, "NCCL version 2.28.9+cuda13.0\n")
		if fail(err) || fail(w.Close()) {
			return
		}
	}
	_ = c.Wait()  // Its state tells how it ended.
	_ = w.Close() // It may be closed.
	got := c.ProcessState.ExitCode()
	expect.That(t, got == want && said.Len() == 0, "%s, ignored %t: %s, want exit code %d; it said %q", signal, ignored, c.ProcessState, want, &said)
}

type failingOutput struct {
	left int
	err  error
}

func (f *failingOutput) Write(p []byte) (int, error) {
	if len(p) > f.left {
		n := f.left
		f.left = 0
		return n, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: f.err}
	}
	f.left -= len(p)
	return len(p), nil
}

// commandLines are calls of every command that writes to standard output.
func commandLines(t *testing.T) map[string][]string {
	t.Helper()
	needsNoGPU(t)
	log := filepath.Join(t.TempDir(), "job.log")
	writeTestFile(t, log, []byte("NCCL version 2.28.9+cuda13.0\n"))
	machine := filepath.Join(t.TempDir(), "machine.json")
	expect.NoError(t, writeFacts(machine, eightGPUs()))
	all := map[string][]string{}
	for _, line := range []string{
		"check --only shm-too-small --from " + log + " -o " + filepath.Join(t.TempDir(), "r.md"),
		"facts --from " + log,
		"probe p2p --from " + machine,
		"snapshot --probe off -o -",
		"explain acs-redirect",
		"rules list",
		"texts",
		"completion bash",
		completeQuestion + " check --fr",
		"version",
		"--version",
		"--help",
		"",
		"check --help",
		"rules --help",
	} {
		all[line] = append([]string{"gpudoctor"}, strings.Fields(line)...)
	}
	return all
}

// TestOutputFails checks for every command that a report that could not be written gives exit code 2 and one line, and
// a reader that has gone no word and the code that it would have been.
func TestOutputFails(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	for line, args := range commandLines(t) {
		var stdout, stderr bytes.Buffer
		code := run(args, &stdout, &stderr)
		if stdout.Len() == 0 || stderr.Len() > 0 {
			t.Errorf("%s: wrote %q and %q", line, &stdout, &stderr)
			continue
		}
		for _, reason := range []error{syscall.ENOSPC, syscall.EPIPE} {
			want, said := exitError, "gpudoctor: write standard output: "+reason.Error()+"\nhint: what was written to it is incomplete\n"
			if errors.Is(reason, syscall.EPIPE) {
				want, said = code, ""
			}
			var stderr bytes.Buffer
			got := run(args, &failingOutput{stdout.Len() / 2, reason}, &stderr)
			expect.That(t, got == want && stderr.String() == said, "%s, %v: exit code %d, want %d; said %q, want %q", line, reason, got, want, &stderr, said)
		}
	}
}

// TestFileSizeLimit checks that a limit on the size of files (RLIMIT_FSIZE), whose
// signal SIGXFSZ ends other programs, is reported like a full disk.
func TestFileSizeLimit(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	for line, want := range map[string]string{
		"gpudoctor texts >out":                           "gpudoctor: write standard output: file too large\nhint: what was written to it is incomplete\n",
		"gpudoctor snapshot --probe off -o host.txtar":   "gpudoctor: write host.txtar: file too large\nhint: name another file\n",
		"gpudoctor snapshot --probe off -o before.txtar": "gpudoctor: write before.txtar: file too large\nhint: name another file\n",
	} {
		dir := t.TempDir()
		writeTestFile(t, filepath.Join(dir, "before.txtar"), oldRecording)
		c := exec.Command("sh", "-c", "ulimit -f 1; "+line) // Blocks of 512 bytes.
		c.Dir = dir
		code, _, said := ended(t, c)
		expect.That(t, code == exitError && said == want, "%s: exit code %d, want %d; it said %q, want %q", line, code, exitError, said, want)
		content, err := os.ReadFile(filepath.Join(dir, "before.txtar"))
		expect.That(t, err == nil && bytes.Equal(content, oldRecording), "%s: the file holds %.40q, %v", line, content, err)
		expect.Len(t, 1, slices.DeleteFunc(names(t, dir), func(name string) bool { return name == "out" }), "%s: the folder holds", line)
	}
}
