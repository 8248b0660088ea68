package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
)

// openCase is a file that describes a job, with fields whose values are marked: "<<KEY>>".
type openCase struct {
	name, text string
	// fields have, by key, a good value, a bad one, if the field alone can be at fault, and
	// the rules that read it.
	fields map[string]openField
	// references are how such a file refers to a value that it does not show.
	references []string
}

type openField struct{ good, bad, rules string }

// openCases are the kinds of file. Each of them is good with the good values.
var openCases = []openCase{
	{
		name: "compose.yaml",
		text: `services:
  train:
    image: train:1
    command: torchrun --nproc-per-node=<<ranks>> train.py
    shm_size: <<shm>>
    ipc: <<ipc>>
    network_mode: <<network>>
    privileged: <<privileged>>
    user: <<user>>
    cap_add: ["<<cap>>"]
    ulimits: {memlock: <<memlock>>}
    devices: ["/dev/infiniband", "<<device>>"]
    volumes: ["/data:<<mount>>"]
    environment:
      NCCL_SOCKET_IFNAME: <<ifname>>
      NCCL_NET: <<net>>
      NVIDIA_DRIVER_CAPABILITIES: <<capabilities>>
      NCCL_P2P_DISABLE: <<p2p>>
      LD_LIBRARY_PATH: <<path>>
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: <<gpus>>
              capabilities: [gpu]
`,
		fields: map[string]openField{
			"ranks": {"8", "16", "gpu-visibility shm-too-small"}, "shm": {"16g", "64m", "shm-too-small"}, "ipc": {"private", "", "shm-too-small"},
			"network": {"host", "bridge", "wrong-nic"}, "privileged": {"false", "", "memlock-limit container-caps"}, "user": {"root", "", "memlock-limit"},
			"cap": {"SYS_NICE", "", "memlock-limit"}, "memlock": {"-1", "65536", "memlock-limit"}, "device": {"/dev/fuse", "", "container-caps memlock-limit"},
			"mount": {"/data", "", "shm-too-small"}, "ifname": {"ens1", "", "wrong-nic env-misconfig"}, "net": {"IB", "Socket", "env-misconfig container-caps"},
			"capabilities": {"all", "graphics", "gpu-visibility"}, "p2p": {"0", "1", "env-misconfig"}, "path": {"/a", "/usr/local/cuda/lib64/stubs", "driver-library-mismatch"},
			"gpus": {"8", "4", "gpu-visibility shm-too-small container-caps"},
		},
		references: []string{"${X}", "$X", "${X:?no}", "'{{ .Values.x }}'"},
	},
	{
		name: "run.sh",
		text: `#!/bin/bash
docker run --gpus <<gpus>> --shm-size <<shm>> --ipc <<ipc>> --network <<network>> --ulimit memlock=<<memlock>> --cap-add <<cap>> --user <<user>> \
  --device /dev/infiniband --device <<device>> -v /data:<<mount>> -e NCCL_NET=<<net>> -e NCCL_SOCKET_IFNAME=<<ifname>> -e NCCL_P2P_DISABLE=<<p2p>> \
  -e NVIDIA_DRIVER_CAPABILITIES=<<capabilities>> -e LD_LIBRARY_PATH=<<path>> train:1 torchrun --nproc-per-node=<<ranks>> train.py
`,
		fields: map[string]openField{
			"ranks": {"8", "16", "gpu-visibility shm-too-small"}, "shm": {"16g", "64m", "shm-too-small"}, "ipc": {"private", "", "shm-too-small"},
			"network": {"host", "bridge", "wrong-nic"}, "user": {"root", "", "memlock-limit"}, "cap": {"SYS_NICE", "", "memlock-limit"},
			"memlock": {"-1", "65536", "memlock-limit"}, "device": {"/dev/fuse", "", "container-caps memlock-limit"}, "mount": {"/data", "", "shm-too-small"},
			"ifname": {"ens1", "", "wrong-nic env-misconfig"}, "net": {"IB", "Socket", "env-misconfig container-caps"}, "capabilities": {"all", "graphics", "gpu-visibility"},
			"p2p": {"0", "1", "env-misconfig"}, "path": {"/a", "/usr/local/cuda/lib64/stubs", "driver-library-mismatch"},
			"gpus": {"8", "4", "gpu-visibility shm-too-small container-caps"},
		},
		references: []string{"$X", `"$X"`, "${X}", "$(x)", "`x`", "{{x}}"},
	},
	{
		name: "pod.yaml",
		text: `apiVersion: v1
kind: Pod
metadata:
  name: train
spec:
  hostIPC: <<ipc>>
  hostNetwork: <<network>>
  containers:
  - name: train
    image: train:1
    command: ["torchrun", "--nproc-per-node=<<ranks>>", "train.py"]
    securityContext:
      privileged: <<privileged>>
      runAsUser: <<user>>
      capabilities:
        add: ["IPC_LOCK", "<<cap>>"]
    env:
    - name: NCCL_SOCKET_IFNAME
      value: "<<ifname>>"
    - name: NCCL_NET
      value: "<<net>>"
    - name: NCCL_P2P_DISABLE
      value: "<<p2p>>"
    - name: CUDA_VISIBLE_DEVICES
      value: "<<visible>>"
    resources:
      limits:
        nvidia.com/gpu: <<gpus>>
        rdma/hca: <<hca>>
    volumeMounts:
    - name: shm
      mountPath: /dev/shm
  volumes:
  - name: shm
    emptyDir: {medium: "<<medium>>", sizeLimit: <<shm>>}
`,
		fields: map[string]openField{
			"ranks": {"8", "16", "gpu-visibility shm-too-small"}, "shm": {"16Gi", "64Mi", "shm-too-small"}, "ipc": {"false", "", "shm-too-small"},
			"network": {"true", "", "wrong-nic"}, "privileged": {"false", "", "memlock-limit container-caps"}, "user": {"0", "1000", "memlock-limit"},
			"cap": {"SYS_NICE", "", "memlock-limit"}, "ifname": {"ens1", "", "wrong-nic env-misconfig"}, "net": {"IB", "Socket", "env-misconfig container-caps"},
			"p2p": {"0", "1", "env-misconfig"}, "visible": {"0,1,2,3,4,5,6,7", "0", "gpu-visibility"}, "gpus": {"8", "16", "gpu-visibility shm-too-small container-caps"},
			"hca": {"1", "", "memlock-limit container-caps"}, "medium": {"Memory", "", "shm-too-small"},
		},
		references: []string{"${X}", "$(X)", "{{ .Values.x }}"},
	},
	{
		name: "job.sbatch",
		text: `#!/bin/bash
#SBATCH --nodes=<<nodes>>
#SBATCH --gpus-per-node=<<gpus>>
#SBATCH --ntasks-per-node=<<tasks>>
ulimit -l <<memlock>>
export NCCL_P2P_DISABLE=<<p2p>>
export CUDA_VISIBLE_DEVICES=<<visible>>
export LD_LIBRARY_PATH=<<path>>
srun torchrun --nnodes=<<nnodes>> --nproc-per-node=<<ranks>> train.py
`,
		fields: map[string]openField{
			"nodes": {"2", "1", "app-mismatch"}, "gpus": {"8", "4", "gpu-visibility"}, "tasks": {"1", "8", "gpu-visibility"}, "memlock": {"unlimited", "64", "memlock-limit"},
			"p2p": {"0", "1", "env-misconfig"}, "visible": {"0,1,2,3,4,5,6,7", "0", "gpu-visibility"}, "path": {"/a", "/usr/local/cuda/lib64/stubs", "driver-library-mismatch"},
			"nnodes": {"2", "4", "app-mismatch"}, "ranks": {"8", "16", "gpu-visibility"},
		},
		references: []string{"$X", `"$X"`, "${X}", "{{x}}"},
	},
	{
		name: "mpi.sh",
		text: "#!/bin/bash\nmpirun -H <<hosts>> -npernode <<ranks>> -x NCCL_P2P_DISABLE=<<p2p>> -x CUDA_VISIBLE_DEVICES=<<visible>> all_reduce_perf -b 8\n",
		fields: map[string]openField{
			"hosts": {"a,b", "", "app-mismatch"}, "ranks": {"8", "16", "gpu-visibility"}, "p2p": {"0", "1", "env-misconfig"}, "visible": {"0,1,2,3,4,5,6,7", "0", "gpu-visibility"},
		},
		references: []string{"$X", `"$X"`, "${X}", "{{x}}"},
	},
	{
		name: "Dockerfile",
		text: "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN make\nENV NCCL_P2P_DISABLE=<<p2p>>\nENV LD_LIBRARY_PATH=<<path>>\nENV NVIDIA_DRIVER_CAPABILITIES <<capabilities>>\n",
		fields: map[string]openField{
			"p2p": {"0", "1", "env-misconfig"}, "path": {"/a", "/usr/local/cuda/lib64/stubs", "driver-library-mismatch"}, "capabilities": {"all", "graphics", "gpu-visibility"},
		},
		references: []string{"$X", `"$X"`, "${X}", "{{x}}"},
	},
	{
		name: "task.json",
		text: `{"family": "train", "networkMode": "host", "containerDefinitions": [{"name": "train", "image": "train:1",
  "command": ["torchrun", "--nproc-per-node=<<ranks>>", "train.py"],
  "resourceRequirements": [{"type": "GPU", "value": "<<gpus>>"}],
  "environment": [{"name": "NCCL_P2P_DISABLE", "value": "<<p2p>>"}]}]}
`,
		fields: map[string]openField{
			"ranks": {"8", "16", "gpu-visibility"}, "gpus": {"8", "4", "gpu-visibility"}, "p2p": {"0", "1", "env-misconfig"},
		},
		references: []string{"${X}", "$X", "{{x}}"},
	},
}

func (c *openCase) fill(values map[string]string) string {
	text := c.text
	for key, field := range c.fields {
		value, ok := values[key]
		if !ok {
			value = field.good
		}
		text = strings.ReplaceAll(text, "<<"+key+">>", value)
	}
	return text
}

// TestOpenValues holds that a value of a launch file that the file does not show leads to no
// finding and to no pass of a rule that reads it, for each field of each kind of file, and
// that the same field is judged where it has a value.
func TestOpenValues(t *testing.T) {
	s := compiledSet(t)
	for _, c := range openCases {
		judge := func(t *testing.T, values map[string]string) (*Verdict, string) {
			t.Helper()
			text := c.fill(values)
			v, err := s.Evaluate(t.Context(), texttest.Parse(c.name, text), Options{Profile: Launch})
			if err != nil {
				t.Fatal(err)
			}
			return v, text
		}
		t.Run(c.name, func(t *testing.T) {
			if v, text := judge(t, nil); len(v.Skipped) > 0 || len(graveOf(v)) > 0 {
				t.Fatalf("%s\nskipped %v, findings %v", text, v.Skipped, graveOf(v))
			}
			for _, key := range slices.Sorted(maps.Keys(c.fields)) {
				field := c.fields[key]
				if field.bad != "" {
					if v, text := judge(t, map[string]string{key: field.bad}); len(v.Findings) == 0 {
						t.Errorf("%s\nno finding with the bad value of %s", text, key)
					}
				}
				for _, reference := range c.references {
					v, text := judge(t, map[string]string{key: reference})
					for _, found := range v.Findings {
						t.Errorf("%s\n%s: finding of %s: %s", text, key, found.Rule, found.Message)
					}
					for rule := range strings.FieldsSeq(field.rules) {
						if !slices.ContainsFunc(v.Skipped, func(s Skipped) bool { return s.Rule == rule }) {
							t.Errorf("%s\n%s: %s is not skipped", text, key, rule)
						}
					}
				}
			}
		})
	}
}

// TestVariablesElsewhere holds that variables which another file holds leave open what the rules
// about variables say, without a finding, and that what the description states is still judged.
func TestVariablesElsewhere(t *testing.T) {
	s := compiledSet(t)
	for name, text := range map[string]string{
		"compose.yaml": "services:\n  a:\n    image: x:1\n    shm_size: 16g\n    gpus: all\n    env_file: job.env\n    environment: {NCCL_P2P_DISABLE: '%d'}\n",
		"list.yaml":    "services:\n  a:\n    image: x:1\n    shm_size: 16g\n    gpus: all\n    env_file: [{path: job.env, required: false}]\n    environment: {NCCL_P2P_DISABLE: '%d'}\n",
		"pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: a\n    image: x:1\n    envFrom: [{configMapRef: {name: nccl}}]\n" +
			"    env: [{name: NCCL_P2P_DISABLE, value: '%d'}]\n    resources: {limits: {nvidia.com/gpu: 8}}\n" +
			"    volumeMounts: [{name: shm, mountPath: /dev/shm}]\n  volumes: [{name: shm, emptyDir: {medium: Memory}}]\n",
		"run.sh": "docker run --gpus all --shm-size 16g --env-file job.env -e NCCL_P2P_DISABLE=%d x:1 torchrun --nproc-per-node=8 train.py\n",
	} {
		for disabled := range 2 {
			v, err := s.Evaluate(t.Context(), texttest.Parse(name, fmt.Sprintf(text, disabled)), Options{Profile: Launch})
			if err != nil {
				t.Fatal(err)
			}
			if found := graveOf(v); (len(found) > 0) != (disabled == 1) {
				t.Errorf("%s, NCCL_P2P_DISABLE=%d: %v", name, disabled, found)
			}
			if slices.Contains(v.Passed, "env-misconfig") || disabled == 0 && !slices.ContainsFunc(v.Skipped, func(s Skipped) bool { return s.Rule == "env-misconfig" }) {
				t.Errorf("%s, NCCL_P2P_DISABLE=%d: passed %v, skipped %v", name, disabled, v.Passed, v.Skipped)
			}
		}
	}
}

// unitsOf are the facts of each unit of a text, as the program judges them: the launches of one text with the
// same number, with their variables. Each container is one of its own.
func unitsOf(f *facts.Facts) []*facts.Facts {
	type key struct {
		source string
		unit   int
		box    int
	}
	var keys []key
	units := map[key][]facts.Launch{}
	for i, l := range f.Launches {
		k := key{source: l.Source, unit: l.Unit}
		if l.Unit == 0 && slices.Contains([]string{"docker-run", "compose", "kubernetes", "docker-inspect", "ecs", "dockerfile"}, l.Kind) {
			k.box = i + 1
		}
		if units[k] == nil {
			keys = append(keys, k)
		}
		units[k] = append(units[k], l)
	}
	var all []*facts.Facts
	for _, k := range keys {
		u := *f
		u.Launches = units[k]
		all = append(all, &u)
	}
	return all
}

// graveOf are the findings of medium severity or above.
func graveOf(v *Verdict) []string {
	var all []string
	for _, f := range v.Findings {
		if f.Severity.Rank() <= Medium.Rank() {
			all = append(all, fmt.Sprint(f.Rule, ": ", f.Message))
		}
	}
	return all
}
