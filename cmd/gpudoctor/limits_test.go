//go:build linux && cgo

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestLimits holds that under whatever limit the program ends with a report, or
// with one line, a hint and exit code 2: never with the stacks of the Go runtime,
// and never with a driver that is blamed for it. It runs as nobody if the test runs
// as root, whom no limit on processes binds.
func TestLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector needs more address space than any limit leaves")
	}
	t.Parallel()
	program, err := exec.LookPath("gpudoctor")
	if err != nil {
		t.Fatal(err)
	}
	program = placed(t, program, folderForAll(t), "gpudoctor")
	for _, tt := range []struct {
		limit, variable string
		line            string // Where it does not come to a report in any case.
	}{
		{limit: "-v 100000", line: "gpudoctor: the limit on address space (ulimit -v) is 97 MiB; gpudoctor needs 2048 MiB"},
		{limit: "-v 1500000", line: "gpudoctor: the limit on address space (ulimit -v) is 1464 MiB; gpudoctor needs 2048 MiB"},
		{limit: "-v 2097152"},
		{limit: "-v 2097152", variable: "GOMAXPROCS=64"}, // As on a machine with as many cores.
		{limit: "-d 100000", line: "gpudoctor: the limit on data (ulimit -d) is 97 MiB; gpudoctor needs 512 MiB"},
		{limit: "-n 6", line: "gpudoctor: the limit on open files (ulimit -n) is 6; gpudoctor needs 64"},
		{limit: "-n 64"},
		{limit: "-S -n 8"}, // It may be raised.
		{limit: "-u 2"},
		{limit: "-u 12"},
		{limit: "-u 18"},
		{limit: "-u 22"},
		{limit: "-u 22", variable: "GOMAXPROCS=64"},
		{limit: "-u 26"},
	} {
		t.Run(tt.limit+" "+tt.variable, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			set := "ulimit " + tt.limit
			if n, is := strings.CutPrefix(tt.limit, "-u "); is { // Of bash, and of dash.
				set = "{ ulimit -u " + n + " 2>/dev/null || ulimit -p " + n + "; }"
			}
			c := exec.Command("sh", "-c", set+` && exec "$0" check`, program)
			c.Dir, c.Stdout, c.Stderr, c.Env = filepath.Dir(program), &stdout, &stderr, []string{"PATH=/usr/bin:/bin", tt.variable}
			if os.Getuid() == 0 {
				c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65531, Gid: 65531}}
			}
			_ = c.Run() // Its state tells how it ended.
			out, errors, code := stdout.String(), stderr.String(), c.ProcessState.ExitCode()
			for _, word := range []string{"goroutine ", "runtime:", "runtime/cgo", "fatal error", "crash"} {
				if strings.Contains(errors, word) || strings.Contains(out, "driver-hang") || strings.Contains(out, word) {
					t.Errorf("it says %q:\n%.2000s\n%.2000s", word, errors, out)
				}
			}
			first, hints, _ := strings.Cut(errors, "\n")
			switch {
			case code == exitError && strings.HasPrefix(first, "gpudoctor: ") && strings.HasPrefix(hints, "hint: ") && strings.Count(errors, "\n") == 2:
				if tt.line != "" && first != tt.line {
					t.Errorf("it says %q, want %q", first, tt.line)
				}
			case code < 0, code == exitError, code > exitUnproven, errors != "", tt.line != "", !strings.Contains(out, "gpudoctor "):
				t.Errorf("it ended with %s, %q and %.300q", c.ProcessState, errors, out)
			}
		})
	}
}
