package launch_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const podJSON = `{
  "apiVersion": "v1",
  "kind": "Pod",
  "metadata": {"name": "trainer-0"},
  "spec": {
	"hostIPC": true,
    "containers": [
      {"name": "main", "image": "img:1", "command": ["torchrun", "--nproc_per_node=8", "train.py"],
       "env": [{"name": "NCCL_IB_DISABLE", "value": "1"}],
       "resources": {"limits": {"nvidia.com/gpu": "8"}},
       "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}]}
    ],
    "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}}],
    "restartPolicy": "Never"
  }
}
`

const described = `Name:             trainer-0
Node:             gpu-node-3/10.2.0.13
Containers:
  main:
    Container ID:  containerd://0f2a
    Image:         img:1
    Command:
      torchrun
      --rdzv_endpoint=host:29500
      train.py
    Last State:     Terminated
      Reason:       Error
    Limits:
      nvidia.com/gpu:  8
      memory:          64Gi
    Environment:
      NCCL_DEBUG:          INFO
      NCCL_SOCKET_IFNAME:  eth0
    Mounts:
      /dev/shm from dshm (rw)
      /data from data (rw)
Conditions:
  Type              Status
  Initialized       True
Volumes:
  data:
    Type:       PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)
  dshm:
    Type:       EmptyDir (a temporary directory that shares a pod's lifetime)
    Medium:     Memory
    SizeLimit:  2Gi
QoS Class:                   BestEffort
`

func TestLaunchJSON(t *testing.T) {
	size := func(n int64) *int64 { return &n }
	for name, tt := range map[string]struct {
		text string
		want facts.Launch
	}{
		"pod": {podJSON, facts.Launch{
			Kind: "kubernetes", Name: "trainer-0", Image: "img:1", GPUs: new(8), GPUVendor: "nvidia", IPC: "host", SHMBytes: size(16 << 30), SHMMounted: true,
			Command: []string{"torchrun", "--nproc_per_node=8", "train.py"}, Mounts: []string{"emptyDir-memory:/dev/shm"}, Processes: new(8),
			Variables: map[string]string{"NCCL_IB_DISABLE": "1"}, Resources: map[string]string{"nvidia.com/gpu": "8"},
		}},
		"pod, cut": {before(podJSON, `"volumes"`), facts.Launch{
			Kind: "kubernetes", Name: "trainer-0", Image: "img:1", GPUs: new(8), GPUVendor: "nvidia", IPC: "host", SHMMounted: true,
			Command: []string{"torchrun", "--nproc_per_node=8", "train.py"}, Mounts: []string{"dshm:/dev/shm"}, Processes: new(8),
			Variables: map[string]string{"NCCL_IB_DISABLE": "1"}, Resources: map[string]string{"nvidia.com/gpu": "8"},
		}},
		"described": {described, facts.Launch{
			Kind: "kubernetes", Name: "main", Image: "img:1", GPUs: new(8), GPUVendor: "nvidia", SHMBytes: size(2 << 30), SHMMounted: true,
			Command: []string{"torchrun", "--rdzv_endpoint=host:29500", "train.py"}, Mounts: []string{"emptyDir-memory:/dev/shm", "data:/data"},
			Variables: map[string]string{"NCCL_DEBUG": "INFO", "NCCL_SOCKET_IFNAME": "eth0"}, Resources: map[string]string{"nvidia.com/gpu": "8"}, MemoryBytes: size(64 << 30),
		}},
	} {
		f := texttest.Parse("x.txt", tt.text)
		expect.Must(t, len(f.Launches) == 1, "%s: %d launches: %+v", name, len(f.Launches), f.Launches)
		got := f.Launches[0]
		got.Source, got.Line, got.Lines, got.Unit, got.Object = "", 0, nil, 0, ""
		expect.NoDiff(t, tt.want, got, "%s", name)
	}
}

func TestJSONClosed(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": [1, 2`: `{"a": [1]}`, `{"a": {"b": "x"}, "c": "`: `{"a": {"b": "x"}}`, `{"a": {"b": "x"}`: `{"a": {"b": "x"}}`,
		`{"a, b": 1, "c": {`: `{"a, b": 1, "c": {}}`, ``: ``,
	} {
		got := parse.JSONClosed(text)
		expect.That(t, got == want && (got == "" || json.Valid([]byte(got))), "jsonClosed(%q) = %q, want %q", text, got, want)
	}
}

func before(text, word string) string {
	head, _, _ := strings.Cut(text, word)
	return head
}

func TestPartsOfInspectAndPods(t *testing.T) {
	f := texttest.Parse("x.txt", described+"torchrun --nproc-per-node=4 train.py --lr 1\n")
	expect.That(t, len(f.Launches) == 2 && f.Launches[1].Kind == "torchrun", "behind a described pod: got %+v", f.Launches)
	f = texttest.Parse("pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: w\nspec:\n  containers:\n  - name: worker\n    image: a\n    resources:\n      limits:\n        nvidia.com/gpu: 2\n  - name: proxy\n    image: b\n    args: [proxy]\n")
	expect.That(t, len(f.Launches) == 2 && f.Launches[1].GPUs != nil && *f.Launches[1].GPUs == 0 && *f.Launches[0].GPUs == 2, "got %+v", f.Launches)
}
