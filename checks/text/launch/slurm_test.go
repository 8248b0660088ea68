package launch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestLaunchSettings(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"a node of slurm.conf":        {"NodeName=n[1-4] CPUs=128 Gres=gpu:h100:8,shard:16 State=UNKNOWN\n", `{"kind":"slurm-node","name":"n[1-4]","gpus":8}`},
		"one of gres.conf":            {"NodeName=n1 Name=gpu Type=h100 File=/dev/nvidia[0-3,6]\n", `{"kind":"slurm-node","name":"n1","gpus":5}`},
		"files by name":               {"NodeName=n1 Name=gpu File=/dev/nvidia0,/dev/nvidia1\n", `{"kind":"slurm-node","name":"n1","gpus":2}`},
		"a count":                     {"Name=gpu Count=4 Type=a100\n", `{"kind":"slurm-node","gpus":4}`},
		"a range that is none":        {"NodeName=n1 Name=gpu File=/dev/nvidia[3-0]\n", ""},
		"a comment":                   {"# NodeName=n1 Gres=gpu:8\n", ""},
		"a node without GPUs":         {"NodeName=n1 CPUs=64 State=UNKNOWN\n", ""},
		"a script's limit":            {"#!/bin/bash\nulimit -l 64\n", `{"kind":"shell","memlock_bytes":65536}`},
		"no limit":                    {"#!/bin/bash\nulimit -Sl unlimited # RDMA\n", `{"kind":"shell","memlock_bytes":-1}`},
		"another limit":               {"#!/bin/bash\nulimit -n 65536\n", ""},
		"a question":                  {"#!/bin/bash\nulimit -l\n", ""},
		"GPUs of a whole job":         {"#SBATCH --nodes=4\n#SBATCH --gpus=32\n", `{"kind":"slurm","gpus":8,"nodes":4}`},
		"GPUs of a task":              {"#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-task=2\n", `{"kind":"slurm","gpus":8,"processes":4,"tasks":4}`},
		"GPUs of a task, shared":      {"#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-task=2 --gpu-bind=none\n", `{"kind":"slurm","gpus":8,"processes":4,"tasks":4}`},
		"values that stand alone":     {"#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-task=2\n#SBATCH -o a\n#SBATCH -e b\n", `{"kind":"slurm","gpus":8,"processes":4,"tasks":4}`},
		"a bind of two words":         {"#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-task=2 --gpu-bind none\n", `{"kind":"slurm","gpus":8,"processes":4,"tasks":4}`},
		"a GPU bound to each task":    {"#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-node=4 --gpu-bind=single:1\n", `{"kind":"slurm","gpus":4,"processes":4,"tasks":4}`},
		"a launcher below one task":   {"srun --ntasks-per-node=1 torchrun --nproc-per-node=8 x.py\n", `{"kind":"slurm","command":["torchrun","--nproc-per-node=8","x.py"],"processes":8,"tasks":1}`},
		"stages":                      {"FROM a AS b\nENV NCCL_DEBUG=INFO\nUSER root\nFROM b\nRUN apt-get install -y x=1 \\\n  y && pip install z\nUSER 1000\n", `{"kind":"dockerfile","image":"a","user":"1000","packages":["x","y"],"variables":{"NCCL_DEBUG":"INFO"}}`},
		"a stage that is left behind": {"FROM a AS b\nENV NCCL_DEBUG=INFO\nRUN dnf install -y x\nFROM c\nCOPY --from=b /x /x\n", `{"kind":"dockerfile","image":"c"}`},
		"the own path":                {"FROM a\nENV LD_LIBRARY_PATH=/b:${LD_LIBRARY_PATH:-}\n", `{"kind":"dockerfile","image":"a","variables":{"LD_LIBRARY_PATH":"/b"}}`},
		"a user of a pod": {
			"apiVersion: v1\nkind: Pod\nspec:\n  securityContext: {runAsUser: 1000}\n  containers:\n  - image: i\n    resources:\n      claims: [{name: gpu}]\n",
			`{"kind":"kubernetes","image":"i","user":"1000","resources":{"claims":"1"}}`,
		},
		"a job of several pods": {
			"apiVersion: batch/v1\nkind: Job\nspec:\n  parallelism: 2\n  template:\n    spec:\n      containers:\n      - image: i\n        resources: {limits: {nvidia.com/gpu: 8}}\n",
			`{"kind":"kubernetes","image":"i","gpus":8,"gpu_vendor":"nvidia","nodes":2,"resources":{"nvidia.com/gpu":"8"}}`,
		},
	} {
		expect.NoDiff(t, test.want, jsonForm(t, texttest.Parse("x", test.text)), "%s", name)
	}
}

// TestSameInTwoFiles checks that a description which two files have is listed for both, and
// a command that two logs repeat only once.
func TestSameInTwoFiles(t *testing.T) {
	for content, want := range map[string]int{
		"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: i\n    resources: {limits: {nvidia.com/gpu: 8}}\n": 2,
		"FROM a\nUSER b\n":                               2,
		"docker run --gpus all img\n":                    1,
		"torchrun --nproc-per-node=8 --nnodes=2 x.py\n":  1,
		"NodeName=n1 Name=gpu File=/dev/nvidia[0-3]\n":   2,
		"#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\n": 2,
	} {
		r := text.NewReading()
		texttest.Text(r, "a", content)
		texttest.Text(r, "b", content)
		f := r.Finish()
		expect.That(t, len(f.Launches) == want, "%q: %d launches, want %d", content, len(f.Launches), want)
	}
}

// TestWhatIsNotUnderstood checks that a manifest which is not read to its end says so, with the line.
func TestWhatIsNotUnderstood(t *testing.T) {
	pod := "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n"
	var many strings.Builder
	for i := range 300 {
		fmt.Fprintf(&many, "%s  - name: c%d\n    image: i\n    resources: {limits: {nvidia.com/gpu: 8}}\n---\n", pod, i)
	}
	for text, want := range map[string]string{
		"Look:\n" + pod + "  - name: a\n    image: [unclosed\n   bad: {\n":                                "x is not valid YAML at line 6",
		pod + "  - image: i\n    resources:\n      limits:\n        nvidia.com/gpu: {{ .Values.gpus }}\n": "line 8 of x is a template, which says nothing until it is filled in",
		many.String(): "only the first 256 descriptions of jobs are kept, and x has more",
		pod + "  - name: a\n    image: i\n    env:\n" + strings.Repeat("    - {name: A, value: b}\n", 20001): "the manifest at line 1 of x has more than 20000 lines or 1048576 bytes",
		pod + strings.Repeat("  - {name: a, image: i, resources: {limits: {nvidia.com/gpu: 8}}}\n", 257):     "the list at line 5 of x has more than 256 entries",
		pod + "  - name: a\n    image: i\n    env:\n" + strings.Repeat("    - {name: A, value: b}\n", 257):   "the list at line 8 of x has more than 256 entries",
		pod + "  - name: a\n    image: i\n    resources: {limits: {nvidia.com/gpu: 8}}\n":                    "",
	} {
		got := ""
		if f := texttest.Parse("x", text); len(f.Unknown) > 0 {
			got = f.Unknown[0].Section + " " + f.Unknown[0].Fact + ": " + f.Unknown[0].Reason
		}
		if want != "" {
			want = "launches [x]: " + want
		}
		expect.Equal(t, want, got, "it")
	}
}

// TestYAMLBombs checks that anchors which refer to each other many times are read within
// bounds: each would otherwise take more nodes than a computer has memory.
func TestYAMLBombs(t *testing.T) {
	var lists, merges strings.Builder
	lists.WriteString("apiVersion: v1\nkind: Pod\nspec:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	merges.WriteString("apiVersion: v1\nkind: Pod\nspec:\n  hostIPC: false\n  a0: &a0 {image: i, resources: {}}\n")
	for i := range 12 {
		fmt.Fprintf(&lists, "  a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9))
		fmt.Fprintf(&merges, "  a%d: &a%d\n%s", i+1, i+1, strings.Repeat(fmt.Sprintf("    <<: *a%d\n", i), 300))
	}
	for name, text := range map[string]string{"lists": lists.String(), "merges": merges.String()} {
		f := texttest.Parse("x", text+"  containers:\n  - image: i\n    <<: *a12\n    resources: {limits: {nvidia.com/gpu: 8}}\n")
		expect.That(t, len(f.Launches) == 1 && f.Launches[0].GPUs != nil, "%s: got %+v", name, f.Launches)
	}
}
