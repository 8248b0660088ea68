//go:build ci

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
	"gopkg.in/yaml.v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	strict "sigs.k8s.io/json"
	kyaml "sigs.k8s.io/yaml"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
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

// readJob reads a manifest with a Job or a JobSet of one, and perhaps a Service, into their own types, with Kubernetes'
// decoder: an unknown field, a field twice, a value of another type and a malformed quantity are errors.
func readJob(raw []byte) (*batchv1.Job, error) {
	var job batchv1.Job
	for text := range strings.SplitSeq(string(raw), "\n---\n") {
		document, err := kyaml.YAMLToJSONStrict([]byte(text))
		if err != nil {
			return nil, err
		}
		var about metav1.TypeMeta
		var set jobset.JobSet
		objects := map[string]any{"Service": &corev1.Service{}, "Job": &job, "JobSet": &set}
		if err := strict.UnmarshalCaseSensitivePreserveInts(document, &about); err != nil || objects[about.Kind] == nil {
			return nil, fmt.Errorf("the kind %q: %w", about.Kind, cmp.Or(err, errors.ErrUnsupported))
		}
		faults, err := strict.UnmarshalStrict(document, objects[about.Kind])
		if err := errors.Join(append(faults, err)...); err != nil {
			return nil, err
		}
		for _, r := range set.Spec.ReplicatedJobs {
			job = batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: set.Name + "-" + r.Name}, Spec: r.Template.Spec}
		}
	}
	return &job, nil
}

// TestKubernetes checks that the manifests have the fields of Kubernetes' types and no others, and what the API server requires
// beyond types (pkg/apis/batch/validation of Kubernetes), that they pass gpudoctor's own judgement, and that their arguments are right.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	files := expect.Value(filepath.Glob("../../docs/examples/kubernetes/*.yaml"))(t)
	expect.Len(t, 3, files, "manifests")
	for _, file := range files {
		raw := expect.Value(os.ReadFile(file))(t)
		job := expect.Value(readJob(raw))(t)
		expect.Fails(readJob(bytes.Replace(raw, []byte("mountPath:"), []byte("mountpath:"), 1)))(t, nil, "%s: a misspelt field is not found", file)
		spec := job.Spec.Template.Spec
		expect.That(t, len(validation.IsDNS1123Subdomain(job.Name)) == 0, "%s: the name %q", file, job.Name)
		expect.That(t, spec.RestartPolicy == corev1.RestartPolicyNever, "%s: a pod failure policy and a limit per index require Never, not %s", file, spec.RestartPolicy)
		expect.That(t, job.Spec.BackoffLimitPerIndex == nil || *job.Spec.CompletionMode == batchv1.IndexedCompletion, "%s: backoffLimitPerIndex requires the completion mode Indexed", file)
		doctors := 0
		for _, c := range append(append([]corev1.Container{}, spec.InitContainers...), spec.Containers...) {
			gpus := c.Resources.Limits["nvidia.com/gpu"]
			expect.That(t, gpus.Value() == 8, "%s: %s has %s GPUs", file, c.Name, gpus.String())
			if c.Name == "gpudoctor" {
				doctors++
				out, code := runIn(t, ".", "gpudoctor "+strings.Join(c.Args, " "))
				expect.That(t, code != exitError && c.Args[0] == "check" && strings.HasSuffix(c.Image, ":"+version), "%s: %s %v: exit code %d:\n%s", file, c.Image, c.Args, code, out)
			}
		}
		expect.Equal(t, 1, doctors, "%s: containers with gpudoctor", file)
		if p := job.Spec.PodFailurePolicy; p != nil {
			codes := p.Rules[0].OnExitCodes
			expect.That(t, *codes.ContainerName == "gpudoctor" && slices.Equal(codes.Values, []int32{exitFindings, exitError}), "%s: pod failure policy %+v", file, codes)
		}
		out, code := runIn(t, ".", "gpudoctor check --profile "+string(rules.Launch)+" --strict --from "+file)
		expect.That(t, code == exitOK, "%s: exit code %d:\n%s", file, code, out)
	}
}
