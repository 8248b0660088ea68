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

// folderForAll is a folder that every user may enter.
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

// placed copies a file to where every user may read and run it.
func placed(t *testing.T, from, dir, name string) string {
	t.Helper()
	raw := expect.Value(os.ReadFile(from))(t)
	to := filepath.Join(dir, name)
	expect.NoError(t, os.WriteFile(to, raw, 0o755))
	return to
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

// TestForeignHome checks that settings that the user may not read are ignored, and that
// this is reported: containers that run with any user ID often have the HOME of root.
func TestForeignHome(t *testing.T) {
	program := expect.Value(exec.LookPath("gpudoctor"))(t)
	dir := folderForAll(t)
	program = placed(t, program, dir, "gpudoctor")
	config := filepath.Join(".config", "gpudoctor", "config.yaml")
	for _, home := range []string{"closed", "closed-file"} {
		expect.NoError(t, os.MkdirAll(filepath.Join(dir, home, filepath.Dir(config)), 0o755))
	}
	for name, text := range map[string]string{
		"job.log": "NCCL version 2.28.9+cuda13.0\n", filepath.Join("closed", config): "fail-on: low\n", filepath.Join("closed-file", config): "fail-on: low\n",
	} {
		expect.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for _, name := range []string{"closed", filepath.Join("closed-file", config)} {
		name = filepath.Join(dir, name)
		expect.NoError(t, os.Chmod(name, 0))
		t.Cleanup(func() { _ = os.Chmod(name, 0o755) })
	}
	for home, want := range map[string]string{
		"none":        "",
		"closed":      "gpudoctor: " + filepath.Join(dir, "closed", config) + " is ignored: permission denied\n",
		"closed-file": "gpudoctor: " + filepath.Join(dir, "closed-file", config) + " is ignored: permission denied\n",
	} {
		c, _ := asNobody(program, dir, "check --from job.log", "HOME="+filepath.Join(dir, home))
		code, stdout, stderr := ended(t, c)
		expect.That(t, code == exitOK && stdout != "" && stderr == want, "%s: exit code %d, printed %q and said %q, want %q", home, code, stdout, stderr, want)
	}
}

// TestDenied checks what a user is told who may not read or write something. The
// program runs as nobody if the test runs as root, who may do all.
func TestDenied(t *testing.T) {
	program := expect.Value(exec.LookPath("gpudoctor"))(t)
	dir := folderForAll(t)
	program = placed(t, program, dir, "gpudoctor")
	for _, folder := range []string{"locked", "read-only", "policy/locked"} {
		expect.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o755))
	}
	for name, text := range map[string]string{
		"job.log": "NCCL version 2.28.9+cuda13.0\n", "locked.log": "NCCL version 2.28.9\n", "read-only/old.md": "",
	} {
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
		"check --from job.log -o read-only/r.md":   "gpudoctor: -o read-only/r.md: permission to write to read-only denied",
		"check --from job.log -o read-only/old.md": "gpudoctor: -o read-only/old.md: permission denied",
		"check --from job.log -o locked/r.md":      "gpudoctor: -o locked/r.md: permission denied",
		"snapshot -o read-only/host.txtar":         "gpudoctor: -o read-only/host.txtar: permission to write to read-only denied",
		"check --from job.log -o r.md":             "gpudoctor: -o r.md: permission to write to . denied",
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
