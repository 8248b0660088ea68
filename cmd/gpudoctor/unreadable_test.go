//go:build linux

package main

import (
	"encoding/json"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// unreadable are entries of a folder that cannot be read, by what is said of them.
var unreadable = map[string]func(at string) error{
	"permission denied": func(at string) error {
		return os.WriteFile(at, []byte("apiVersion: v1\n"), 0)
	},
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
	"no such file or directory":         func(at string) error { return os.Symlink("nowhere", at) },
	"too many levels of symbolic links": func(at string) error { return os.Symlink(filepath.Base(at), at) },
	"outside: not a regular file":       func(at string) error { return os.Symlink("/etc/passwd", at) },
	"a link to a folder: not a regular file": func(at string) error {
		return os.Symlink("/etc", at)
	},
}

// judgedAsNobody judges a folder as a user who may not read everything.
func judgedAsNobody(t *testing.T, program, dir, flags string) (d report.Document, exit int) {
	t.Helper()
	c, _ := asNobody(program, dir, "check --format json --from . "+flags)
	out, _ := c.Output() // The exit code tells.
	err := json.Unmarshal(out, &d)
	expect.Must(t, err == nil, "%s: %v: %s", flags, err, out)
	return d, c.ProcessState.ExitCode()
}

// TestUnreadableEntries checks, for each entry of a folder that cannot be read, that it is listed with the reason, that the
// others are judged, and that the verdict is not healthy; and that a link to one of the others is no such entry.
func TestUnreadableEntries(t *testing.T) {
	t.Parallel()
	program := expect.Value(exec.LookPath("gpudoctor"))(t)
	dir := folderForAll(t)
	program = placed(t, program, dir, "gpudoctor")
	pod := expect.Value(txtar.ParseFile("../../fixtures/launches/pod-rdma-healthy.txtar"))(t).Files[0].Data
	makers := map[string]func(at string) error{"": func(at string) error { return os.Symlink("pod.yaml", at) }}
	maps.Copy(makers, unreadable)
	for said, maker := range makers {
		folder, err := os.MkdirTemp(dir, "") //nolint:usetesting // Everybody may enter it, which is not so for t.TempDir.
		expect.NoError(t, err)
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

// checkEntry checks that of two texts one was recognized and the other has a problem.
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
	program := placed(t, expect.Value(exec.LookPath("gpudoctor"))(t), folderForAll(t), "gpudoctor")
	d, exit := judgedAsNobody(t, program, folder, "")
	expect.That(t, exit == exitUnproven && d.Verdict.State == report.Inconclusive && strings.Contains(strings.Join(d.Verdict.Missing, "\n"), "duplex: invalid argument"), "exit code %d, %+v", exit, d.Verdict)
	c := exec.Command("gpudoctor", "check", "--from", folder+"/duplex")
	if out, err := c.CombinedOutput(); c.ProcessState.ExitCode() != exitError || !strings.Contains(string(out), "duplex: not read: invalid argument\nhint: ") {
		t.Errorf("%v: %s", err, out)
	}
}
