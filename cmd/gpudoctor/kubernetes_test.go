//go:build ci

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/json"
	kyaml "sigs.k8s.io/yaml"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

func kubernetesExamples(t *testing.T) []string {
	t.Helper()
	files := expect.Value(filepath.Glob("../../docs/examples/kubernetes/*.yaml"))(t)
	expect.Must(t, len(files) == 3, "manifests: %v", files)
	return files
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
		if err := json.UnmarshalCaseSensitivePreserveInts(document, &about); err != nil || objects[about.Kind] == nil {
			return nil, fmt.Errorf("the kind %q: %w", about.Kind, cmp.Or(err, errors.ErrUnsupported))
		}
		strict, err := json.UnmarshalStrict(document, objects[about.Kind])
		if err := errors.Join(append(strict, err)...); err != nil {
			return nil, err
		}
		for _, r := range set.Spec.ReplicatedJobs {
			job = batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: set.Name + "-" + r.Name}, Spec: r.Template.Spec}
		}
	}
	return &job, nil
}

// TestKubernetesFields checks that the manifests have the fields of Kubernetes' types and no
// others, and that a misspelled one is found.
func TestKubernetesFields(t *testing.T) {
	t.Parallel()
	for _, file := range kubernetesExamples(t) {
		raw := expect.Value(os.ReadFile(file))(t)
		job, err := readJob(raw)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		checkJob(t, file, job)
		for old, by := range map[string]string{
			"securityContext:": "securityContexts:", "mountPath:": "mountpath:", "memory: 8Gi": "memory: 8Gigs", "restartPolicy: Never": "restartPolicy: [Never]",
			"backoffLimit": "backOffLimit",
		} {
			broken := strings.Replace(string(raw), old, by, 1)
			expect.Must(t, broken != string(raw), "%s has no %s", file, old)
			expect.Fails(readJob([]byte(broken)))(t, nil, "%s: %s is not found", file, by)
		}
	}
}

// checkJob checks what the API server requires beyond types (pkg/apis/batch/validation and
// pkg/apis/core/validation of Kubernetes), and what gpudoctor needs in a pod.
func checkJob(t *testing.T, file string, job *batchv1.Job) {
	t.Helper()
	expect.That(t, job.APIVersion == "batch/v1" && job.Kind == "Job" && len(validation.IsDNS1123Subdomain(job.Name)) == 0, "%s: %s %s %q", file, job.APIVersion, job.Kind, job.Name)
	spec := job.Spec.Template.Spec
	expect.That(t, spec.RestartPolicy == corev1.RestartPolicyNever, "%s: restartPolicy %s: a pod failure policy and a limit per index require Never", file, spec.RestartPolicy)
	expect.That(t, job.Spec.BackoffLimitPerIndex == nil || job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batchv1.IndexedCompletion, "%s: backoffLimitPerIndex requires the completion mode Indexed", file)
	volumes := map[string]corev1.Volume{}
	for _, v := range spec.Volumes {
		volumes[v.Name] = v
	}
	containers := map[string]corev1.Container{}
	for _, c := range append(append([]corev1.Container{}, spec.InitContainers...), spec.Containers...) {
		expect.That(t, len(validation.IsDNS1123Label(c.Name)) == 0 && containers[c.Name].Name == "", "%s: container %q", file, c.Name)
		containers[c.Name] = c
		for _, m := range c.VolumeMounts {
			v := volumes[m.Name]
			expect.That(t, m.MountPath != "/dev/shm" || v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory, "%s: %s: /dev/shm is not in memory", file, c.Name)
		}
		limits, requests := c.Resources.Limits, c.Resources.Requests
		for name, q := range requests {
			limit, ok := limits[name]
			expect.That(t, !ok || q.Cmp(limit) <= 0, "%s: %s requests more %s than its limit", file, c.Name, name)
		}
		gpus := limits["nvidia.com/gpu"]
		expect.That(t, gpus.Value() == 8, "%s: %s has %s GPUs", file, c.Name, gpus.String())
	}
	doctor, ok := containers["gpudoctor"]
	expect.That(t, ok && len(doctor.Command) == 0 && doctor.Args[0] == "check" && strings.HasSuffix(doctor.Image, ":"+version), "%s: %+v", file, doctor)
	if p := job.Spec.PodFailurePolicy; p != nil {
		for _, r := range p.Rules {
			codes := r.OnExitCodes
			if r.Action != batchv1.PodFailurePolicyActionFailJob || codes == nil || codes.Operator != batchv1.PodFailurePolicyOnExitCodesOpIn ||
				codes.ContainerName == nil || *codes.ContainerName != doctor.Name || len(codes.Values) != 2 || codes.Values[0] != exitFindings || codes.Values[1] != exitError {
				t.Errorf("%s: pod failure policy %+v", file, r)
			}
		}
	}
}

// TestKubernetesJudged checks that the manifests pass gpudoctor's own judgement of launches,
// and that the arguments in them are right.
func TestKubernetesJudged(t *testing.T) {
	t.Parallel()
	for _, file := range kubernetesExamples(t) {
		out, code := runIn(t, ".", "gpudoctor check --profile "+string(rules.Launch)+" --strict --from "+file)
		expect.That(t, code == exitOK, "%s: exit code %d:\n%s", file, code, out)
		job := expect.Value(readJob(expect.Value(os.ReadFile(file))(t)))(t)
		for _, c := range append(job.Spec.Template.Spec.InitContainers, job.Spec.Template.Spec.Containers...) {
			if c.Name != "gpudoctor" {
				continue
			}
			out, code := runIn(t, ".", "gpudoctor "+strings.Join(c.Args, " "))
			expect.That(t, code != exitError, "%s: %v: exit code %d:\n%s", file, c.Args, code, out)
		}
	}
}
