package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// preCommitHook is a hook of .pre-commit-hooks.yaml. Its patterns are Python's; those here
// mean the same in Go.
type preCommitHook struct {
	ID, Language, Entry, Files, Exclude string
	Args                                []string
	PassFilenames                       *bool `yaml:"pass_filenames"`
	RequireSerial                       bool  `yaml:"require_serial"`
}

func readPreCommitHooks(t *testing.T) map[string]preCommitHook {
	t.Helper()
	var list []preCommitHook
	expect.NoError(t, yaml.Unmarshal(expect.Value(os.ReadFile("../../.pre-commit-hooks.yaml"))(t), &list))
	hooks := map[string]preCommitHook{}
	for _, h := range list {
		expect.Equal(t, "golang", h.Language, "%s: language", h.ID)
		hooks[h.ID] = h
	}
	return hooks
}

// takes reports whether pre-commit gives the hook a file.
func (h preCommitHook) takes(name string) bool {
	return regexp.MustCompile(h.Files).MatchString(name) && (h.Exclude == "" || !regexp.MustCompile(h.Exclude).MatchString(name))
}

// run runs the hook as pre-commit does: the entry, its arguments, and the files.
func (h preCommitHook) run(t *testing.T, folder string, arguments ...string) (string, int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", append([]string{"-c", h.Entry + ` "$@"`, "sh"}, arguments...)...)
	c.Dir = folder
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// TestPreCommitFiles checks which files the hooks are given.
func TestPreCommitFiles(t *testing.T) {
	t.Parallel()
	hook := readPreCommitHooks(t)["gpudoctor-launch"]
	for name, want := range map[string]bool{
		"Dockerfile": true, "docker/Dockerfile.train": true, "train.Dockerfile": true, "Containerfile": true, "compose.yaml": true,
		"docker-compose.yml": true, "deploy/docker-compose.gpu.yml": true, "jobs/train.sbatch": true, "train.slurm": true,
		"etc/slurm.conf": true, "gres.conf": true, "enroot.conf": true, "train $(x).sbatch": true,
		"values.yaml": false, "pod.yaml": false, "composer.yaml": false, "Dockerfile.md": false, "slurm.conf.md": false, "run.sh": false,
		"myslurm.conf": false, "NotADockerfile": false, "-o.sbatch": false, "x/-o.sbatch": true,
	} {
		expect.That(t, hook.takes(name) == want, "%s: taken %t, want %t", name, !want, want)
	}
}

// TestPreCommitNames checks that the name of a file is an argument whatever is in it, and
// that one file with a fault fails the hook.
func TestPreCommitNames(t *testing.T) {
	t.Parallel()
	hook := readPreCommitHooks(t)["gpudoctor-launch"]
	folder := t.TempDir()
	for name, from := range map[string]string{"good": "compose-healthy", "bad": "compose-hides-gpus"} {
		extractLaunch(t, from, filepath.Join(folder, name))
	}
	hostile := "compose-$(touch hacked) ';touch hacked;'.yaml"
	expect.NoError(t, os.Rename(filepath.Join(folder, "bad", "compose.yaml"), filepath.Join(folder, hostile)))
	expect.Must(t, hook.takes(hostile), "%s is not taken", hostile)
	for want, names := range map[int][]string{exitOK: {"good/compose.yaml"}, exitFindings: {"good/compose.yaml", hostile}} {
		out, code := hook.run(t, folder, names...)
		expect.That(t, code == want, "%q: exit code %d, want %d:\n%s", names, code, want, out)
	}
	expect.That(t, len(expect.Value(filepath.Glob(filepath.Join(folder, "hacked*")))(t)) == 0, "the name of a file was run")
}

// TestPreCommitFolder runs the hook that judges a folder, with its own and with a user's
// arguments.
func TestPreCommitFolder(t *testing.T) {
	t.Parallel()
	hook := readPreCommitHooks(t)["gpudoctor-folder"]
	expect.That(t, hook.PassFilenames != nil && !*hook.PassFilenames, "it is given files")
	folder := t.TempDir()
	extractLaunch(t, "job-healthy", filepath.Join(folder, "deploy"))
	extractLaunch(t, "pod-hides-gpus", filepath.Join(folder, "k8s"))
	for want, arguments := range map[int][]string{exitOK: hook.Args, exitFindings: {"--from", "k8s"}, exitError: {"--from", "nowhere"}} {
		if out, code := hook.run(t, folder, arguments...); code != want {
			t.Errorf("%s: exit code %d, want %d:\n%s", fmt.Sprint(arguments), code, want, out)
		}
	}
}
