//go:build ci

package patch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/json"
	kyaml "sigs.k8s.io/yaml"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// podsOf are the pods of documents, read with Kubernetes' own decoder: an unknown field, a
// field twice, a value of another type and a malformed quantity are errors.
func podsOf(nodes []*yaml.Node) (all []*corev1.PodSpec, err error) {
	for _, n := range nodes {
		var more []*corev1.PodSpec
		if value(n, "containers") != nil {
			spec := new(corev1.PodSpec)
			more, err = []*corev1.PodSpec{spec}, strict(n, spec)
		} else {
			more, err = podsOf(n.Content)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

func strict(n *yaml.Node, into any) error {
	var v any
	if err := n.Decode(&v); err != nil {
		return err
	}
	raw, err := kyaml.Marshal(v)
	if err != nil {
		return err
	}
	document, err := kyaml.YAMLToJSONStrict(raw)
	if err != nil {
		return err
	}
	unknown, err := json.UnmarshalStrict(document, into)
	return errors.Join(append(unknown, err)...)
}

// valid checks what the API server requires of a pod beyond types (pkg/apis/core/validation of
// Kubernetes): names that exist and are not taken twice, paths that are not mounted twice.
func valid(spec *corev1.PodSpec) error {
	volumes := map[string]bool{}
	for _, v := range spec.Volumes {
		if len(validation.IsDNS1123Label(v.Name)) > 0 || volumes[v.Name] {
			return fmt.Errorf("volume %q", v.Name)
		}
		volumes[v.Name] = true
	}
	for _, c := range spec.Containers {
		paths, names := map[string]bool{}, map[string]bool{}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] || paths[m.MountPath] {
				return fmt.Errorf("%s mounts %s at %s", c.Name, m.Name, m.MountPath)
			}
			paths[m.MountPath] = true
		}
		for _, e := range c.Env {
			if names[e.Name] {
				return fmt.Errorf("%s sets %s twice", c.Name, e.Name)
			}
			names[e.Name] = true
		}
	}
	return nil
}

// TestKubernetes checks that manifests with their changes are manifests of Kubernetes, and
// that every container with GPUs has what was asked for.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	n := 0
	for name, text := range cases(t) {
		before, err := documentsOf(text)
		if err != nil || !strings.Contains(text, "containers:") {
			continue
		}
		if pods, err := podsOf(before); err != nil || len(pods) == 0 || slices.ContainsFunc(pods, func(p *corev1.PodSpec) bool { return valid(p) != nil }) {
			continue // It was none before, or a part of one.
		}
		// The host's namespace would make a volume at /dev/shm superfluous.
		got, ok := made(t, name, text, slices.DeleteFunc(settings(), func(w Want) bool { return w.Kind == plan.Namespace }))
		expect.Must(t, ok, "%s is not changed", name)
		after := expect.Value(documentsOf(got.Text))(t)
		pods, err := podsOf(after)
		expect.Must(t, err == nil, "%s: %v\n%s", name, err, got.Text)
		for _, p := range pods {
			n++
			err := valid(p)
			expect.That(t, err == nil, "%s: %v\n%s", name, err, got.Text)
			if len(got.Manual) == 0 && (len(got.Notes) == 0 || strings.HasPrefix(name, "kubernetes/")) {
				complete(t, name, p)
			}
		}
	}
	expect.AtLeast(t, 25, n, "pods were read")
}

// complete checks that containers with several GPUs have their settings.
func complete(t *testing.T, name string, p *corev1.PodSpec) {
	t.Helper()
	for _, c := range p.Containers {
		if q := c.Resources.Limits["nvidia.com/gpu"]; q.Value() < 2 {
			continue
		}
		privileged := c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
		if !privileged && (c.SecurityContext == nil || c.SecurityContext.Capabilities == nil ||
			!slices.Contains(c.SecurityContext.Capabilities.Add, "IPC_LOCK") || !slices.Contains(c.SecurityContext.Capabilities.Add, "SYS_NICE")) {
			t.Errorf("%s: %s lacks a capability", name, c.Name)
		}
		memory := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.MountPath == "/dev/shm" && slices.ContainsFunc(p.Volumes, func(v corev1.Volume) bool {
				return v.Name == m.Name && v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory && (v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Value() >= 1<<30)
			})
		})
		expect.That(t, memory || p.HostIPC, "%s: %s has no /dev/shm of its size", name, c.Name)
		for _, e := range c.Env {
			expect.That(t, (e.Name != "NCCL_P2P_DISABLE" || e.Value != "1") && (e.Name != "NCCL_IB_HCA" || e.Value == "=mlx5_0,mlx5_1"), "%s: %s: %s=%s", name, c.Name, e.Name, e.Value)
		}
	}
}

// TestCompose checks that compose files with their changes are read by the library of docker
// compose, against its schema, and have what was asked for.
func TestCompose(t *testing.T) {
	t.Parallel()
	n := 0
	for name, text := range cases(t) {
		if !strings.Contains(text, "services:") {
			continue
		}
		if _, err := project(t, text); err != nil {
			continue // It was none before.
		}
		got, ok := made(t, name, text, settings())
		expect.Must(t, ok, "%s is not changed", name)
		p, err := project(t, got.Text)
		expect.Must(t, err == nil, "%s: %v\n%s", name, err, got.Text)
		n++
		if len(got.Manual) > 0 {
			continue
		}
		for _, s := range p.Services {
			if len(s.Gpus) == 0 && (s.Deploy == nil || s.Deploy.Resources.Reservations == nil || len(s.Deploy.Resources.Reservations.Devices) == 0) {
				continue
			}
			limit := s.Ulimits["memlock"]
			locks := limit != nil && (limit.Single == -1 || limit.Soft == -1 && limit.Hard == -1)
			expect.That(t, (s.Privileged || locks && slices.Contains(s.CapAdd, "SYS_NICE") && len(s.Devices) != 0) && s.Ipc == "host" && slices.Contains(s.GroupAdd, "video"), "%s: %s: %+v\n%s", name, s.Name, limit, got.Text)
			for variable, want := range map[string]string{"NCCL_IB_HCA": "=mlx5_0,mlx5_1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"} {
				v := s.Environment[variable]
				expect.That(t, v != nil && *v == want, "%s: %s: %s", name, s.Name, variable)
			}
			v := s.Environment["NCCL_P2P_DISABLE"]
			expect.That(t, v == nil || *v != "1", "%s: %s keeps the variable", name, s.Name)
		}
	}
	expect.AtLeast(t, 8, n, "compose files were read")
}

func project(t *testing.T, text string) (*types.Project, error) {
	t.Helper()
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: t.TempDir(), ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: []byte(text)}},
		Environment: map[string]string{"HCA": "mlx5_0", "IMAGE": "image"},
	}, func(o *loader.Options) { o.SetProjectName("job", true) })
}
