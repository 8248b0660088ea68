package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/image/imagetest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

type action struct {
	Inputs  map[string]struct{ Default string }
	Outputs map[string]struct{ Value string }
	Runs    struct {
		Using string
		Steps []actionStep
	}
}

type actionStep struct {
	Name, ID, Shell, Run string
	WorkingDirectory     string `yaml:"working-directory"`
	Env                  map[string]string
}

func readAction(t *testing.T) action {
	t.Helper()
	raw := expect.Value(os.ReadFile("../../action.yml"))(t)
	var a action
	expect.NoError(t, yaml.Unmarshal(raw, &a))
	return a
}

// expression is what a runner replaces: ${{ inputs.from }}.
var expression = regexp.MustCompile(`\$\{\{ ([a-z0-9_.-]+) \}\}`)

// TestActionFile checks that the scripts of action.yml contain no expression, since a runner puts its value into the
// script as it is, that every input is used, and that the default version is this one.
func TestActionFile(t *testing.T) {
	t.Parallel()
	a := readAction(t)
	used := map[string]bool{}
	for _, s := range a.Runs.Steps {
		expect.That(t, !strings.Contains(s.Run, "${{"), "the script of %q contains an expression", s.Name)
		for _, value := range append(slices.Collect(maps.Values(s.Env)), s.WorkingDirectory) {
			for _, m := range expression.FindAllStringSubmatch(value, -1) {
				used[m[1]] = true
			}
		}
	}
	for name := range a.Inputs {
		expect.That(t, used["inputs."+name], "the input %s is not used", name)
	}
	expect.Equal(t, version, a.Inputs["version"].Default, "the default version")
}

// runnerOf is a stand-in for a runner: a workspace and a release to download.
type runnerOf struct {
	action    action
	workspace string
	release   string
	variables []string
}

type actionRun struct {
	code                int // Of the last step that was run.
	log, summary, lines string
	outputs             map[string]string
}

// newRunner makes a workspace with files of jobs, and a release whose program runs the one under test.
func newRunner(t *testing.T) *runnerOf {
	t.Helper()
	r := &runnerOf{action: readAction(t), workspace: t.TempDir(), release: writeRelease(t)}
	for name, from := range map[string]string{"deploy": "job-healthy", "bad": "pod-hides-gpus", "unclear": "job-healthy"} {
		extractLaunch(t, from, filepath.Join(r.workspace, name))
	}
	notes := filepath.Join(r.workspace, "unclear", "notes.txt")
	expect.NoError(t, os.WriteFile(notes, []byte("The cluster has eight nodes.\n"), 0o600))
	return r
}

// writeRelease makes a folder with what of a release is downloaded.
func writeRelease(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	program := []byte("#!/bin/sh\nexec gpudoctor \"$@\"\n")
	sum := sha256.Sum256(program)
	var sums strings.Builder
	for _, name := range []string{"gpudoctor_linux_amd64", "gpudoctor_linux_arm64"} {
		expect.NoError(t, os.WriteFile(filepath.Join(folder, name), program, 0o600))
		fmt.Fprintf(&sums, "%s  %s\n%s  %[2]s.cdx.json\n", hex.EncodeToString(sum[:]), name, strings.Repeat("0", 64))
	}
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(sums.String()), 0o600))
	return folder
}

// run runs the steps of the action as a runner does: bash with -e and pipefail, and nothing after a step that failed.
func (r *runnerOf) run(t *testing.T, inputs map[string]string) actionRun {
	t.Helper()
	temp := t.TempDir()
	values := map[string]string{"github.action_path": expect.Value(filepath.Abs("../.."))(t)}
	for name, in := range r.action.Inputs {
		values["inputs."+name] = in.Default
	}
	values["inputs.release-url"] = "file://" + r.release
	for name, value := range inputs {
		_, ok := r.action.Inputs[name]
		expect.Must(t, ok, "there is no input %s", name)
		values["inputs."+name] = value
	}
	expand := func(text string) string {
		return expression.ReplaceAllStringFunc(text, func(s string) string { return values[expression.FindStringSubmatch(s)[1]] })
	}
	got := actionRun{outputs: map[string]string{}}
	for i, s := range r.action.Runs.Steps {
		file := func(name string) string { return filepath.Join(temp, name+strconv.Itoa(i)) }
		expect.NoError(t, os.WriteFile(file("script"), []byte(s.Run), 0o600))
		c := exec.CommandContext(t.Context(), s.Shell, "--noprofile", "--norc", "-eo", "pipefail", file("script"))
		c.Dir = filepath.Join(r.workspace, expand(s.WorkingDirectory))
		c.Env = append(os.Environ(), "LANG=C.UTF-8", "RUNNER_OS=Linux", "RUNNER_ARCH=X64", "RUNNER_TEMP="+temp, "GITHUB_WORKSPACE="+r.workspace,
			"GITHUB_OUTPUT="+file("output"), "GITHUB_STEP_SUMMARY="+file("summary"))
		c.Env = append(c.Env, r.variables...)
		for name, value := range s.Env {
			c.Env = append(c.Env, name+"="+expand(value))
		}
		out, code := together(t, c)
		got.log += out
		got.code = code
		written, _ := os.ReadFile(file("output")) // A step that fails early writes none.
		got.lines += string(written)
		for line := range strings.Lines(string(written)) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			values["steps."+s.ID+".outputs."+name] = value
		}
		summary, _ := os.ReadFile(file("summary"))
		got.summary += string(summary)
		if got.code != 0 {
			break
		}
	}
	for name, out := range r.action.Outputs {
		got.outputs[name] = expand(out.Value)
	}
	return got
}

// TestAction runs the action with a release from a folder: exit code, verdict, reports and
// annotations are those of the program.
func TestAction(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "the scripts run the program one at a time")
	r := newRunner(t)
	image := imagetest.Write(t, goodImages[0].img, imagetest.Docker)
	digest := strings.Fields(string(expect.Value(os.ReadFile(filepath.Join(r.release, "SHA256SUMS")))(t)))[0]
	for _, tt := range []struct {
		name    string
		inputs  map[string]string
		code    int
		verdict string
		log     string // An expression that it matches.
	}{
		{"healthy", map[string]string{"from": "deploy", "strict": "true"}, exitOK, "healthy", `(?m)^gpudoctor \S+ \(`},
		{"findings", map[string]string{"from": "deploy\nbad\n"}, exitFindings, "findings", `(?m)^::error file=bad/pod\.yaml,line=\d+,title=`},
		{"fail-on", map[string]string{"from": "bad", "fail-on": "none"}, exitOK, "findings", `(?m)^::warning `},
		{"not examined", map[string]string{"from": "unclear", "strict": "true"}, exitUnproven, "inconclusive", `(?m)^::warning .*notes\.txt`},
		{"flags", map[string]string{"from": "bad", "flags": "--only=shm-too-small\n\n--verbose"}, exitOK, "healthy", ``},
		{"image", map[string]string{"from": image, "profile": "image", "driver": "580.65.06"}, exitOK, "healthy", ``},
		{"folder", map[string]string{"from": ".", "working-directory": "deploy"}, exitOK, "healthy", ``},
		{"pinned", map[string]string{"from": "deploy", "sha256": digest}, exitOK, "healthy", ``},
		{"no such file", map[string]string{"from": "nowhere"}, exitError, "", `(?m)^gpudoctor: .*nowhere`},
		{"not a boolean", map[string]string{"from": "deploy", "strict": "perhaps"}, exitError, "", `(?m)^gpudoctor: .*strict`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := r.run(t, tt.inputs)
			said := got.outputs["exit-code"] == strconv.Itoa(tt.code) && got.outputs["verdict"] == tt.verdict
			expect.That(t, got.code == tt.code && said, "exit code %d, outputs %v, want %d, %q\n%s", got.code, got.outputs, tt.code, tt.verdict, got.log)
			expect.That(t, regexp.MustCompile(tt.log).MatchString(got.log), "the log does not match %s:\n%s", tt.log, got.log)
			for _, report := range []string{"json", "markdown", "sarif", "junit"} {
				content, err := os.ReadFile(got.outputs[report])
				expect.That(t, (err == nil && len(content) > 0) == (tt.verdict != ""), "%s at %q: %v", report, got.outputs[report], err)
			}
			expect.That(t, (got.summary != "") == (tt.verdict != ""), "summary: %.200q", got.summary)
		})
	}
}

// TestActionDownload checks that nothing is run but a program with the checksum of the release, and the one given.
func TestActionDownload(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "the scripts run the program one at a time")
	const line = `(?m)^\w+  gpudoctor_linux_amd64\n`
	for _, tt := range []struct{ name, file, old, by, input, value, log string }{ // A file of the release is changed, or an input set.
		{"other program", "gpudoctor_linux_amd64", `(?s)\A.*\z`, "#!/bin/sh\ntouch hacked\n", "", "", "does not have the expected checksum"},
		{"not listed", "SHA256SUMS", line, "", "", "", "does not list gpudoctor_linux_amd64"},
		{"no checksum", "SHA256SUMS", line, "$$(touch hacked)  gpudoctor_linux_amd64\n", "", "", "does not list gpudoctor_linux_amd64"},
		{"pinned to another", "", "", "", "sha256", strings.Repeat("a", 64), "does not have the expected checksum"},
		{"no release", "", "", "", "release-url", "file:///nowhere", "SHA256SUMS of gpudoctor .* could not be downloaded"},
		{"without TLS", "", "", "", "release-url", "http://127.0.0.1:1", "could not be downloaded"},
		{"version", "", "", "", "version", "1/../../x", "neither a version"},
		{"processor", "", "", "", "RUNNER_ARCH", "ARM", "this runner has Linux on ARM"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, inputs := newRunner(t), map[string]string{"from": "deploy"}
			if tt.file != "" {
				file := filepath.Join(r.release, tt.file)
				raw := expect.Value(os.ReadFile(file))(t)
				changed := regexp.MustCompile(tt.old).ReplaceAll(raw, []byte(tt.by))
				expect.Must(t, !bytes.Equal(changed, raw), "nothing was changed")
				expect.NoError(t, os.WriteFile(file, changed, 0o600))
			}
			switch {
			case tt.input == "RUNNER_ARCH":
				r.variables = []string{"RUNNER_ARCH=" + tt.value}
			case tt.input != "":
				inputs[tt.input] = tt.value
			}
			got := r.run(t, inputs)
			expect.That(t, got.code == exitError && got.lines == "" && regexp.MustCompile(`(?m)^::error title=gpudoctor::.*`+tt.log).MatchString(got.log), "exit code %d, outputs %q:\n%s", got.code, got.lines, got.log)
			expect.Fails(os.Stat(filepath.Join(r.workspace, "hacked")))(t, os.ErrNotExist, "it was run")
		})
	}
}

// TestActionInjection checks that no value of an input, and no name of a file, is run by the
// shell, adds an output, or is taken for a command of the runner.
func TestActionInjection(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "the scripts run the program one at a time")
	// A working directory is the runner's to enter: no script has it.
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(readAction(t).Inputs)), func(name string) bool { return name == "working-directory" })
	values := []string{"$(touch hacked)", "`touch hacked`", "x; touch hacked", "x\ntouch hacked", "';touch hacked;'", `";touch hacked;"`, "x\nhacked=1\n::error::hacked", "-n", "*"}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, value := range expect.SomeRows(5, values) {
				refuses(t, newRunner(t), name, map[string]string{"from": "deploy", name: value})
			}
		})
	}
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		r := newRunner(t)
		for _, name := range []string{"$(touch hacked).yaml", "a\n::error::hacked", "##[error]hacked", "x`touch hacked`"} {
			if err := os.WriteFile(filepath.Join(r.workspace, "bad", name), []byte("kind: {{ x }\n"), 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		refuses(t, r, "file", map[string]string{"from": "bad"})
	})
}

// refuses runs the action, and looks for what a value made it do.
func refuses(t *testing.T, r *runnerOf, name string, inputs map[string]string) {
	t.Helper()
	got := r.run(t, inputs)
	expect.Len(t, 0, expect.Value(filepath.Glob(filepath.Join(r.workspace, "*", "hacked")))(t), "%s %q: there are", name, inputs[name])
	expect.Fails(os.Stat(filepath.Join(r.workspace, "hacked")))(t, os.ErrNotExist, "%s %q: it was run", name, inputs[name])
	for line := range strings.Lines(got.lines) {
		known, _, _ := strings.Cut(line, "=")
		expect.That(t, known != "hacked" && strings.Contains(line, "="), "%s %q: output %q", name, inputs[name], line)
	}
	for line := range strings.Lines(got.log) {
		line = strings.TrimSpace(line)
		expect.That(t, !strings.HasPrefix(line, "::error::hacked") && !strings.HasPrefix(line, "##[error]"), "%s %q: command %q", name, inputs[name], line)
	}
}

// TestActionSource checks that the action builds the commit that it is of.
func TestActionSource(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "it builds the program")
	expect.NotByDay(t, "with another flag than the tests, all is compiled again")
	r := newRunner(t)
	got := r.run(t, map[string]string{"version": "source", "from": "deploy", "release-url": "file:///nowhere"})
	expect.That(t, got.code == exitOK && got.outputs["verdict"] == "healthy", "exit code %d:\n%s", got.code, got.log)
}

// extractLaunch writes the files of a case of fixtures/launches into a folder.
func extractLaunch(t *testing.T, name, folder string) {
	t.Helper()
	a := expect.Value(txtar.ParseFile(filepath.Join("..", "..", "fixtures", "launches", name+".txtar")))(t)
	expect.NoError(t, os.CopyFS(folder, expect.Value(txtar.FS(a))(t)))
}

// TestPreCommit checks which files the hook is given, that the name of a file is an argument whatever is in it, that one file with a
// fault fails the hook, and the hook that judges a folder with its own and with a user's arguments.
func TestPreCommit(t *testing.T) {
	t.Parallel()
	var hooks []struct { // Their patterns are Python's; those here mean the same in Go.
		Entry, Files, Exclude string
		Args                  []string
	}
	expect.NoError(t, yaml.Unmarshal(expect.Value(os.ReadFile("../../.pre-commit-hooks.yaml"))(t), &hooks))
	files, exclude := regexp.MustCompile(hooks[0].Files), regexp.MustCompile(hooks[0].Exclude)
	hostile := "compose-$(touch hacked) ';touch hacked;'.yaml"
	for name, want := range map[string]bool{
		"Dockerfile": true, "docker/Dockerfile.train": true, "train.Dockerfile": true, "Containerfile": true, "deploy/docker-compose.gpu.yml": true, hostile: true,
		"jobs/train.sbatch": true, "etc/slurm.conf": true, "gres.conf": true, "values.yaml": false, "composer.yaml": false, "Dockerfile.md": false, "run.sh": false,
		"myslurm.conf": false, "-o.sbatch": false, "x/-o.sbatch": true,
	} {
		expect.That(t, (files.MatchString(name) && !exclude.MatchString(name)) == want, "%s: taken %t, want %t", name, !want, want)
	}
	folder := t.TempDir()
	for name, from := range map[string]string{"good": "compose-healthy", "bad": "compose-hides-gpus", "deploy": "job-healthy", "k8s": "pod-hides-gpus"} {
		extractLaunch(t, from, filepath.Join(folder, name))
	}
	expect.NoError(t, os.Rename(filepath.Join(folder, "bad", "compose.yaml"), filepath.Join(folder, hostile)))
	for _, tt := range []struct {
		hook, code int
		arguments  []string
	}{
		{0, exitOK, []string{"good/compose.yaml"}},
		{0, exitFindings, []string{"good/compose.yaml", hostile}},
		{1, exitOK, hooks[1].Args},
		{1, exitFindings, []string{"--from", "k8s"}},
	} {
		c := exec.CommandContext(t.Context(), "sh", append([]string{"-c", hooks[tt.hook].Entry + ` "$@"`, "sh"}, tt.arguments...)...)
		c.Dir = folder
		out, code := together(t, c)
		expect.That(t, code == tt.code, "%q: exit code %d, want %d:\n%s", tt.arguments, code, tt.code, out)
	}
	expect.Len(t, 0, expect.Value(filepath.Glob(filepath.Join(folder, "hacked*")))(t), "the name of a file was run:")
}
