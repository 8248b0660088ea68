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

const taskJSON = `{
    "family": "train",
    "ipcMode": "host",
    "containerDefinitions": [
        {
            "name": "main", "image": "img:1", "command": ["python", "-m", "torch.distributed.run"],
            "resourceRequirements": [{"type": "GPU", "value": "4"}],
            "linuxParameters": {"sharedMemorySize": 512, "capabilities": {"add": ["IPC_LOCK"]}, "devices": [{"hostPath": "/dev/infiniband/uverbs0"}]},
            "ulimits": [{"name": "memlock", "softLimit": -1, "hardLimit": -1}],
            "environment": [{"name": "FI_PROVIDER", "value": "efa"}]
        }
    ]
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
		"ECS": {taskJSON, facts.Launch{
			Kind: "ecs", Name: "main", IPC: "host", Image: "img:1", GPUs: new(4), GPUVendor: "nvidia", SHMBytes: size(512 << 20),
			Command: []string{"python", "-m", "torch.distributed.run"}, CapAdd: []string{"IPC_LOCK"}, Devices: []string{"/dev/infiniband/uverbs0"},
			MemlockBytes: size(-1), Variables: map[string]string{"FI_PROVIDER": "efa"},
		}},
		"described": {described, facts.Launch{
			Kind: "kubernetes", Name: "main", Image: "img:1", GPUs: new(8), GPUVendor: "nvidia", SHMBytes: size(2 << 30), SHMMounted: true,
			Command: []string{"torchrun", "--rdzv_endpoint=host:29500", "train.py"}, Mounts: []string{"emptyDir-memory:/dev/shm", "data:/data"},
			Variables: map[string]string{"NCCL_DEBUG": "INFO", "NCCL_SOCKET_IFNAME": "eth0"}, Resources: map[string]string{"nvidia.com/gpu": "8"}, MemoryBytes: size(64 << 30),
		}},
		"inspected, filtered": {
			"$ docker inspect trainer | grep -iE 'shm|ipc'\n            \"IpcMode\": \"private\",\n            \"ShmSize\": 67108864,\n",
			facts.Launch{Kind: "docker-inspect", IPC: "private", SHMBytes: size(64 << 20)},
		},
		"inspected, in one line": {
			`{"Binds":null,"NetworkMode":"bridge","IpcMode":"private","ShmSize":67108864,"Privileged":false}` + "\n",
			facts.Launch{Kind: "docker-inspect", IPC: "private", Network: "bridge", SHMBytes: size(64 << 20)},
		},
		"inspected, as JSON": {
			`{"Binds":["/a:/b"],"ShmSize":67108864,"Ulimits":[{"Name":"memlock","Hard":-1,"Soft":-1}],"DeviceRequests":[{"Count":-1,"Capabilities":[["gpu"]]}]}` + "\n",
			facts.Launch{Kind: "docker-inspect", GPUs: new(-1), GPUVendor: "nvidia", MemlockBytes: size(-1), SHMBytes: size(64 << 20)},
		},
		"inspected, one number": {"$ docker inspect -f '{{.HostConfig.ShmSize}}' trainer\n67108864\n", facts.Launch{Kind: "docker-inspect", SHMBytes: size(64 << 20)}},
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
	f := texttest.Parse("x.txt", "$ docker inspect e | jq .[0].HostConfig\n{\n  \"Privileged\": true,\n  \"Devices\": [\n    {\"PathOnHost\": \"/dev/infiniband/uverbs0\"}\n  ],\n  \"IpcMode\": \"host\"\n}\n")
	expect.That(t, len(f.Launches) == 1 && f.Launches[0].Privileged && len(f.Launches[0].Devices) == 1 && f.Launches[0].IPC == "host", "got %+v", f.Launches)
	f = texttest.Parse("x.txt", described+"torchrun --nproc-per-node=4 train.py --lr 1\n")
	expect.That(t, len(f.Launches) == 2 && f.Launches[1].Kind == "torchrun", "behind a described pod: got %+v", f.Launches)
	f = texttest.Parse("pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: w\nspec:\n  containers:\n  - name: worker\n    image: a\n    resources:\n      limits:\n        nvidia.com/gpu: 2\n  - name: proxy\n    image: b\n    args: [proxy]\n")
	expect.That(t, len(f.Launches) == 2 && f.Launches[1].GPUs != nil && *f.Launches[1].GPUs == 0 && *f.Launches[0].GPUs == 2, "got %+v", f.Launches)
}
