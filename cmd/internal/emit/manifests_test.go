//go:build ci

package emit_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

func init() { checkers["compose"], checkers["kubernetes"] = isCompose, isPod }

// isCompose checks that Compose's own loader takes it, and what it makes of it.
func isCompose(t *testing.T, p *plan.Plan, text string) {
	t.Helper()
	details := types.ConfigDetails{
		WorkingDir:  t.TempDir(),
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: []byte(text)}},
		Environment: types.Mapping{"IMAGE": "some/image"},
	}
	project, err := loader.LoadWithContext(t.Context(), details, func(o *loader.Options) { o.SetProjectName("job", true) })
	expect.Must(t, err == nil, "%v\n%s", err, text)
	job := project.Services["job"]
	expect.Equal(t, "some/image", job.Image, "image")
	if len(p.Settings) == 0 {
		return
	}
	want := types.MappingWithEquals{"NCCL_NASTY": new(nasty), "NCCL_P2P_DISABLE": new("1"), "CUDA_VISIBLE_DEVICES": new("0,1"), "NCCL_SOCKET_IFNAME": nil}
	expect.NoDiff(t, want, job.Environment, "environment")
	expect.That(t, job.ShmSize == 16<<30 && job.Ipc == "host" && job.NetworkMode == "host" && job.PidsLimit == -1 && slices.Equal(job.CapAdd, []string{"SYS_NICE"}) && slices.Equal(job.GroupAdd, []string{"render"}), "the service is %+v", job)
	memlock, nofile := job.Ulimits["memlock"], job.Ulimits["nofile"]
	expect.That(t, memlock != nil && memlock.Single == -1 && nofile != nil && nofile.Soft == 1048576 && nofile.Hard == 1048576, "limits %+v", job.Ulimits)
	expect.That(t, len(job.Devices) == 1 && job.Devices[0].Source == "/dev/infiniband" && len(job.Volumes) == 1 && job.Volumes[0].Source == "/sys" && job.Volumes[0].ReadOnly, "devices %+v, volumes %+v", job.Devices, job.Volumes)
	reserved := job.Deploy.Resources.Reservations.Devices
	expect.That(t, len(reserved) == 1 && reserved[0].Count == -1 && reserved[0].Driver == "nvidia", "GPUs %+v", reserved)
}

// isPod checks that Kubernetes' own decoder takes it, strictly, and what it makes of it.
func isPod(t *testing.T, p *plan.Plan, text string) {
	t.Helper()
	document, err := yaml.YAMLToJSONStrict([]byte(text))
	expect.Must(t, err == nil, "%v\n%s", err, text)
	var pod corev1.Pod
	strict, err := json.UnmarshalStrict(document, &pod)
	err = errors.Join(append(strict, err)...)
	expect.Must(t, err == nil, "%v\n%s", err, text)
	expect.Must(t, pod.Kind == "Pod" && len(pod.Spec.Containers) == 1, "it is %+v", pod)
	job := pod.Spec.Containers[0]
	n := job.Resources.Limits["nvidia.com/gpu"]
	expect.That(t, p.Vendor != "nvidia" || int(n.Value()) == len(p.Ranks), "%v GPUs, want %d", n, len(p.Ranks))
	if len(p.Settings) == 0 {
		return
	}
	want := []corev1.EnvVar{{Name: "NCCL_NASTY", Value: nasty}, {Name: "NCCL_P2P_DISABLE", Value: "1"}, {Name: "CUDA_VISIBLE_DEVICES", Value: "0,1"}}
	expect.NoDiff(t, want, job.Env, "environment")
	added := job.SecurityContext.Capabilities.Add
	expect.That(t, slices.Equal(added, []corev1.Capability{"SYS_NICE", "IPC_LOCK"}) && pod.Spec.HostIPC && pod.Spec.HostNetwork, "capabilities %v, %+v", added, pod.Spec)
	v := pod.Spec.Volumes
	expect.That(t, len(v) == 2 && v[0].EmptyDir != nil && v[0].EmptyDir.Medium == corev1.StorageMediumMemory && v[0].EmptyDir.SizeLimit.Value() == 16<<30 && v[1].HostPath != nil, "volumes %+v", v)
	m := job.VolumeMounts
	expect.That(t, len(m) == 2 && m[0].MountPath == "/dev/shm" && m[1].MountPath == "/sys" && m[1].ReadOnly, "mounts %+v", m)
	flat := strings.Join(strings.Fields(strings.ReplaceAll(text, "#", "")), " ")
	expect.That(t, strings.Contains(flat, "env -u NCCL_SOCKET_IFNAME"), "it does not say how to remove a variable of the image")
}
