package host

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/internal/redact"
)

var communicationPrefixes = []string{
	"NCCL_", "RCCL_", "CUDA_", "HSA_", "HIP_", "ROCR_", "UCX_", "FI_", "OFI_NCCL_",
	"OMPI_MCA_", "MPICH_", "TORCH_NCCL_", "NVSHMEM_",
}

// communicationNames are names that no prefix covers.
var communicationNames = []string{
	"AMD_SERIALIZE_COPY", "AMD_SERIALIZE_KERNEL", "GPU_DEVICE_ORDINAL", "GPU_MAX_HW_QUEUES",
	"LD_LIBRARY_PATH", "LD_PRELOAD", "TORCH_SYMM_MEM_DISABLE_MULTICAST",
	"NVIDIA_DISABLE_REQUIRE", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_IMEX_CHANNELS", "NVIDIA_REQUIRE_CUDA", "NVIDIA_VISIBLE_DEVICES",
	// Memory of expandable segments cannot be shared by cudaIpcGetMemHandle.
	"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF",
	// Peer access of llama.cpp, and what frameworks choose for all-reduce.
	"GGML_CUDA_P2P", "GGML_CUDA_NO_PEER_COPY", "GGML_CUDA_PEER_MAX_BATCH_SIZE",
	"VLLM_SKIP_P2P_CHECK", "VLLM_NCCL_SO_PATH", "VLLM_HOST_IP", "VLLM_DISABLE_PYNCCL",
	"VLLM_ALLREDUCE_USE_SYMM_MEM", "VLLM_USE_NCCL_SYMM_MEM", "VLLM_ROCM_QUICK_REDUCE_QUANTIZATION",
	"SGLANG_SKIP_P2P_CHECK", "SGLANG_HOST_IP", "HOST_IP",
	// How ranks find each other.
	"GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK",
	"LOCAL_WORLD_SIZE", "NNODES", "NODE_RANK", "HOROVOD_GLOO_IFACE",
	// Ray's handling of the variables of visible devices.
	"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES", "RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES",
	"RAY_EXPERIMENTAL_NOSET_ROCR_VISIBLE_DEVICES",
}

// SteersCommunication reports whether a variable belongs among the facts of the environment.
func SteersCommunication(name string) bool {
	return slices.Contains(communicationNames, name) || hasPrefix(name, communicationPrefixes)
}

func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// otherPrefixes and otherNames match variables that tell where the process runs or how it reads files.
var (
	otherPrefixes = []string{"NVIDIA_", "ENROOT_", "CUFILE_"}
	otherNames    = []string{
		"APPTAINER_CONTAINER", "CONDA_PREFIX", "HOME", "KUBERNETES_SERVICE_HOST", "PYTHONPATH", "ROCM_PATH",
		"SINGULARITY_CONTAINER", "SLURM_JOB_ID", "SLURM_LOCALID", "VIRTUAL_ENV", "container",
	}
)

// Wanted reports whether checks need an environment variable. All others are never read.
func Wanted(name string) bool {
	return SteersCommunication(name) || hasPrefix(name, otherPrefixes) || slices.Contains(otherNames, name)
}

// WantedEnviron reduces an environment to the variables that checks need, in order of name. Of a secret, and of where a
// cluster's API is, only the presence is kept.
func WantedEnviron(environ []string) []string {
	list := []string{}
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || !Wanted(name) {
			continue
		}
		if name == "KUBERNETES_SERVICE_HOST" || redact.SecretVariable(name, value) {
			value = redact.Withheld
		}
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// kernelLogWords are found in the lines of the kernel log that affect GPUs, PCIe, the IOMMU or memory.
var kernelLogWords = []string{
	"NVRM", "nvidia", "Xid", "nvswitch", "NVSwitch", "AER", "pcieport", "DMAR", "AMD-Vi", "iommu", "IOMMU",
	"amdgpu", "kfd", "ACS", "BAR ", "oom-kill", "ut of memory", "EFA", "efa ", "SMMU", "smmu",
	"PCIe", "pciehp", "Hardware Error", "bridge window",
}

// kernelLogTrouble are the words that make a line of a network driver worth keeping.
var kernelLogTrouble = []string{"rror", "fail", "Fail", "timeout", "timed out", "health", "fatal", "bandwidth", "down", "assert", "syndrome"}

// KernelLogWanted reports whether AskKernelLog keeps a line.
func KernelLogWanted(line string) bool {
	has := func(word string) bool { return strings.Contains(line, word) }
	return slices.ContainsFunc(kernelLogWords, has) ||
		(has("mlx5_core") && slices.ContainsFunc(kernelLogTrouble, has))
}

// wantedKernelOptions are what peer access and DMA-BUF of AMD GPUs need: amdgpu_device_is_peer_accessible
// (drivers/gpu/drm/amd/amdgpu/amdgpu_device.c) is "no" without HSA_AMD_P2P, which depends on the other two (amdkfd/Kconfig,
// Linux 6.0).
var wantedKernelOptions = []string{"CONFIG_HSA_AMD", "CONFIG_HSA_AMD_P2P", "CONFIG_PCI_P2PDMA", "CONFIG_DMABUF_MOVE_NOTIFY"}
