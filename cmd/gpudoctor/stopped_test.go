//go:build linux && cgo

package main

import (
	"bytes"
	crand "crypto/rand"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/drivers"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
)

const (
	// runMarker is the variable by which all processes of one run are known.
	runMarker = "GPUDOCTOR_TEST_RUN"
	// hangingThread is how the simulated drivers name a thread that hangs.
	hangingThread = "simulated-hang"
	// gone is how long the processes of a run may outlast it: the kernel kills
	// them at once, and a busy machine takes its time.
	gone = time.Minute
)

// TestStopped checks that whatever ends the program while a driver hangs, no
// process, no file and no half-written report is left.
func TestStopped(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	for _, at := range []struct {
		name string
		run  simulated
	}{
		{"cuInit", simulated{cuda: "hang-init"}},
		{"copy", simulated{cuda: "hang-copy"}},
		{"between processes", simulated{cuda: "hang-ipc", mode: probe.Full}},
		{"nvmlInit", simulated{nvml: "hang-init"}},
		{"cuInit under a low limit", simulated{cuda: "hang-init", ulimit: "-v 8000000"}},
		{"copy, with a process left behind", simulated{cuda: "daemon-init,hang-copy"}},
		{"copy, with a process without an environment left behind", simulated{cuda: "daemon-cleared-init,hang-copy"}},
	} {
		for _, by := range []struct {
			signal syscall.Signal
			exit   int // -1 where the signal itself ends it.
		}{{syscall.SIGKILL, -1}, {syscall.SIGTERM, 143}, {syscall.SIGINT, 130}} {
			t.Run(fmt.Sprintf("%s by %s", at.name, by.signal), func(t *testing.T) {
				t.Parallel()
				if night.Few() && at.name != "copy" {
					t.Skip("not by day")
				}
				if by.signal == syscall.SIGKILL && strings.Contains(at.run.cuda, "daemon") {
					t.Skip("nobody is left who would end it: the kernel kills the child at once")
				}
				stop(t, at.run, by.signal, by.exit)
			})
		}
	}
}

// stop starts a run, sends the signal once a driver hangs, and looks for what
// is left.
func stop(t *testing.T, s simulated, signal syscall.Signal, exit int) {
	t.Helper()
	before := names(t, "/dev/shm")
	daemon := rand.IntN(1e8)
	s.cuda = strings.Replace(s.cuda, "-init,", fmt.Sprintf("-init=%d,", daemon), 1) // Of a daemon that is ordered.
	scratch, marker := t.TempDir(), runMarker+"="+crand.Text()
	out := t.TempDir()
	c := s.command(t.Context(), append(s.commandLine(), "-o", filepath.Join(out, "report.json"), "-o", filepath.Join(out, "report.md")))
	var stdout, stderr bytes.Buffer
	c.Env, c.Stdout, c.Stderr = append(s.environment(t), "TMPDIR="+scratch, marker), &stdout, &stderr
	expect.NoError(t, c.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait() // Its state tells how it ended.
	}()
	t.Cleanup(func() { // Whatever fails, nothing outlasts the test.
		_ = c.Process.Kill()
		for _, pid := range slices.AppendSeq(drivers.Daemons(t, daemon), maps.Keys(processes(marker))) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	if !within(slack, func() bool {
		return someHang(marker) && (len(drivers.Daemons(t, daemon)) == 1 || !strings.HasPrefix(s.cuda, "daemon"))
	}) {
		t.Fatalf("nothing hangs; the run has these processes: %v\nstandard error: %s", processes(marker), &stderr)
	}
	expect.NoError(t, c.Process.Signal(signal))
	select {
	case <-ended:
	case <-time.After(gone):
		t.Fatalf("it did not end within %s", gone)
	}
	got := c.ProcessState.ExitCode()
	expect.That(t, got == exit, "exit code %d (%s), want %d", got, c.ProcessState, exit)
	if !within(gone, func() bool { return len(processes(marker)) == 0 && len(drivers.Daemons(t, daemon)) == 0 }) {
		t.Errorf("these processes are left: %v, and daemons: %v", processes(marker), drivers.Daemons(t, daemon))
	}
	expect.That(t, stdout.Len() <= 0 && stderr.Len() <= 0, "it wrote %q and %q", &stdout, &stderr)
	for _, dir := range []string{out, scratch} {
		expect.Len(t, 0, names(t, dir), "these files are left")
	}
	for _, name := range names(t, "/dev/shm") {
		expect.That(t, slices.Contains(before, name) || !mine(filepath.Join("/dev/shm", name)), "/dev/shm/%s is left", name)
	}
}

// within waits until something holds.
func within(d time.Duration, holds func() bool) bool {
	for end := time.Now().Add(d); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// processes are the command lines of those that have the marker in their
// environment, by their numbers. One that has ended and waits for its parent
// has no environment any more.
func processes(marker string) map[int]string {
	found := map[int]string{}
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	for _, file := range files {
		environment, err := os.ReadFile(file) // Those of other users cannot be read.
		if err != nil || !slices.Contains(strings.Split(string(environment), "\x00"), marker) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(file, "/proc/%d/", &pid); err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err == nil {
			found[pid] = strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
		}
	}
	return found
}

// someHang is true once a driver hangs in one of the processes with the
// marker.
func someHang(marker string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(processes(marker))), hangs)
}

// hangs is true for a process that has a thread in which a driver hangs.
func hangs(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", pid))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(threads, func(file string) bool {
		name, err := os.ReadFile(file)
		return err == nil && strings.TrimSpace(string(name)) == hangingThread
	})
}

// names are those of the files in a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// mine is true for a file of this user's.
func mine(file string) bool {
	info, err := os.Lstat(file)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
