package host_test

import (
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// softwareOf writes the packages of a text as "name version manager@host".
func softwareOf(f *facts.Facts) []string {
	list := expect.Map(f.Software, func(p facts.Package) string {
		return strings.TrimSuffix(p.Name+" "+p.Version+" "+p.Manager+"@"+p.Host, "@")
	})
	return list
}

func TestPackages(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"freeze with hosts": {
			"w-1:~$ pip freeze | grep nccl\nnvidia-nccl-cu11==2.14.3\nnvidia-nccl-cu12==2.20.5\nw-2:~$ pip freeze | grep nccl\nnvidia-nccl-cu12==2.19.3\n",
			[]string{"nvidia-nccl-cu11 2.14.3 pip@w-1", "nvidia-nccl-cu12 2.20.5 pip@w-1", "nvidia-nccl-cu12 2.19.3 pip@w-2"},
		},
		"requirements": {"torch==2.4.0+cu121 ; platform_system == 'Linux'\nnumpy==1.26.4\nvllm==0.9.1  # pinned\n", []string{"torch 2.4.0+cu121 pip", "vllm 0.9.1 pip"}},
		"list": {
			"Package                  Version\n------------------------ ----------\ntorch                    2.4.0\nnumpy                    1.26.4\nnvidia-nccl-cu12         2.20.5\nsglang                   0.4.6    /sgl/python\n",
			[]string{"torch 2.4.0 pip", "nvidia-nccl-cu12 2.20.5 pip", "sglang 0.4.6 pip"},
		},
		"conda": {
			"# Name                    Version                   Build  Channel\nnccl                      2.19.3.1             h6103f9b_0    conda-forge\npytorch                   2.1.0           py3.10_cuda11.8_cudnn8.7.0_0    pytorch\n",
			[]string{"nccl 2.19.3.1 conda"},
		},
		"dpkg": {
			"ii  libnccl2        2.27.7-1+cuda12.9   amd64   NVIDIA Collective Communication Library\nii  libibverbs1:amd64  39.0-1  amd64  Library\nrc  nvidia-fabricmanager-535  535.104.05-1  amd64  Fabric\nii  bash  5.1-6ubuntu1  amd64  shell\n",
			[]string{"libnccl2 2.27.7-1+cuda12.9 dpkg"},
		},
		"apt":         {"libnccl2/unknown,now 2.18.3-1+cuda12.1 amd64 [installed,upgradable to: 2.27.7]\n", []string{"libnccl2 2.18.3-1+cuda12.1 dpkg"}},
		"rpm":         {"libnccl-2.21.5-1+cuda12.4.x86_64\nnvidia-fabric-manager-550.90.07-1.x86_64\nbash-5.1.8-6.el9.x86_64\n", []string{"libnccl 2.21.5-1+cuda12.4 rpm"}},
		"vllm":        {"(Worker_TP0 pid=381) INFO 04-21 09:13:02 [pynccl.py:111] vLLM is using nccl==2.27.7\nINFO [api_server.py:1892] vLLM API server version 0.19.1\nINFO llm_engine.py:161] Initializing an LLM engine (v0.4.3) with config: model='x'\n", []string{"nccl 2.27.7 log", "vllm 0.19.1 log", "vllm 0.4.3 log"}},
		"torch":       {"torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1275, internal error, NCCL version 2.14.3\n", []string{"nccl 2.14.3 log"}},
		"python":      {"$ python -c 'import torch; print(torch.version.cuda)'\n11.8\n$ python -c 'import torch; print(torch.cuda.nccl.version())'\n(2, 20, 5)\n", []string{"cuda-runtime 11.8 torch", "nccl 2.20.5 torch"}},
		"image":       {"docker run --gpus all vllm/vllm-openai:v0.6.3.post1 --model x\n", []string{"vllm 0.6.3.post1 image"}},
		"report":      {"torch version .................... 2.1.0+cu121\ntorch cuda version ............... 12.1\n", []string{"torch 2.1.0+cu121 ds_report", "cuda-runtime 12.1 ds_report"}},
		"no versions": {"if torch  == 2:\n==== torch ====\nthe torch  was lit\nray  diagrams\n$ cat notes\n1.2.3\n", nil},
	} {
		expect.NoDiff(t, tt.want, softwareOf(texttest.Parse("a.txt", tt.text)), "%s", name)
	}
}
