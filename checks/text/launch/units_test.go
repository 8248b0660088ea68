package launch_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// unitsOf is what each unit of a text holds: its launches by kind and object, and the variables that they
// set, in order.
func unitsOf(f *facts.Facts) []string {
	var units []string
	for n := 1; ; n++ {
		var parts []string
		for _, l := range f.Launches {
			if l.Unit != n {
				continue
			}
			text := l.Kind
			if l.Object != "" {
				text += " " + l.Object
			}
			for _, name := range slices.Sorted(maps.Keys(l.Variables)) {
				text += " " + name + "=" + l.Variables[name]
			}
			for _, part := range slices.Sorted(maps.Keys(l.Unknown)) {
				text += " " + part + "?"
			}
			if l.MemlockBytes != nil {
				text += fmt.Sprintf(" memlock=%d", *l.MemlockBytes)
			}
			parts = append(parts, text)
		}
		if len(parts) == 0 {
			return units
		}
		slices.Sort(parts)
		units = append(units, strings.Join(parts, " | "))
	}
}

func TestUnits(t *testing.T) {
	pod := func(name string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec:\n  containers:\n  - name: a\n    image: i\n    env: [{name: NCCL_DEBUG, value: " + name + "}]\n"
	}
	batch := "#!/bin/bash\n#SBATCH --gres=gpu:8\nexport NCCL_DEBUG=%s\nulimit -l 64\nsrun python train.py\n"
	for name, test := range map[string]struct {
		file, text string
		want       []string
	}{
		"two pods":                {"x.yaml", pod("a") + "---\n" + pod("b"), []string{"kubernetes Pod/a/a NCCL_DEBUG=a", "kubernetes Pod/b/a NCCL_DEBUG=b"}},
		"the containers of a pod": {"x.yaml", pod("a") + "  - name: b\n    image: i\n", []string{"kubernetes Pod/a/a NCCL_DEBUG=a", "kubernetes Pod/a/b"}},
		"the same container twice": {
			"x.yaml", "kind: List\napiVersion: v1\nitems:\n" + strings.Repeat("- kind: Pod\n  apiVersion: v1\n  spec:\n    containers:\n    - {name: a, image: i}\n", 2),
			[]string{"kubernetes Pod/a", "kubernetes Pod/a"},
		},
		"the script of a container": {
			"x.yaml", pod("a") + "    command: [bash, -c]\n    args:\n    - |\n      export NCCL_P2P_DISABLE=1\n      ulimit -l 64\n      torchrun --nproc-per-node=8 x.py\n  - name: b\n    image: i\n",
			[]string{"kubernetes Pod/a/a NCCL_DEBUG=a NCCL_P2P_DISABLE=1 | shell NCCL_P2P_DISABLE=1 memlock=65536", "kubernetes Pod/a/b"},
		},
		"replicas": {
			"x.yaml", "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: gpt}\nspec:\n  pytorchReplicaSpecs:\n    Master: {template: {spec: {containers: [{name: pytorch, image: i}]}}}\n    Worker: {template: {spec: {containers: [{name: pytorch, image: i}]}}}\n",
			[]string{"kubernetes PyTorchJob/gpt/Master/pytorch", "kubernetes PyTorchJob/gpt/Worker/pytorch"},
		},
		"groups": {
			"x.yaml", "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: r}\nspec:\n  headGroupSpec: {template: {spec: {containers: [{name: c, image: i}]}}}\n  workerGroupSpecs:\n  - groupName: gpu\n    template: {spec: {containers: [{name: c, image: i}]}}\n",
			[]string{"kubernetes RayCluster/r/head/c mounts? shm_bytes? tensor_parallel?", "kubernetes RayCluster/r/gpu/c mounts? shm_bytes? tensor_parallel?"},
		},
		"services":       {"compose.yaml", "services:\n  a:\n    image: i\n    environment: [NCCL_DEBUG=a]\n  b:\n    image: i\n", []string{"compose service/a NCCL_DEBUG=a", "compose service/b"}},
		"a batch script": {"x.sbatch", fmt.Sprintf(batch, "a"), []string{"shell NCCL_DEBUG=a memlock=65536 | slurm | slurm"}},
		"two batch scripts": {
			"x.sbatch", fmt.Sprintf(batch, "a") + "\n" + fmt.Sprintf(batch, "b"),
			[]string{"shell NCCL_DEBUG=a memlock=65536 | slurm | slurm", "shell NCCL_DEBUG=b memlock=65536 | slurm | slurm"},
		},
		"scripts that a script writes": {
			"make.sh", "#!/bin/bash\nexport NCCL_DEBUG=c\ncat > a.sh <<'EOF'\n" + fmt.Sprintf(batch, "a") + "EOF\ncat > b.sh <<-EOF\n" + fmt.Sprintf(batch, "b") + "EOF\n",
			[]string{"shell NCCL_DEBUG=a memlock=65536 | slurm | slurm", "shell NCCL_DEBUG=b memlock=65536 | slurm | slurm", "shell NCCL_DEBUG=c"},
		},
		"blocks of prose": {
			"README.md", "Train:\n```\nexport NCCL_DEBUG=a\ntorchrun --nnodes=2 x.py\n```\nServe:\n```bash\nNCCL_DEBUG=b vllm serve m -tp 2\n```\n",
			[]string{"shell NCCL_DEBUG=a | torchrun", "command NCCL_DEBUG=b"},
		},
		"containers of a script": {
			"x.sh", "#!/bin/bash\nexport NCCL_DEBUG=a\ndocker run --gpus all i\napptainer exec --nv i x\ntorchrun --nnodes=2 x.py\n",
			[]string{"docker-run", "apptainer NCCL_DEBUG=a", "shell NCCL_DEBUG=a | torchrun"},
		},
		"in front of commands":   {"x.sh", "NCCL_DEBUG=a \\\n  NCCL_ALGO=b torchrun --nnodes=2 x.py\nNCCL_DEBUG=b srun y\n", []string{"slurm NCCL_DEBUG=b | torchrun NCCL_ALGO=b NCCL_DEBUG=a"}},
		"set twice":              {"x.sh", "export NCCL_DEBUG=a\nexport NCCL_DEBUG=b\ntorchrun --nnodes=2 x.py\n", []string{"shell variables[NCCL_DEBUG]? | torchrun"}},
		"set twice to the same":  {"x.sh", "export NCCL_DEBUG=a\nexport NCCL_DEBUG=a\ntorchrun --nnodes=2 x.py\n", []string{"shell NCCL_DEBUG=a | torchrun"}},
		"set in a branch":        {"x.sh", "if x; then\n  export NCCL_DEBUG=a\nfi\ntorchrun --nnodes=2 x.py\n", []string{"shell variables[NCCL_DEBUG]? | torchrun"}},
		"set and not exported":   {"x.sh", "NCCL_DEBUG=a\ntorchrun --nnodes=2 x.py\n", []string{"torchrun"}},
		"set and exported later": {"x.sh", "NCCL_DEBUG=a\nexport NCCL_DEBUG\ntorchrun --nnodes=2 x.py\n", []string{"shell NCCL_DEBUG=a | torchrun"}},
		"stages":                 {"Dockerfile", "FROM a AS b\nENV NCCL_DEBUG=a\nFROM c AS d\nENV NCCL_DEBUG=b\n", []string{"dockerfile stage/d NCCL_DEBUG=b"}},
		"the last stage":         {"Dockerfile", "FROM a AS b\nFROM c\nENV NCCL_DEBUG=b\n", []string{"dockerfile stage/final NCCL_DEBUG=b"}},
	} {
		expect.NoDiff(t, test.want, unitsOf(texttest.Parse(test.file, test.text)), "%s", name)
	}
}

// TestIgnored checks every place of a comment that accepts a finding, and which launches it is for.
func TestIgnored(t *testing.T) {
	const ignore = "# gpudoctor:ignore job-shm: no NCCL"
	a, b := "  - name: a\n    image: i\n", "  - name: b\n    image: i\n"
	head := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n"
	for name, test := range map[string]struct{ file, text, want string }{
		"in a container":       {"x.yaml", head + a + "    " + ignore + "\n" + b, "a"},
		"above a container":    {"x.yaml", head + "  " + ignore + "\n" + a + b, "a"},
		"at the end of a line": {"x.yaml", head + a + b[:len(b)-1] + " " + ignore + "\n", "b"},
		"in the document":      {"x.yaml", ignore + "\n" + head + a + b, "a b"},
		"in another document":  {"x.yaml", ignore + "\n" + head + a + "---\n" + head + b, "a"},
		"without a reason":     {"x.yaml", head + a + "    # gpudoctor:ignore job-shm\n" + b, ""},
	} {
		f := texttest.Parse(test.file, test.text)
		var got []string
		for _, l := range f.Launches {
			if len(l.Ignored) == 1 && l.Ignored[0].Rule == "job-shm" && l.Ignored[0].Reason == "no NCCL" {
				got = append(got, l.Object[strings.LastIndexByte(l.Object, '/')+1:])
			}
		}
		expect.That(t, strings.Join(got, " ") == test.want && (test.want == "") == (len(f.Unknown) == 1), "%s: got %v, %+v", name, got, f.Unknown)
	}
	for file, text := range map[string]string{
		"x.sh":       "#!/bin/bash\n" + ignore + "\ndocker run --gpus all i\n",
		"y.sh":       "#!/bin/bash\ndocker run --gpus all i " + ignore + "\n",
		"z.sh":       ignore + "\ntrue\ntorchrun --nnodes=2 x.py\n",
		"Dockerfile": "FROM a\n" + ignore + "\nENV NCCL_DEBUG=b\n",
	} {
		f := texttest.Parse(file, text)
		expect.That(t, len(f.Launches) == 1 && len(f.Launches[0].Ignored) == 1, "%s: got %+v", file, f.Launches)
	}
}
