package machine

import (
	"slices"
	"strings"
)

// wantedPrefixes begin the names of the variables that steer communication.
var wantedPrefixes = []string{
	"NCCL_", "RCCL_", "CUDA_", "HSA_", "HIP_", "ROCR_", "UCX_", "FI_", "OFI_NCCL_", "OMPI_MCA_",
	"TORCH_NCCL_", "NVSHMEM_", "NVIDIA_", "ENROOT_",
}

// wantedNames are the other variables that checks want, in order.
var wantedNames = []string{
	"AMD_SERIALIZE_COPY", "AMD_SERIALIZE_KERNEL", "APPTAINER_CONTAINER", "CONDA_PREFIX", "GPU_DEVICE_ORDINAL", "GPU_MAX_HW_QUEUES",
	"HOME", "KUBERNETES_SERVICE_HOST",
	"LD_LIBRARY_PATH", "LD_PRELOAD", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "PYTHONPATH", "RANK", "ROCM_PATH", "SINGULARITY_CONTAINER",
	"SLURM_JOB_ID", "SLURM_LOCALID", "TORCH_SYMM_MEM_DISABLE_MULTICAST", "VIRTUAL_ENV", "WORLD_SIZE", "container",
}

// Wanted reports whether checks want an environment variable. All others are
// never looked at.
func Wanted(name string) bool {
	if _, ok := slices.BinarySearch(wantedNames, name); ok {
		return true
	}
	return slices.ContainsFunc(wantedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// withheld is the value of a variable whose real one is nobody's business.
const withheld = "set"

// wantedEnviron reduces an environment to the variables that checks want, in
// order of name. Of a secret, and of what only tells where a cluster's API
// lies, nothing but the presence is kept.
func wantedEnviron(environ []string) []string {
	list := []string{}
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || !Wanted(name) {
			continue
		}
		if name == "KUBERNETES_SERVICE_HOST" || secretVariable(name, value) {
			value = withheld
		}
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// secretVariable reports whether a variable's name says that its value is a
// secret (NVIDIA_API_KEY). A small number is none: NCCL_IB_PKEY is the index
// of a partition key, UCX_RKEY_MPOOL a size.
func secretVariable(name, value string) bool {
	name = strings.ToUpper(name)
	for _, word := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "KEY"} {
		if strings.Contains(name, word) {
			return value != withheld && !plainSetting(value)
		}
	}
	return false
}

// plainSetting reports whether a value is a short number or a switch.
func plainSetting(value string) bool {
	switch strings.ToLower(value) {
	case "", "y", "n", "yes", "no", "on", "off", "true", "false", "auto", "try":
		return true
	}
	digits := strings.TrimPrefix(strings.ToLower(value), "0x")
	return len(digits) <= 5 && strings.Trim(digits, "0123456789abcdef") == "" // 5: 65535.
}

// kernelLogWords are found in the lines of the kernel log that bear on GPUs,
// PCIe, DMA translation or lack of memory.
var kernelLogWords = []string{
	"NVRM", "nvidia", "Xid", "nvswitch", "NVSwitch", "AER", "pcieport", "DMAR", "AMD-Vi", "iommu", "IOMMU",
	"amdgpu", "kfd", "ACS", "BAR ", "oom-kill", "ut of memory", "EFA", "efa ", "SMMU", "smmu",
	"PCIe", "pciehp", "Hardware Error",
}

// kernelLogTrouble are the words that make a line of a network driver worth
// keeping; such drivers say much that is of no interest here.
var kernelLogTrouble = []string{"rror", "fail", "Fail", "timeout", "timed out", "health", "fatal", "bandwidth", "down", "assert", "syndrome"}

// KernelLogWanted reports whether a line of the kernel log is one that
// AskKernelLog keeps.
func KernelLogWanted(line string) bool {
	has := func(word string) bool { return strings.Contains(line, word) }
	return slices.ContainsFunc(kernelLogWords, has) ||
		(has("mlx5_core") && slices.ContainsFunc(kernelLogTrouble, has))
}

// wantedKernelOptions are what peer access and DMA-BUF between AMD GPUs, and
// from NICs to them, need of the kernel: amdgpu_device_is_peer_accessible in
// drivers/gpu/drm/amd/amdgpu/amdgpu_device.c is compiled to "no" without
// HSA_AMD_P2P, which depends on the other two (amdkfd/Kconfig, Linux 6.0).
var wantedKernelOptions = []string{"CONFIG_HSA_AMD", "CONFIG_HSA_AMD_P2P", "CONFIG_PCI_P2PDMA", "CONFIG_DMABUF_MOVE_NOTIFY"}
