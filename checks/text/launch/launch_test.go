package launch_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/launch"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// jsonForm is the launches of a text, without their places.
func jsonForm(t *testing.T, f *facts.Facts) string {
	t.Helper()
	list := make([]string, 0, len(f.Launches))
	for _, l := range f.Launches {
		l.Source, l.Line, l.Lines, l.Unit, l.Object = "", 0, nil, 0, ""
		b := expect.Value(json.Marshal(l))(t)
		list = append(list, strings.TrimSuffix(string(b), `,"source":"","line":0}`)+"}")
	}
	return strings.Join(list, "\n")
}

func TestLaunchLines(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"docker, every GPU": {
			"docker run -it --gpus all --name train -v /data:/workspace train:1 bash",
			`{"kind":"docker-run","name":"train","image":"train:1","command":["bash"],"gpus":-1,"gpu_vendor":"nvidia","mounts":["/data:/workspace"]}`,
		},
		"behind a prompt, over lines": {
			"root@node7:~# docker run --gpus '\"device=0,1\"' \\\n  --shm-size=16g \\ \n  -e NCCL_DEBUG=INFO --ulimit memlock=-1:-1 \\\n  llm:2 --tensor-parallel-size 2\nroot@node7:~# ls\n",
			`{"kind":"docker-run","image":"llm:2","command":["--tensor-parallel-size","2"],"gpus":2,"gpu_vendor":"nvidia","shm_bytes":17179869184,"memlock_bytes":-1,"variables":{"NCCL_DEBUG":"INFO"},"tensor_parallel":2}`,
		},
		"bare, over lines, with a comment between": {
			"sudo docker run --rm -itd \\\n  # all of them\n  --gpus=2 --ipc=host --network=host --cap-add SYS_NICE,CAP_IPC_LOCK \\\n  --security-opt seccomp=unconfined --privileged img\n",
			`{"kind":"docker-run","image":"img","gpus":2,"gpu_vendor":"nvidia","ipc":"host","network":"host","privileged":true,"cap_add":["SYS_NICE","IPC_LOCK"]}`,
		},
		"AMD": {
			"docker run -it --device=/dev/kfd --device=/dev/dri --group-add video --ipc=host --shm-size 16G rocm/pytorch:latest",
			`{"kind":"docker-run","image":"rocm/pytorch:latest","gpus":-1,"gpu_vendor":"amd","shm_bytes":17179869184,"ipc":"host","devices":["/dev/kfd","/dev/dri"]}`,
		},
		"mounts": {
			"docker run -d --runtime nvidia -e NVIDIA_VISIBLE_DEVICES=0,1 -p8080:80 --mount type=bind,source=/dev/shm,destination=/dev/shm -v/a:/b img sh -c 'x; y'",
			`{"kind":"docker-run","image":"img","command":["sh","-c","x; y"],"runtime":"nvidia","gpus":2,"gpu_vendor":"nvidia","shm_mounted":true,"mounts":["/dev/shm:/dev/shm","/a:/b"],"variables":{"NVIDIA_VISIBLE_DEVICES":"0,1"}}`,
		},
		"podman with CDI": {
			"podman run --device nvidia.com/gpu=all --tmpfs /dev/shm:rw,size=2g ubuntu nvidia-smi",
			`{"kind":"docker-run","image":"ubuntu","command":["nvidia-smi"],"gpus":-1,"gpu_vendor":"nvidia","shm_bytes":2147483648,"shm_mounted":true,"devices":["nvidia.com/gpu=all"],"mounts":["tmpfs:/dev/shm"]}`,
		},
		"mpirun": {
			"mpirun --allow-run-as-root -H a:8,b:8 -np 16 -x NCCL_DEBUG=INFO -x PATH --mca btl ^openib ./build/all_reduce_perf -b 8 -e 1G -g 1",
			`{"kind":"mpirun","command":["./build/all_reduce_perf","-b","8","-e","1G","-g","1"],"variables":{"NCCL_DEBUG":"INFO"},"processes":8,"nodes":2}`,
		},
		"vllm": {
			"+ NCCL_P2P_DISABLE=1 vllm serve m -tp 2 --pipeline_parallel_size=2",
			`{"kind":"command","command":["vllm","serve","m","-tp","2","--pipeline_parallel_size=2"],"variables":{"NCCL_P2P_DISABLE":"1"},"tensor_parallel":2,"pipeline_parallel":2}`,
		},
		"arguments in a log": {
			"INFO 07-11 03:41:57 llm_engine.py:161] Initializing an LLM engine (v0.4.3) with config: model='m', tensor_parallel_size=2, pipeline_parallel_size=1, seed=0",
			`{"kind":"command","tensor_parallel":2,"pipeline_parallel":1}`,
		},
		"sbatch": {
			"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=8\n#SBATCH --gres=gpu:h100:8\n#SBATCH -J train\nexport NCCL_IB_HCA=mlx5\n",
			`{"kind":"slurm","name":"train","gpus":8,"processes":8,"tasks":8,"nodes":2}`,
		},
		"srun": {
			"srun -N 2 -n 16 --container-image=img.sqsh --container-mounts=/a:/b --export=ALL,NCCL_DEBUG=WARN python train.py",
			`{"kind":"slurm","image":"img.sqsh","command":["python","train.py"],"mounts":["/a:/b"],"variables":{"NCCL_DEBUG":"WARN"},"processes":8,"tasks":8,"nodes":2}`,
		},
		"apptainer": {
			"apptainer exec --nv -B /a:/b img.sif torchrun --nproc-per-node 2 t.py",
			`{"kind":"apptainer","image":"img.sif","command":["torchrun","--nproc-per-node","2","t.py"],"runtime":"apptainer","gpus":-1,"gpu_vendor":"nvidia","shm_mounted":true,"mounts":["/a:/b"],"processes":2}`,
		},
		"behind others": {
			"cd /work && ulimit -l unlimited && accelerate launch --num_processes 16 --num_machines 2 t.py",
			`{"kind":"command","command":["accelerate","launch","--num_processes","16","--num_machines","2","t.py"],"processes":8,"nodes":2}`,
		},
		"prose":      {"docker run fails on this machine, and torchrun does as well", ""},
		"more prose": {"I start it with mpirun\nsglang crashed with it", ""},
		"numbers of the script": {
			"NNODES=2\nexport GPUS_PER_NODE=8 # each\ntorchrun --nnodes $NNODES --nproc_per_node=${GPUS_PER_NODE} x.py",
			`{"kind":"torchrun","command":["torchrun","--nnodes","2","--nproc_per_node=8","x.py"],"processes":8,"nodes":2}`,
		},
		"not a number": {"$ torchrun --nproc_per_node=$N x.py", `{"kind":"torchrun","command":["torchrun","--nproc_per_node=$N","x.py"],"unknown":{"processes":"$N"}}`},
	} {
		expect.NoDiff(t, test.want, jsonForm(t, texttest.Parse("x.txt", test.text)), "%s", name)
	}
}

// openRest are all parts but some, left open by a text.
func openRest(text string, but ...string) string {
	open := map[string]string{}
	for _, part := range launch.Ruled {
		if !slices.Contains(but, part) {
			open[part] = text
		}
	}
	b, err := json.Marshal(open)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestLaunchDescriptions(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"a pod without shm": {
			"apiVersion: v1\nkind: Pod\nmetadata:\n  name: llm\nspec:\n  hostIPC: true\n  containers:\n  - name: c\n    image: img\n    args: [\"--tensor-parallel-size\", \"4\"]\n    env:\n    - name: NCCL_DEBUG\n      value: INFO\n    - name: SECRET\n      valueFrom: {secretKeyRef: {name: x, key: y}}\n    resources:\n      limits:\n        nvidia.com/gpu: 4\n        memory: 4Gi\n",
			`{"kind":"kubernetes","name":"llm","image":"img","command":["--tensor-parallel-size","4"],"gpus":4,"gpu_vendor":"nvidia","ipc":"host","memory_bytes":4294967296,"variables":{"NCCL_DEBUG":"INFO"},"tensor_parallel":4,"resources":{"nvidia.com/gpu":"4"}}`,
		},
		"a deployment with a memory volume, after an ingress of text": {
			"This is mine:\n\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d\nspec:\n  template:\n    spec:\n      containers:\n        - name: c\n          image: img\n          command:\n            - sh\n            - -c\n            - |\n              export A=1\n              torchrun --nproc_per_node=8 x.py\n          securityContext:\n            capabilities:\n              add: [\"IPC_LOCK\"]\n          volumeMounts:\n            - mountPath: /dev/shm\n              name: shm\n      volumes:\n        - name: shm\n          emptyDir:\n            medium: Memory\n            sizeLimit: 2Gi\nand it fails.\n",
			`{"kind":"kubernetes","name":"d","image":"img","command":["sh","-c","export A=1\\ntorchrun --nproc_per_node=8 x.py\\n"],"shm_bytes":2147483648,"shm_mounted":true,"cap_add":["IPC_LOCK"],"mounts":["emptyDir-memory:/dev/shm"],"processes":8}`,
		},
		"a set of two": {
			"kind: LeaderWorkerSet\nspec:\n  leaderWorkerTemplate:\n    size: 2\n    workerTemplate:\n      spec:\n        hostNetwork: true\n        containers:\n        - name: w\n          resources:\n            limits:\n              nvidia.com/gpu: 8\n",
			`{"kind":"kubernetes","name":"w","gpus":8,"gpu_vendor":"nvidia","network":"host","nodes":2,"resources":{"nvidia.com/gpu":"8"}}`,
		},
		"compose": {
			"services:\n  vllm:\n    image: img\n    command: --model m --tensor-parallel-size 2\n    ipc: host\n    shm_size: '8gb'\n    ulimits:\n      memlock: -1\n    cap_add: [SYS_NICE]\n    environment:\n      - NCCL_P2P_DISABLE=1\n    deploy:\n      resources:\n        reservations:\n          devices:\n            - driver: nvidia\n              device_ids: ['0', '1']\n              capabilities: [gpu]\n",
			`{"kind":"compose","name":"vllm","image":"img","command":["--model","m","--tensor-parallel-size","2"],"gpus":2,"gpu_vendor":"nvidia","shm_bytes":8589934592,"ipc":"host","cap_add":["SYS_NICE"],"memlock_bytes":-1,"variables":{"NCCL_P2P_DISABLE":"1"},"tensor_parallel":2}`,
		},
		"a service by itself": {"  tgi:\n    image: img\n", ""},
		"mappings that are merged": {
			"x-a: &a\n  ipc: host\nx-b: &b\n  ipc: private\n  shm_size: 1g\nservices:\n  c:\n    <<: [*a, *b]\n    image: img\n    gpus: all\n",
			`{"kind":"compose","name":"c","image":"img","gpus":-1,"gpu_vendor":"nvidia","shm_bytes":1073741824,"ipc":"host"}`,
		},
		"a template": {
			"spec:\n  containers:\n  - name: c\n    image: img\n{{- if .Values.x }}\n    resources:\n      limits:\n        amd.com/gpu: 8\n{{- end }}\n",
			"", // What stands in a branch may not be there.
		},
		"an expression": {
			"spec:\n  containers:\n  - name: c\n    image: img\n    resources:\n      limits:\n        amd.com/gpu: {{ .Values.gpus }}\n",
			`{"kind":"kubernetes","name":"c","image":"img","gpu_vendor":"amd","unknown":{"gpus":"{{ .Values.gpus }}","resources":"{{ .Values.gpus }}"}}`,
		},
		"invalid at its end": {
			"services:\n  a:\n    image: x\n    gpus: all\n    shm_size: 1g\n  b:\n    image: y\n    ipc: host\n    bad: [1, 2\n",
			`{"kind":"compose","name":"a","image":"x","gpus":-1,"gpu_vendor":"nvidia","shm_bytes":1073741824}` + "\n" +
				`{"kind":"compose","name":"b","image":"y","ipc":"host","unknown":` + openRest("bad: [1, 2", "ipc") + `}`,
		},
		"a Dockerfile": {
			"FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN apt-get update && \\\n    apt-get install -y x\nENV NCCL_P2P_LEVEL=NVL\nENV NCCL_DEBUG INFO\n",
			`{"kind":"dockerfile","image":"nvidia/cuda:12.4.1-devel-ubuntu22.04","packages":["x"],"variables":{"NCCL_DEBUG":"INFO","NCCL_P2P_LEVEL":"NVL"}}`,
		},
		"docker inspect": {
			"[\n    {\n        \"Name\": \"/train\",\n        \"HostConfig\": {\n            \"IpcMode\": \"private\",\n            \"ShmSize\": 67108864,\n            \"DeviceRequests\": [{\"Count\": -1, \"Capabilities\": [[\"gpu\"]]}]\n        },\n        \"Config\": {\"Image\": \"img\", \"Env\": [\"NCCL_DEBUG=INFO\"]}\n    }\n]\n",
			`{"kind":"docker-inspect","name":"train","image":"img","gpus":-1,"gpu_vendor":"nvidia","shm_bytes":67108864,"ipc":"private","variables":{"NCCL_DEBUG":"INFO"}}`,
		},
	} {
		expect.NoDiff(t, test.want, jsonForm(t, texttest.Parse("x.txt", test.text)), "%s", name)
	}
}

func TestEnvironment(t *testing.T) {
	for line, want := range map[string]string{
		"NCCL_DEBUG=INFO": "NCCL_DEBUG=INFO",
		"  export NCCL_IB_HCA='mlx5_0,mlx5_1' # all":                "NCCL_IB_HCA=mlx5_0,mlx5_1",
		"+ export NCCL_P2P_DISABLE=1":                               "NCCL_P2P_DISABLE=1",
		"declare -x CUDA_VISIBLE_DEVICES=\"0,1\"":                   "CUDA_VISIBLE_DEVICES=0,1",
		"ENV NCCL_DEBUG=INFO NCCL_CUMEM_ENABLE=0":                   "NCCL_DEBUG=INFO NCCL_CUMEM_ENABLE=0",
		"$ NCCL_P2P_DISABLE=1 HOME=/x python t.py":                  "NCCL_P2P_DISABLE=1",
		"NCCL_SHM_DISABLE=1 \\":                                     "NCCL_SHM_DISABLE=1",
		"os.environ['NCCL_P2P_DISABLE'] = '1'":                      "NCCL_P2P_DISABLE=1",
		"os.environ.setdefault(\"NCCL_DEBUG\", \"INFO\")":           "NCCL_DEBUG=INFO",
		"LD_LIBRARY_PATH=/a b:/c":                                   "LD_LIBRARY_PATH=/a",
		"HIP_VISIBLE_DEVICES=":                                      "HIP_VISIBLE_DEVICES=",
		"NCCL_P2P_DISABLE=1 helps":                                  "",
		"# export NCCL_P2P_DISABLE=1":                               "",
		"node1$ export NCCL_P2P_DISABLE=1":                          "NCCL_P2P_DISABLE=1",
		"export PATH=/x":                                            "",
		"NCCL_DEBUG=${NCCL_DEBUG:-INFO}":                            "NCCL_DEBUG=INFO",
		"NCCL_DEBUG=$LEVEL":                                         "",
		"RUN echo NCCL_SOCKET_IFNAME=^lo >> /etc/nccl.conf":         "NCCL_SOCKET_IFNAME=^lo",
		"h:1:2 [0] NCCL INFO NCCL_DEBUG set by environment to INFO": "NCCL_DEBUG=INFO", // From the reader of NCCL's logs.
	} {
		got := expect.Map(texttest.Sections("x.txt", line+"\n").Env.Variables, func(v facts.Variable) string { return v.Name + "=" + v.Value })
		expect.That(t, strings.Join(got, " ") == want, "%q: got %q, want %q", line, got, want)
	}
}

func TestLaunchSize(t *testing.T) {
	for text, want := range map[string]int64{"16g": 16 << 30, "64m": 64 << 20, "1073741824": 1 << 30, "8gb": 8 << 30, "2Gi": 2 << 30, "1.5G": 3 << 29, "x": -1, "": -1, "9999999999999p": -1} {
		got := int64(-1)
		if n := parse.ByteSize(text); n != nil {
			got = *n
		}
		expect.Equal(t, want, got, "%q", text)
	}
}

// seeds are beginnings of what people send.
var seeds = []string{
	"docker run --gpus all \\\n --shm-size=1g img x --tp 2\n", "$ docker run -e A=b -itv /a:/b --ulimit memlock=-1 img\n",
	"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: a\n    resources: {limits: {nvidia.com/gpu: 1}}\n",
	"services:\n  a: &x\n    image: b\n    shm_size: 1g\n  b:\n    <<: *x\n", "a: &a [*a]\nimage: x\nspec:\n  containers: *a\n",
	"FROM a\nRUN b \\\n c\nENV NCCL_DEBUG=1\n", "[\n{\n\"HostConfig\": {\n}\n}\n]\n", "#SBATCH -N 2\n#SBATCH --gres=gpu:8\nsrun -n 3 x\n",
	"mpirun -np 2 -H a:1,b -x NCCL_X=1 --mca a b c\n", "export NCCL_A=\"b c\" D=e\n", "os.environ['NCCL_A']='b'\n",
	"#!/bin/sh\nexport NCCL_A=b # gpudoctor:ignore x: y\ncat > a <<E\n#SBATCH -N 2\nulimit -l 64\nE\nif a; then\nNCCL_B=1 torchrun --cpu x\nfi\n",
	"apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: r}\nspec:\n  containers:\n  - image: a\n    args:\n    - |\n      export NCCL_A=1\n    resources: {requests: {nvidia.com/gpu: 1, cpu: 1m}}\n    volumeMounts: [{name: a, mountPath: /dev/shm}]\n",
	"deepspeed --include localhost:0,1 x.py -a\nx nnodes=1, num_local_procs=4\n",
	podJSON, described,
	"NodeName=n[1-4] Gres=gpu:h100:8\n", "NodeName=n1 Name=gpu File=/dev/nvidia[0-3,6]\n", "ulimit -l 64\n", "ENROOT_RESTRICT_DEV yes\n",
	"FROM a AS b\nRUN apt-get install x=1 \\\n y\nUSER u\nFROM b\nENV A=1\n", "#SBATCH --nodes=4\n#SBATCH --gpus=32\n",
}

func FuzzLaunch(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(bounded)
}

// bounded checks that launches stay within their bounds, whatever the text and its name.
func bounded(t *testing.T, text string) {
	for _, name := range []string{"x.txt", "x.yaml", "x.sh", "Dockerfile", "x.md", "x.json"} {
		f := texttest.Parse(name, text)
		expect.That(t, len(f.Launches) <= launch.MaxList, "%s: %d launches", name, len(f.Launches))
		for _, l := range f.Launches {
			expect.That(t, len(l.Command) <= launch.MaxCommand && len(l.Mounts) <= launch.MaxList && len(l.Variables) <= launch.MaxList && l.Line >= 1 && l.Unit >= 1, "%s: got %+v", name, l)
			expect.That(t, (l.GPUs == nil || *l.GPUs >= -1) && (l.SHMBytes == nil || *l.SHMBytes >= 0), "%s: got %+v", name, l)
		}
	}
}

// TestRestOfFiles checks that a compose file that begins with anchors, and a Dockerfile with
// comments and texts between its instructions, are read to their end.
func TestRestOfFiles(t *testing.T) {
	f := texttest.Parse("compose.yaml", "x-env: &env\n  TZ: UTC\nservices:\n  a:\n    image: x\n    gpus: all\n    environment:\n      <<: *env\n      NCCL_DEBUG: WARN\n")
	expect.That(t, len(f.Launches) == 1 && f.Launches[0].Line == 4 && f.Launches[0].Variables["TZ"] == "UTC" && f.Launches[0].Variables["NCCL_DEBUG"] == "WARN", "%+v", f.Launches)
	f = texttest.Parse("Dockerfile", "FROM a\nENV X=1 \\\n    # why\n\n    NCCL_DEBUG=INFO\nRUN <<EOF\nFROM=here\nEOF\nUSER 7\n")
	expect.That(t, len(f.Launches) == 1 && f.Launches[0].User == "7" && f.Launches[0].Image == "a" && f.Launches[0].Variables["NCCL_DEBUG"] == "INFO", "%+v", f.Launches)
}

// BenchmarkManifests reads a folder of 400 small manifests and scripts.
func BenchmarkManifests(b *testing.B) {
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec:\n  containers:\n  - name: a\n    image: i\n    command: [bash, -c, 'export NCCL_DEBUG=INFO; torchrun --nproc-per-node=8 x.py']\n    resources: {limits: {nvidia.com/gpu: 8}}\n"
	script := "#!/bin/bash\n#SBATCH --gpus-per-node=8\nexport NCCL_DEBUG=INFO\nif x; then\n  ulimit -l 64\nfi\nsrun torchrun --nnodes=%d x.py\n"
	for b.Loop() {
		r := text.NewReading()
		for i := range 200 {
			texttest.Text(r, fmt.Sprintf("p%d.yaml", i), fmt.Sprintf(pod, i))
			texttest.Text(r, fmt.Sprintf("p%d.sh", i), fmt.Sprintf(script, i+1))
		}
		n := len(r.Finish().Launches)
		expect.Must(b, n >= 600, "%d launches", n)
	}
}
