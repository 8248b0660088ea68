//go:build linux

package main

import (
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func folderForAll(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for at := dir; at != filepath.Dir(os.TempDir()) && at != "/"; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && info.Mode().Perm()&0o055 != 0o055 {
			expect.NoError(t, os.Chmod(at, 0o755))
		}
	}
	return dir
}

func placed(t *testing.T, from, dir, name string) string {
	t.Helper()
	raw := expect.Value(os.ReadFile(from))(t)
	to := filepath.Join(dir, name)
	syscall.ForkLock.RLock() // A child that starts meanwhile would hold the file open for writing, and it could not be executed.
	defer syscall.ForkLock.RUnlock()
	expect.NoError(t, os.WriteFile(to, raw, 0o755))
	return to
}

func placedForAll(t *testing.T) (program, dir string) {
	t.Helper()
	dir = folderForAll(t)
	return placed(t, expect.Value(exec.LookPath("gpudoctor"))(t), dir, "gpudoctor"), dir
}

// asNobody is a call in a folder, as nobody if the test runs as root. There is no HOME.
func asNobody(program, dir, line string, env ...string) (c *exec.Cmd, other bool) {
	const nobody = 65534
	c = exec.Command(program, strings.Fields(line)...)
	c.Dir, c.Env = dir, append([]string{"PATH=/usr/bin:/bin"}, env...)
	if other = os.Getuid() == 0; other {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return c, other
}

// TestDenied checks what a user is told who may not read or write something. The
// program runs as nobody if the test runs as root, who may do all.
func TestDenied(t *testing.T) {
	program, dir := placedForAll(t)
	for _, folder := range []string{"locked", "read-only", "policy/locked"} {
		expect.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o755))
	}
	for name, text := range map[string]string{"job.log": "NCCL version 2.28.9+cuda13.0\n", "locked.log": "NCCL version 2.28.9\n", "read-only/old.md": ""} {
		expect.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	for name, mode := range map[string]os.FileMode{"locked": 0, "locked.log": 0, "read-only": 0o555, "policy/locked": 0} {
		name = filepath.Join(dir, name)
		expect.NoError(t, os.Chmod(name, mode))
		t.Cleanup(func() { _ = os.Chmod(name, 0o755) }) // Else the folder could not be taken away.
	}
	for line, want := range map[string]string{
		"check --from locked.log":                  "gpudoctor: --from locked.log: permission denied",
		"check --from locked":                      "gpudoctor: --from locked: permission denied",
		"check --from locked/x.log":                "gpudoctor: --from locked/x.log: permission denied",
		"check --from job.log --with locked.log":   "gpudoctor: --with locked.log: permission denied",
		"facts --from locked.log":                  "gpudoctor: --from locked.log: permission denied",
		"check --from job.log --policy locked":     "gpudoctor: --policy locked: permission denied",
		"check --from job.log --policy policy":     "gpudoctor: --policy policy/locked: permission denied",
		"explain acs-redirect --policy locked/x":   "gpudoctor: --policy locked/x: permission denied",
		"check --from job.log -o read-only/r.md":   "gpudoctor: -o read-only/r.md: folder read-only: permission denied",
		"check --from job.log -o read-only/old.md": "gpudoctor: -o read-only/old.md: permission denied",
		"check --from job.log -o locked/r.md":      "gpudoctor: -o locked/r.md: permission denied",
		"snapshot -o read-only/host.txtar":         "gpudoctor: -o read-only/host.txtar: folder read-only: permission denied",
		"check --from job.log -o r.md":             "gpudoctor: -o r.md: folder .: permission denied",
	} {
		c, asOther := asNobody(program, dir, line)
		if !asOther && strings.HasSuffix(line, "-o r.md") {
			continue // The folder is this user's.
		}
		code, stdout, stderr := ended(t, c)
		first, hints, _ := strings.Cut(stderr, "\n")
		expect.That(t, code == exitError && first == want && strings.HasPrefix(hints, "hint: ") && stdout == "", "%s: exit code %d, said %q and %q, want %q and a hint", line, code, stdout, stderr, want)
	}
}

// unreadable are entries of a folder that cannot be read, by what is said of them.
var unreadable = map[string]func(at string) error{
	"permission denied":           func(at string) error { return os.WriteFile(at, []byte("apiVersion: v1\n"), 0) },
	"a folder: permission denied": func(at string) error { return os.Mkdir(at, 0) },
	"not a regular file":          func(at string) error { return syscall.Mkfifo(at, 0o644) },
	"a socket: not a regular file": func(at string) error {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at})
		if err == nil {
			l.SetUnlinkOnClose(false)
			err = l.Close()
		}
		return err
	},
	"no such file or directory":              func(at string) error { return os.Symlink("nowhere", at) },
	"too many levels of symbolic links":      func(at string) error { return os.Symlink(filepath.Base(at), at) },
	"outside: not a regular file":            func(at string) error { return os.Symlink("/etc/passwd", at) },
	"a link to a folder: not a regular file": func(at string) error { return os.Symlink("/etc", at) },
}

func judgedAsNobody(t *testing.T, program, dir, flags string) (d report.Document, exit int) {
	t.Helper()
	c, _ := asNobody(program, dir, "check --format json --from . "+flags)
	out, _ := c.Output() // The exit code tells.
	return decoded[report.Document](t, out), c.ProcessState.ExitCode()
}

// TestUnreadableEntries checks, for each entry of a folder that cannot be read, that it is listed with the reason, that the
// others are judged, and that the verdict is not healthy; and that a link to one of the others is no such entry.
func TestUnreadableEntries(t *testing.T) {
	t.Parallel()
	program, dir := placedForAll(t)
	pod := expect.Value(txtar.ParseFile("../../fixtures/launches/pod-rdma-healthy.txtar"))(t).Files[0].Data
	makers := map[string]func(at string) error{"": func(at string) error { return os.Symlink("pod.yaml", at) }}
	maps.Copy(makers, unreadable)
	for _, said := range expect.SomeRows(4, slices.Sorted(maps.Keys(makers))) {
		maker := makers[said]
		folder := expect.Value(os.MkdirTemp(dir, ""))(t) //nolint:usetesting // Everybody may enter it, which is not so for t.TempDir.
		at := filepath.Join(folder, "x.yaml")
		t.Cleanup(func() { _ = os.Chmod(at, 0o755) })
		for _, err := range []error{os.Chmod(folder, 0o755), os.WriteFile(filepath.Join(folder, "pod.yaml"), pod, 0o644), maker(at)} {
			expect.NoError(t, err)
		}
		_, problem, ok := strings.Cut(said, ": ")
		if !ok {
			problem = said
		}
		for _, flags := range []string{"", "--profile launch"} {
			d, exit := judgedAsNobody(t, program, folder, flags)
			checkEntry(t, said+" "+flags, d.Texts, problem)
			healthy := problem == "" && flags != ""
			broken := flags != "" && problem != "" && problem != "not a regular file"
			want := map[bool]int{true: exitUnproven, false: exitOK}[broken]
			expect.That(t, exit == want && (d.Verdict.State == report.Healthy) == healthy, "%s %s: exit code %d, want %d: %+v", said, flags, exit, want, d.Verdict)
			named := strings.Contains(strings.Join(d.Verdict.Missing, "\n"), "x.yaml")
			expect.That(t, named == (problem != ""), "%s %s: the reasons are %q", said, flags, d.Verdict.Missing)
		}
	}
}

func checkEntry(t *testing.T, name string, texts []facts.Text, problem string) {
	t.Helper()
	good, bad := false, false
	for _, text := range texts {
		good = good || text.Name == "pod.yaml" && len(text.Kinds) > 0
		bad = bad || text.Name == "x.yaml" && (text.Unread != "") == (problem != "") && strings.Contains(text.Problem, problem)
	}
	expect.That(t, good && bad && len(texts) == 2, "%s: %+v", name, texts)
}

// TestUnreadableAlone checks that a folder in which nothing is recognized and files give errors, as some in /sys do, is
// reported, and that it is not green; and that a file which was named itself is refused.
func TestUnreadableAlone(t *testing.T) {
	t.Parallel()
	const folder = "/sys/devices/virtual/net/lo"
	if _, err := os.ReadFile(folder + "/duplex"); err == nil || os.IsNotExist(err) {
		t.Skipf("%s/duplex gives no error of its own: %v", folder, err)
	}
	program, _ := placedForAll(t)
	d, exit := judgedAsNobody(t, program, folder, "")
	expect.That(t, exit == exitUnproven && d.Verdict.State == report.Inconclusive && strings.Contains(strings.Join(d.Verdict.Missing, "\n"), "duplex: invalid argument"), "exit code %d, %+v", exit, d.Verdict)
	c := exec.Command("gpudoctor", "check", "--from", folder+"/duplex")
	out, err := c.CombinedOutput()
	expect.That(t, c.ProcessState.ExitCode() == exitError && strings.Contains(string(out), "(not read: invalid argument)\nhint: "), "%v: %s", err, out)
}

// TestLimits checks that under a low limit the program ends with a report, or with one line, a hint and exit code 2. Under
// far lower limits the Go runtime ends before main, which no test is about.
func TestLimits(t *testing.T) {
	expect.NotShort(t, "the race detector needs more address space than any limit leaves")
	t.Parallel()
	program, _ := placedForAll(t)
	for _, tt := range []struct {
		limit string
		line  string // Where it does not come to a report in any case.
	}{
		{limit: "-v 2500000", line: "gpudoctor: the limit on address space (ulimit -v) is 2441 MiB; gpudoctor needs 4096 MiB"},
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
