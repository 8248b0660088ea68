package data

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestLaunchFiles checks that each list of the table matches what it is for, and no name
// that looks similar and is harmless.
func TestLaunchFiles(t *testing.T) {
	table := LaunchFiles()
	for name, list := range map[string]struct{ patterns, yes, no []string }{
		"rdma_resources": {
			table.RDMAResources,
			[]string{"rdma/hca", "rdma/hca_shared_devices_a", "nvidia.com/hostdev_rdma", "nvidia.com/sriov_ib", "mellanox.com/mlnxnics", "openshift.io/mlx_rdma", "nvidia.com/mlnxnics"},
			[]string{"nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared", "amd.com/gpu", "vpc.amazonaws.com/efa", "claims", "ephemeral-storage/a", "smarter-devices/fuse"},
		},
		"host_interfaces": {
			table.HostInterfaces,
			[]string{"ib0", "ibs1", "ibp24s0", "ens3", "eno1", "enp1s0f0", "enp24s0np0", "bond0", "mlx0", "docker0", "hsn0", "br0"},
			[]string{"eth0", "eth1", "net1", "lo", "veth1a2b", "tailscale0", "wg0", "^lo"},
		},
		"loopback": {
			table.Loopback,
			[]string{"localhost", "localhost:29500", "127.0.0.1", "127.0.0.1:29500", "::1", "[::1]:29500"},
			[]string{"localhost.example.com", "10.0.0.1", "node-127.example.com", "2001:db8::1", "$MASTER_ADDR", "train-0.train"},
		},
		"driver_packages": {
			table.DriverPackages,
			[]string{"libnvidia-compute-550", "libnvidia-compute-550-server", "nvidia-driver-550", "nvidia-utils-535", "cuda-drivers-550", "cuda-drivers", "libcuda1", "nvidia-headless-550", "nvidia-open-570"},
			[]string{"cuda-toolkit-12-4", "libnccl2", "libnccl-dev", "libcudnn9-cuda-12", "cuda-compat-12-4", "nvidia-container-toolkit", "libnvidia-container1", "libnvidia-container-tools", "nvidia-cuda-toolkit", "cuda-cudart-12-4", "libibverbs1"},
		},
		"stub_folders": {
			table.MisplacedFolders[0].Folders,
			[]string{"/usr/local/cuda/lib64/stubs", "/usr/local/cuda/lib64/stubs/"},
			[]string{"/usr/local/cuda/lib64", "/opt/stubs-of-mine", "/stubs/lib"},
		},
		"compat_folders": {
			table.MisplacedFolders[1].Folders,
			[]string{"/usr/local/cuda/compat", "/usr/local/cuda-12.4/compat", "/usr/local/cuda/compat/", "/usr/local/cuda/compat/lib.real"},
			[]string{"/usr/local/cuda/lib64", "/opt/compat", "/usr/local/cuda/compatible", "/usr/local/cuda/compat/lib"},
		},
		"host_folders": {table.HostFolders, []string{"/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/x86_64-linux-gnu"}, []string{"/usr/local/lib", "/usr/local/nvidia/bin"}},
		"without_nccl": {
			table.WithoutNCCL,
			[]string{"ollama/ollama:0.12", "ghcr.io/ggml-org/llama.cpp:server-cuda", "/usr/bin/nvidia-smi", "nvidia-smi -L", "ubuntu:22.04", "nvidia/cuda:12.4.1-base-ubuntu22.04"},
			[]string{"vllm/vllm-openai:v0.11.0", "torchrun", "python3", "registry.example.com/ubuntu-train:1", "nvidia/cuda:12.4.1-devel-ubuntu22.04"},
		},
		"node_services": {
			table.NodeServices,
			[]string{"nvcr.io/nvidia/k8s/dcgm-exporter:4.2", "nvcr.io/nvidia/k8s-device-plugin:v0.17", "nvcr.io/nvidia/gpu-feature-discovery:v0.17"},
			[]string{"pytorch/pytorch:2.8", "vllm/vllm-openai:v0.11.0", "registry.example.com/train:1"},
		},
		"unlimited_memlock": {table.UnlimitedMemlock, []string{"rdma/ib"}, []string{"rdma/hca", "rdma/ibs1"}},
		"other_processors": {
			table.OtherProcessors,
			[]string{"vllm-cpu:1", "public.ecr.aws/neuron/pytorch:2", "vault.habana.ai/gaudi-docker/1.20", "vllm/vllm-tpu:nightly"},
			[]string{"pytorch/pytorch:2.8", "vllm/vllm-openai:v0.11.0"},
		},
	} {
		for want, words := range map[bool][]string{true: list.yes, false: list.no} {
			for _, word := range words {
				got := slices.ContainsFunc(list.patterns, func(p string) bool { return regexp.MustCompile(p).MatchString(word) })
				expect.Equal(t, want, got, "%s matches %q", name, word)
			}
		}
	}
}

// TestProviders checks that the patterns of each provider are valid, that it can be recognised, and that
// it has a source.
func TestProviders(t *testing.T) {
	for _, p := range LaunchFiles().Providers {
		checkSources(t, p.Name, p.Source)
		expect.That(t, len(p.Image)+len(p.Beside) > 0 && len(p.Settings) > 0, "%s is not recognised, or sets nothing", p.Name)
		for _, pattern := range slices.Concat(p.Image, p.Beside, p.Mounts, p.Resources, slices.Collect(maps.Keys(p.Settings)), slices.Collect(maps.Values(p.Settings))) {
			_, err := regexp.Compile(pattern)
			expect.That(t, err == nil, "%s: %v", p.Name, err)
		}
	}
}
