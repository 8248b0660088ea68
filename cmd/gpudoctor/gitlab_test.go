//go:build linux && cgo

package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
)

// gitLabJob is a job of docs/examples/gitlab/gitlab-ci.yml. The keys are those that GitLab
// knows (docs.gitlab.com/ci/yaml) and the file uses; another one is an error.
type gitLabJob struct {
	Extends      string
	Stage, Image string
	Tags         []string
	Rules        []struct{ If string }
	Variables    map[string]string
	BeforeScript []string `yaml:"before_script"`
	Script       []string
	Artifacts    *struct {
		When     string
		ExpireIn string `yaml:"expire_in"`
		Paths    []string
		Reports  map[string]string
	}
	AllowFailure struct {
		ExitCodes int `yaml:"exit_codes"`
	} `yaml:"allow_failure"`
}

func readGitLabJobs(t *testing.T) map[string]gitLabJob {
	t.Helper()
	raw := expect.Value(os.ReadFile("../../docs/examples/gitlab/gitlab-ci.yml"))(t)
	var document map[string]yaml.Node
	expect.NoError(t, yaml.Unmarshal(raw, &document))
	jobs := map[string]gitLabJob{}
	for name, node := range document {
		if name == "stages" {
			continue
		}
		var job gitLabJob
		decoder := yaml.NewDecoder(bytes.NewReader(expect.Value(yaml.Marshal(&node))(t)))
		decoder.KnownFields(true)
		err := decoder.Decode(&job)
		expect.That(t, err == nil, "%s: %v", name, err)
		jobs[name] = job
	}
	for name, job := range jobs {
		if job.Extends == "" {
			continue
		}
		base, ok := jobs[job.Extends]
		expect.Must(t, ok, "%s extends %s, which is missing", name, job.Extends)
		job.Variables, job.BeforeScript, job.Artifacts, job.AllowFailure = base.Variables, base.BeforeScript, base.Artifacts, base.AllowFailure
		jobs[name] = job
	}
	return jobs
}

// run runs the script of a job as GitLab's runner does, with these variables in place of the file's.
func (j gitLabJob) run(t *testing.T, folder string, variables map[string]string) (string, int) {
	t.Helper()
	set := maps.Clone(j.Variables)
	maps.Copy(set, variables)
	script := strings.Join(append(slices.Clone(j.BeforeScript), j.Script...), "\n")
	c := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", "-c", script)
	c.Dir = folder
	c.Env = os.Environ()
	for name, value := range set {
		c.Env = append(c.Env, name+"="+os.Expand(value, func(other string) string { return set[other] }))
	}
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// TestGitLab runs the jobs of the example with a release from a folder. The reports that
// GitLab is told of are there, and exit code 3 is the one that it is to allow.
func TestGitLab(t *testing.T) {
	t.Parallel()
	jobs := readGitLabJobs(t)
	files, machine := jobs["gpudoctor files"], jobs["gpudoctor machine"]
	got := files.Variables["GPUDOCTOR_VERSION"]
	expect.That(t, got == version, "GPUDOCTOR_VERSION is %s, and this is %s", got, version)
	expect.That(t, files.AllowFailure.ExitCodes == exitUnproven, "exit code %d is allowed", files.AllowFailure.ExitCodes)
	night.NotShort(t, "the scripts run the program one at a time")
	from := map[string]string{"GPUDOCTOR_URL": "file://" + writeRelease(t)}
	for _, tt := range []struct {
		name, launch string
		extra        string // The content of a further file.
		code, issues int
	}{
		{"healthy", "job-healthy", "", exitOK, 0},
		{"findings", "pod-hides-gpus", "", exitFindings, 1},
		{"not examined", "job-healthy", "The cluster has eight nodes.\n", exitUnproven, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			extractLaunch(t, tt.launch, filepath.Join(folder, "deploy"))
			if tt.extra != "" {
				expect.NoError(t, os.WriteFile(filepath.Join(folder, "deploy", "notes.txt"), []byte(tt.extra), 0o600))
			}
			out, code := files.run(t, folder, from)
			expect.Must(t, code == tt.code, "exit code %d, want %d:\n%s", code, tt.code, out)
			artifacts := append(slices.Collect(maps.Values(files.Artifacts.Reports)), files.Artifacts.Paths...)
			for _, name := range artifacts {
				info, err := os.Stat(filepath.Join(folder, name))
				expect.That(t, err == nil && info.Size() != 0, "%s: %v", name, err)
			}
			var issues []struct{ Location struct{ Path string } }
			if err := json.Unmarshal(expect.Value(os.ReadFile(filepath.Join(folder, files.Artifacts.Reports["codequality"])))(t), &issues); err != nil || len(issues) != tt.issues {
				t.Fatalf("%d issues: %v, want %d", len(issues), err, tt.issues)
			}
			for _, i := range issues {
				expect.That(t, code != exitFindings || i.Location.Path == "deploy/pod.yaml", "an issue is in %q", i.Location.Path)
			}
		})
	}
	t.Run("other program", func(t *testing.T) {
		t.Parallel()
		release := writeRelease(t)
		expect.NoError(t, os.WriteFile(filepath.Join(release, files.Variables["GPUDOCTOR_FILE"]), []byte("#!/bin/sh\ntouch hacked\n"), 0o600))
		folder := t.TempDir()
		out, code := files.run(t, folder, map[string]string{"GPUDOCTOR_URL": "file://" + release})
		_, err := os.Stat(filepath.Join(folder, "hacked"))
		expect.That(t, code != exitOK && err != nil && !strings.Contains(out, "Healthy"), "exit code %d:\n%s", code, out)
	})
	t.Run("machine", func(t *testing.T) {
		t.Parallel()
		needsNoGPU(t)
		out, code := machine.run(t, t.TempDir(), from)
		expect.That(t, code == exitUnproven, "a machine without GPUs: exit code %d:\n%s", code, out)
	})
}
