//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestLimits checks that under a low limit the program ends with a report, or with one line, a hint and exit code 2. Under
// far lower limits the Go runtime ends before main, which no test is about.
func TestLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector needs more address space than any limit leaves")
	}
	t.Parallel()
	program := expect.Value(exec.LookPath("gpudoctor"))(t)
	program = placed(t, program, folderForAll(t), "gpudoctor")
	for _, tt := range []struct {
		limit string
		line  string // Where it does not come to a report in any case.
	}{
		{limit: "-v 1500000", line: "gpudoctor: the limit on address space (ulimit -v) is 1464 MiB; gpudoctor needs 4096 MiB"},
		{limit: "-v 4194304"},
		{limit: "-d 300000", line: "gpudoctor: the limit on data (ulimit -d) is 292 MiB; gpudoctor needs 512 MiB"},
		{limit: "-n 20", line: "gpudoctor: the limit on open files (ulimit -n) is 20; gpudoctor needs 64"},
		{limit: "-n 64"},
		{limit: "-S -n 20"}, // It may be raised.
	} {
		t.Run(tt.limit, func(t *testing.T) {
			c := exec.Command("sh", "-c", "ulimit "+tt.limit+` && exec "$0" check`, program)
			c.Dir, c.Env = filepath.Dir(program), []string{"PATH=/usr/bin:/bin"}
			if os.Getuid() == 0 {
				c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65531, Gid: 65531}}
			}
			code, out, errors := ended(t, c)
			for _, word := range []string{"goroutine ", "runtime:", "runtime/cgo", "fatal error", "crash"} {
				expect.That(t, !strings.Contains(errors, word) && !strings.Contains(out, "driver-hang") && !strings.Contains(out, word), "it says %q:\n%.2000s\n%.2000s", word, errors, out)
			}
			first, hints, _ := strings.Cut(errors, "\n")
			switch {
			case code == exitError && strings.HasPrefix(first, "gpudoctor: ") && strings.HasPrefix(hints, "hint: ") && strings.Count(errors, "\n") == 2:
				expect.That(t, tt.line == "" || first == tt.line, "it says %q, want %q", first, tt.line)
			case code < 0, code == exitError, code > exitUnproven, errors != "", tt.line != "", !strings.Contains(out, "gpudoctor "):
				t.Errorf("it ended with %s, %q and %.300q", c.ProcessState, errors, out)
			}
		})
	}
}
