package host_test

import (
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestCollectEnv(t *testing.T) {
	const text = `$ python -m torch.utils.collect_env
Collecting environment information...
PyTorch version: 2.4.0+cu121
Is debug build: False
CUDA used to build PyTorch: 12.1
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.4 LTS (x86_64)
GCC version: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0

CUDA runtime version: Could not collect
GPU models and configuration: 
GPU 0: NVIDIA H100 80GB HBM3
GPU 1: NVIDIA H100 80GB HBM3

Nvidia driver version: 550.90.07
cuDNN version: Probably one of the following:
/usr/lib/x86_64-linux-gnu/libcudnn.so.9.1.0

[pip3] numpy==1.26.4
[pip3] nvidia-nccl-cu12==2.20.5
[conda] pytorch-cuda              12.1                 ha16c6d3_5    pytorch
`
	f := texttest.Parse("env.txt", text)
	want := []string{
		"torch 2.4.0+cu121 collect_env", "cuda-runtime 12.1 collect_env", "nvidia-driver 550.90.07 collect_env",
		"nvidia-nccl-cu12 2.20.5 pip",
	}
	got := softwareOf(f)
	expect.That(t, slices.Equal(got, want), "software: got %q, want %q", got, want)
	expect.That(t, f.Host != nil && f.Host.Distribution == "Ubuntu 22.04.4 LTS" && f.Host.Arch == "amd64", "host: got %+v", f.Host)
	expect.Must(t, f.GPUs != nil && len(f.GPUs.Devices) == 2 && f.GPUs.Driver.Version == "550.90.07", "gpus: got %+v", f.GPUs)
	g := f.GPUs.Devices[1]
	expect.That(t, g.Name == "NVIDIA H100 80GB HBM3" && g.Vendor == "nvidia" && g.Index != nil && *g.Index == 1, "gpu: got %+v", g)
}

// vLLM's report pads its names, and ROCm's has AMD's.
func TestCollectEnvOfVLLM(t *testing.T) {
	const text = `PyTorch version              : 2.7.0+rocm6.3
ROCM used to build PyTorch   : 6.3.42133-1b9c17779
OS                           : Ubuntu 22.04.5 LTS (x86_64)
GPU models and configuration : GPU 0: AMD Instinct MI300X (gfx942:sramecc+:xnack-)
GPU 1: AMD Instinct MI300X (gfx942:sramecc+:xnack-)
ROCM Version                 : 6.3.42133-1b9c17779
vLLM Version                 : 0.9.2
`
	f := texttest.Parse("env.txt", text)
	want := []string{"torch 2.7.0+rocm6.3 collect_env", "hip 6.3.42133-1b9c17779 collect_env", "rocm 6.3.42133-1b9c17779 collect_env", "vllm 0.9.2 collect_env"}
	got := softwareOf(f)
	expect.That(t, slices.Equal(got, want), "software: got %q, want %q", got, want)
	expect.That(t, f.GPUs != nil && len(f.GPUs.Devices) == 2 && f.GPUs.Devices[0].Vendor == "amd", "gpus: got %+v", f.GPUs)
}

func TestDistribution(t *testing.T) {
	for name, tt := range map[string]struct{ text, description string }{
		"os-release":  {"NAME=\"Ubuntu\"\nPRETTY_NAME=\"Ubuntu 24.04 LTS\"\nID=ubuntu\nVERSION_ID=\"24.04\"\n", "Ubuntu 24.04 LTS"},
		"lsb_release": {"$ lsb_release -a\nDistributor ID:\tDebian\nDescription:\tDebian GNU/Linux 12 (bookworm)\nRelease:\t12\n", "Debian GNU/Linux 12 (bookworm)"},
	} {
		h := texttest.Parse("a", tt.text).Host
		expect.That(t, h != nil && h.Distribution == tt.description, "%s: got %+v, want %+v", name, h, tt)
	}
}
