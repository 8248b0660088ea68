//go:build ci

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/rhysd/actionlint"
	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestActionLint checks that actionlint finds no fault in the example workflow, in its use of
// action.yml, and in the steps of action.yml, read as those of a workflow.
func TestActionLint(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(root, name)
		expect.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)))
		return path
	}
	file(".git/config", nil)
	file(".github/actionlint.yaml", []byte("self-hosted-runner: {labels: [gpu]}\n"))
	raw := expect.Value(os.ReadFile("../../action.yml"))(t)
	file("action.yml", raw)

	example := expect.Value(os.ReadFile("../../docs/examples/github/gpudoctor.yml"))(t)
	released := "uses: gpudoctor/gpudoctor@v" + version
	expect.Equal(t, 3, bytes.Count(example, []byte(released)), "jobs of the example that say %s", released)
	workflow := file(".github/workflows/example.yml", bytes.ReplaceAll(example, []byte(released), []byte("uses: ./")))

	var document struct {
		Inputs map[string]struct {
			Default string `yaml:"default" json:"default"`
		}
		Runs struct{ Steps []map[string]any }
	}
	expect.NoError(t, yaml.Unmarshal(raw, &document))
	inputs := map[string]any{}
	for name, in := range document.Inputs {
		inputs[name] = map[string]any{"type": "string", "default": in.Default}
	}
	steps := file(".github/workflows/steps.yml", expect.Value(json.Marshal(map[string]any{
		"on":   map[string]any{"workflow_call": map[string]any{"inputs": inputs}},
		"jobs": map[string]any{"action": map[string]any{"runs-on": "ubuntu-latest", "steps": document.Runs.Steps}},
	}))(t))
	lint := func(files ...string) []*actionlint.Error {
		t.Helper()
		linter := expect.Value(actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{WorkingDir: root}))(t)
		return expect.Value(linter.LintFiles(files, nil))(t)
	}
	for _, e := range lint(workflow, steps) {
		t.Error(e)
	}
	wrong := file(".github/workflows/wrong.yml", bytes.ReplaceAll(example, []byte(released+"\n        with:"), []byte("uses: ./\n        with:\n          colour: red")))
	expect.That(t, len(lint(wrong)) > 0, "an input that action.yml lacks is not found")
}
