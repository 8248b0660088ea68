package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
)

// fence is a block of code in a document: what stands behind ```, and the lines.
var fence = regexp.MustCompile("(?ms)^```(\\S+)(?: (create|append) (\\S+))?\n(.*?)^```$")

// TestContributing follows the recipes of CONTRIBUTING.md, in order, in a copy of the
// repository: files are created or appended to as the blocks say, each command must
// succeed, and print what stands below it.
func TestContributing(t *testing.T) {
	night.NotShort(t, "it compiles the program anew")
	night.NotByDay(t, "it compiles the program anew")
	t.Parallel()
	root := filepath.Join("..", "..")
	text := expect.Value(os.ReadFile(filepath.Join(root, "CONTRIBUTING.md")))(t)
	clone := t.TempDir()
	copyRepository(t, root, clone)
	edits, commands := 0, 0
	for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
		language, action, name, body := block[1], block[2], block[3], block[4]
		switch {
		case action != "":
			edits++
			edit(t, filepath.Join(clone, name), action, body)
		case language == "console":
			for _, step := range strings.Split("\n"+body, "\n$ ")[1:] {
				commands++
				line, want, _ := strings.Cut(step, "\n")
				follow(t, clone, line, strings.TrimSpace(want))
			}
		default:
			t.Errorf("a block of %s is neither a file nor commands:\n%s", language, body)
		}
	}
	expect.That(t, edits >= 9 && commands >= 10, "%d files and %d commands were found", edits, commands)
}

// edit creates a file, which must not exist, or appends to one, which must.
func edit(t *testing.T, file, action, body string) {
	t.Helper()
	old, err := os.ReadFile(file)
	expect.Must(t, (err == nil) == (action == "append"), "%s %s: %v", action, file, err)
	expect.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	expect.NoError(t, os.WriteFile(file, append(old, body...), 0o600))
}

// follow runs a command line. gpudoctor check may end with 1, which means findings.
func follow(t *testing.T, dir, line, want string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
	cmd.Dir = dir
	// What is compiled once is found again in the next copy, whatever its folder.
	// Its tests run as a developer runs them, by day.
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath -vet=off", "GPUDOCTOR_TESTS=")
	out, err := cmd.CombinedOutput()
	found := strings.Contains(line, "gpudoctor check") && cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 1
	expect.Must(t, err == nil || found, "%s: %v\n%s", line, err, out)
	expect.That(t, !strings.Contains(string(out), "no tests to run"), "%s runs no test:\n%s", line, out)
	flat := strings.Join(strings.Fields(string(out)), " ")
	expect.That(t, strings.Contains(flat, strings.Join(strings.Fields(want), " ")), "%s does not print %q:\n%s", line, want, out)
}

// copyRepository copies the source, without git's files and what was built.
func copyRepository(t *testing.T, from, to string) {
	t.Helper()
	expect.NoError(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == ".git" || name == ".carry" || name == ".out" {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), content, info.Mode().Perm()|0o200)
	}))
}
