package launch_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const container = "containers: [{name: main, image: i, resources: {limits: {nvidia.com/gpu: 8}}}]"

// TestControllers checks which parts of a container each controller leaves open.
func TestControllers(t *testing.T) {
	deep := func(apiVersion, kind, path string) string {
		var b strings.Builder
		b.WriteString("apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata:\n  name: x\nspec:\n")
		indent := "  "
		for key := range strings.FieldsSeq(path) {
			b.WriteString(indent + key + ":\n")
			if strings.HasSuffix(key, "Specs") || key == "replicatedJobs" || key == "tasks" {
				indent += "  - "
				b.WriteString(indent + "name: g\n")
				indent = strings.ReplaceAll(indent, "-", " ")
				continue
			}
			indent += "  "
		}
		return b.String() + indent + container + "\n"
	}
	shm, ray := "mounts shm_bytes", "mounts shm_bytes tensor_parallel"
	for text, want := range map[string]string{
		deep("v1", "Pod", ""):                                                                              "",
		deep("apps/v1", "Deployment", "template spec"):                                                     "",
		deep("batch/v1", "Job", "template spec"):                                                           "",
		deep("kubeflow.org/v1", "PyTorchJob", "pytorchReplicaSpecs_ template spec"):                        "",
		deep("batch.volcano.sh/v1alpha1", "Job", "tasks template spec"):                                    "",
		deep("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderWorkerTemplate workerTemplate spec"): "",
		deep("jobset.x-k8s.io/v1alpha2", "JobSet", "replicatedJobs template spec template spec"):           "",
		deep("serving.kserve.io/v1beta1", "InferenceService", "predictor"):                                 "",
		deep("ray.io/v1", "RayCluster", "headGroupSpec template spec"):                                     ray,
		deep("ray.io/v1", "RayJob", "rayClusterSpec workerGroupSpecs template spec"):                       ray,
		deep("slinky.slurm.net/v1beta1", "NodeSet", "template spec"):                                       "cap_add memlock_bytes " + shm,
		deep("apps.nvidia.com/v1alpha1", "NIMService", "template spec"):                                    shm,
		deep("nvidia.com/v1beta1", "DynamoGraphDeployment", "podTemplate spec"):                            shm,
		deep("example.com/v1", "Trainer", "template spec"):                                                 "cap_add " + shm,
		"image: {repository: r, tag: 1}\nresources: {limits: {nvidia.com/gpu: 8}}\n":                       "cap_add ipc memlock_bytes mounts network runtime shm_bytes user",
		"apiVersion: ray.io/v1\nkind: RayCluster\nspec:\n  headGroupSpec:\n    template:\n      spec:\n        containers:\n        - image: i\n          volumeMounts: [{name: s, mountPath: /dev/shm}]\n        volumes: [{name: s, emptyDir: {medium: Memory, sizeLimit: 1Gi}}]\n": "tensor_parallel",
	} {
		text = strings.ReplaceAll(text, "Specs_", "Specs:\n    Worker")
		f := texttest.Parse("x.yaml", text)
		expect.Must(t, len(f.Launches) == 1, "%s%+v", text, f.Launches)
		expect.Equal(t, want, strings.Join(slices.Sorted(maps.Keys(f.Launches[0].Unknown)), " "), "%sgot", text)
	}
}

// TestModels checks manifests in which the controller brings the container's image.
func TestModels(t *testing.T) {
	for text, gpus := range map[string]int{
		"apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata: {name: m}\nspec:\n  predictor:\n    model:\n      modelFormat: {name: huggingface}\n      args: [--tensor-parallel-size=2]\n      resources: {limits: {nvidia.com/gpu: 2}}\n": 2,
		"apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: m}\nspec:\n  runtimeRef: {name: torch-distributed}\n  trainer:\n    numNodes: 2\n    resourcesPerNode:\n      limits: {nvidia.com/gpu: 4}\n":                               4,
	} {
		f := texttest.Parse("x.yaml", text)
		expect.That(t, len(f.Launches) == 1 && f.Launches[0].GPUs != nil && *f.Launches[0].GPUs == gpus && f.Launches[0].Unknown["shm_bytes"] != "", "%s%+v", text, f.Launches)
	}
}

// TestLogsInSources checks that a sentence of a log is read in each kind of text, or not.
func TestLogsInSources(t *testing.T) {
	const said = "could not select device driver \"\" with capabilities: [[gpu]]"
	pod := "apiVersion: v1\nkind: Pod\n"
	for name, text := range map[string]string{
		"x.yaml": pod + "# " + said, "x.yml": "# " + said, "x.tf": "# " + said, "x.sh": "# " + said, "x.sbatch": "echo '" + said + "'", "x.py": "# " + said,
		"x.json": "{\"a\": 1,\n\"description\": \"" + said + "\"}", "Dockerfile": "FROM a\n# " + said, "compose.yaml": "# " + said, "x.cu": "// " + said,
		"job": "#!/bin/bash\n# " + said, "pod": pod + "# " + said, "standard input": pod + "# " + said, "x.ipynb": said, "x.j2": said,
	} {
		f := texttest.Parse(name, text+"\n")
		expect.That(t, f.Logs == nil && f.KernelLog == nil, "%s: %+v", name, f.Logs)
	}
	for name, text := range map[string]string{
		"x.log": said, "x.txt": pod + said, "x.md": said, "x": said, "ticket.txt": "#!/bin/bash\n" + said, "standard input": said,
		"status.yaml": pod + "status:\n  containerStatuses:\n  - state:\n      waiting:\n        message: '" + said + "'",
		"log.json":    "{\"log\": \"" + strings.ReplaceAll(said, `"`, `\"`) + "\"}\n{\"log\": \"x\"}",
	} {
		f := texttest.Parse(name, text+"\n")
		expect.That(t, f.Logs != nil && len(f.Logs.Messages) == 1, "%s: %+v", name, f.Logs)
	}
}

func TestCPUOnly(t *testing.T) {
	for command, want := range map[string]bool{
		"torchrun --nproc-per-node=8 x.py --device=cpu": true, "torchrun --nproc-per-node=8 x.py --device cpu": true,
		"torchrun --nproc-per-node=8 x.py --backend=gloo": true, "torchrun --nproc-per-node=8 x.py --dist-backend gloo": true,
		"torchrun --nproc-per-node=8 x.py --dist_backend gloo": true, "torchrun --nproc-per-node=8 x.py --accelerator cpu": true,
		"JAX_PLATFORMS=cpu torchrun --nproc-per-node=8 x.py": true, "accelerate launch --cpu x.py": true, "torchrun --nnodes=2 x.py --no-cuda": true,
		"torchrun --nnodes=2 x.py --use-cpu": true, "torchrun --nnodes=2 x.py --use_cpu=true": true, "srun -n 8 python x.py --device=cpu": true,
		"torchrun --nnodes=2 x.py --use-cpu=false": false, "torchrun --nnodes=2 x.py --device=cuda": false, "torchrun --nnodes=2 x.py --backend nccl": false,
	} {
		f := texttest.Parse("x.sh", command+"\n")
		expect.That(t, len(f.Launches) > 0 && f.Launches[0].CPUOnly == want, "%s: %+v", command, f.Launches)
	}
	f := texttest.Parse("x.yaml", "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: i\n    command: [bash, -c, 'cd /x && torchrun --nproc-per-node=4 x.py --backend gloo']\n")
	expect.That(t, len(f.Launches) == 1 && f.Launches[0].CPUOnly, "%+v", f.Launches)
}

func TestDockerfileRows(t *testing.T) {
	for text, want := range map[string]facts.Launch{
		"FROM \"nvidia/cuda:12.4.1-base\"\nRUN x\n": {Image: "nvidia/cuda:12.4.1-base"},
		"FROM 'a'\nENV CUDA_VISIBLE_DEVICES=0\n":    {Image: "a", Variables: map[string]string{"CUDA_VISIBLE_DEVICES": "0"}},
		"FROM a\nRUN pip install --no-cache-dir -r req.txt \"nvidia-nccl-cu12==2.21.5\" torch>=2 && apt-get install -y libnccl2=2.18\n": {
			Image: "a", Packages: []string{"libnccl2"}, PythonPackages: []string{"nvidia-nccl-cu12==2.21.5"},
		},
		"FROM a AS b\nENV NCCL_P2P_DISABLE=1\nRUN --mount=x \\\n  <<E\nset -e\nE\nFROM c\n":                                     {Image: "c"},
		"FROM a AS b\nENV NCCL_P2P_DISABLE=1\nRUN export NCCL_DEBUG=x\nFROM c\nRUN <<E\nexport NCCL_DEBUG=y\nulimit -l 64\nE\n": {Image: "c"},
	} {
		f := texttest.Parse("Dockerfile", text)
		expect.Must(t, len(f.Launches) == 1, "%s%+v", text, f.Launches)
		l := f.Launches[0]
		got := facts.Launch{Image: l.Image, Packages: l.Packages, PythonPackages: l.PythonPackages, Variables: l.Variables}
		expect.NoDiff(t, want, got, "%s", text)
		expect.That(t, l.Variables["NCCL_P2P_DISABLE"] != "" || f.Env == nil || len(f.Env.Variables) <= len(l.Variables), "%s%+v", text, f.Env)
	}
}

func TestResources(t *testing.T) {
	pod := func(resources, more string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations: {k8s.v1.cni.cncf.io/networks: 'a, ns/b@net1'}\nspec:\n  containers:\n  - name: c\n    image: i\n    resources: " + resources + "\n" + more
	}
	size := func(n int64) *int64 { return &n }
	networks := []string{"a", "ns/b@net1"}
	for text, want := range map[string]facts.Launch{
		pod("{requests: {nvidia.com/gpu: 8, cpu: 500m}}", ""): {GPUs: new(8), CPUs: new(0.5), Networks: networks, Requests: map[string]string{"nvidia.com/gpu": "8", "cpu": "500m"}},
		pod("{requests: {nvidia.com/gpu: 4, memory: 1Gi, cpu: 1}, limits: {nvidia.com/gpu: 8, memory: 2Gi, cpu: 2}}", ""): {
			GPUs: new(8), CPUs: new(2.0), MemoryBytes: size(2 << 30), Networks: networks,
			Requests: map[string]string{"nvidia.com/gpu": "4", "memory": "1Gi", "cpu": "1"}, Resources: map[string]string{"nvidia.com/gpu": "8"},
		},
		pod("{}", "    volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /b}]\n  volumes: [{name: a, emptyDir: {}}]\n"): {
			Networks: networks, UndefinedVolumes: []string{"b"},
		},
		"apiVersion: apps/v1\nkind: StatefulSet\nspec:\n  volumeClaimTemplates: [{metadata: {name: b}}]\n  template:\n    spec:\n      containers:\n      - image: i\n        volumeMounts: [{name: b, mountPath: /b}]\n": {},
		"services:\n  a:\n    image: i\n    deploy: {resources: {limits: {cpus: '2.5', memory: 8g}}}\n":                                                                                                                   {CPUs: new(2.5), MemoryBytes: size(8 << 30)},
		"services:\n  a:\n    image: i\n    cpus: 4\n    mem_limit: 1g\n    shm_size: ${SHM}\n":                                                                                                                           {CPUs: new(4.0), MemoryBytes: size(1 << 30)},
	} {
		f := texttest.Parse("x.yaml", text)
		expect.Must(t, len(f.Launches) == 1, "%s%+v", text, f.Launches)
		l := f.Launches[0]
		got := facts.Launch{GPUs: l.GPUs, CPUs: l.CPUs, MemoryBytes: l.MemoryBytes, Networks: l.Networks, UndefinedVolumes: l.UndefinedVolumes, Requests: l.Requests, Resources: l.Resources}
		expect.NoDiff(t, want, got, "%s", text)
		expect.That(t, strings.Contains(text, "${SHM}") == (l.Unknown["shm_bytes"] != ""), "%s%v", text, l.Unknown)
	}
	for text, want := range map[string]facts.Launch{
		"#SBATCH --ntasks-per-node=8 --cpus-per-task=4 --mem=64G\n":              {CPUs: new(32.0), MemoryBytes: size(64 << 30)},
		"#SBATCH --ntasks-per-node=8 --cpus-per-task=4 --mem=1024 --exclusive\n": {MemoryBytes: size(1 << 30)},
		"#SBATCH -c 2 --mem=0\n":                         {CPUs: new(2.0)},
		"docker run --gpus all --cpus=2 --memory 4g i\n": {CPUs: new(2.0), MemoryBytes: size(4 << 30)},
		"docker run --gpus all -m $MEM i\n":              {Unknown: map[string]string{"memory_bytes": "$MEM"}},
	} {
		f := texttest.Parse("x.sh", text)
		expect.Must(t, len(f.Launches) == 1, "%s%+v", text, f.Launches)
		l := f.Launches[0]
		expect.NoDiff(t, want, facts.Launch{CPUs: l.CPUs, MemoryBytes: l.MemoryBytes, Unknown: l.Unknown}, "%s", text)
	}
}

// TestScalarStyles checks that a container is the same however YAML writes its command: a scalar that goes on over
// several lines does not end the manifest.
func TestScalarStyles(t *testing.T) {
	pod := func(args string) []facts.Launch {
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    image: i\n    command: [bash, -c]\n    args:" + args +
			"\n    resources: {limits: {nvidia.com/gpu: 8}}\n"
		all := texttest.Parse("p.yaml", text).Launches
		for i := range all {
			all[i].Lines = nil
		}
		return all
	}
	want := pod(` ["torchrun --nproc-per-node=8 python t.py"]`)
	expect.Must(t, len(want) == 1 && want[0].GPUs != nil && want[0].Processes != nil, "the container on one line: %+v", want)
	for name, args := range map[string]string{
		"quoted, in a list":          " [\"torchrun \\\n      --nproc-per-node=8 python t.py\"]",
		"quoted, folded":             " [\"torchrun\n      --nproc-per-node=8\n\n\n      python t.py\"]",
		"a list over several lines":  " [\n  \"torchrun\n  --nproc-per-node=8 python t.py\"\n  ]",
		"quoted twice":               "\n    - \"torchrun \\\n      --nproc-per-node=8 \\\n      python t.py\"",
		"quoted once":                "\n    - 'torchrun\n      --nproc-per-node=8 python t.py'",
		"plain":                      "\n    - torchrun\n      --nproc-per-node=8 python t.py",
		"plain, with a name's colon": "\n    - torchrun\n      --nproc-per-node=8\n      python t.py",
		"literal":                    "\n    - |-\n      torchrun \\\n      --nproc-per-node=8 python t.py",
		"folded":                     "\n    - >-\n      torchrun\n      --nproc-per-node=8 python t.py",
	} {
		got := pod(args)
		for i := range got {
			got[i].Command = want[0].Command // Line ends in it differ.
		}
		expect.NoDiff(t, want, got, "%s", name)
	}
}

// TestLongManifests checks that a manifest which is too long to be parsed as a whole is read on behind a line that is no YAML.
func TestLongManifests(t *testing.T) {
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  " + container + "\n"
	f := texttest.Parse("p.yaml", pod+"and it fails.\n\n"+pod+strings.Repeat("# "+strings.Repeat("x", 98)+"\n", parse.MaxWhole/100+1))
	expect.Len(t, 2, f.Launches, "launches")
}
