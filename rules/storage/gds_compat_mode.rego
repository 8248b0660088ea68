# METADATA
# title: GPUDirect Storage is not used or slow
# description: >-
#   GPUDirect Storage (GDS) is set up here, but cuFile cannot use it and reads
#   and writes through host memory instead (compatibility mode): slower, with a
#   load on the processors, and without an error. It needs the module nvidia_fs
#   with a storage driver that registers with it, or PCI P2PDMA of the kernel;
#   local drives need ext4 with ordered journaling, or XFS. A translating IOMMU,
#   or ACS that redirects, slows it down. That cuFile and its cufile.json are
#   installed does not mean that GDS is set up: they are part of the CUDA toolkit.
# related_resources:
#   - ref: https://docs.nvidia.com/gpudirect-storage/api-reference-guide/topics/cufile-compatibility.html
#     description: When cuFile uses the compatibility mode
#   - ref: https://docs.nvidia.com/gpudirect-storage/troubleshooting-guide/nvme-p2pdma-troubleshooting.html
#     description: What P2PDMA requires
#   - ref: https://github.com/NVIDIA/gds-nvidia-fs
#     description: What nvidia_fs supports, and its files in /proc
# custom:
#   severity: low
#   confidence: likely
#   cause: other
#   needs: [storage.gds]
#   remedies: [load-nvidia-fs, enable-gds-p2pdma, unset-gds-compat-mode, use-gds-file-system, iommu-pt, disable-acs, other]
#   profiles: [training]
#   first_of:
#     - forced > impossible > unsupported > unregistered > file-system > tried
#   since: "0.2"
package gpudoctor.rules.gds_compat_mode

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gds
import data.gpudoctor.lib.gpudirect
import data.gpudoctor.lib.iommu
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.surroundings

findings contains {
	"id": "forced",
	"subject": "GPUDirect Storage",
	"message": sprintf("cuFile is set to use host memory for all reads and writes (properties.force_compat_mode%s)", [gds.set_by("CUFILE_FORCE_COMPAT_MODE")]),
	"evidence": [gds.property("properties.force_compat_mode")],
	"confidence": "confirmed",
	"remedies": ["unset-gds-compat-mode"],
} if {
	gds.forced
	not surroundings.no_nvidia
}

findings contains {
	"id": "impossible",
	"subject": "GPUDirect Storage",
	"message": sprintf("cuFile is set to use PCI P2PDMA (properties.use_pci_p2pdma%s), but %s, and nvidia_fs is not loaded: it reads and writes through host memory", [gds.set_by("CUFILE_USE_PCIP2PDMA"), concat(", ", sort(gds.obstacles))]),
	"evidence": array.concat([gds.property("properties.use_pci_p2pdma")], sort(gds.obstacle_evidence)),
	"severity": "medium",
	"remedies": ["load-nvidia-fs", "enable-gds-p2pdma"],
} if {
	gds.asked
	input.storage.gds.loaded == false
	count(gds.obstacles) > 0
	not surroundings.no_nvidia
	count(gpudirect.direct) == 0
}

# gdscheck shows that no storage can be used, neither over nvidia_fs nor over P2PDMA. Every version of it lists NVMe
# and NFS, so that a part of its list is not taken for the whole.
findings contains {
	"id": "unsupported",
	"subject": "GPUDirect Storage",
	"message": "gdscheck finds no storage that GPUDirect Storage supports here: cuFile reads and writes through host memory, or fails if properties.allow_compat_mode is false",
	"evidence": gds.driver_evidence,
	"severity": "medium",
	"confidence": "confirmed",
	"remedies": ["load-nvidia-fs", "enable-gds-p2pdma"],
} if {
	gds.told
	count({"NVMe", "NFS"} - gds.unsupported) == 0
	count(gds.supported) == 0
}

findings contains {
	"id": "unregistered",
	"subject": "GPUDirect Storage",
	"message": "The module nvidia_fs is loaded, but no storage driver is registered with it: cuFile reads and writes through host memory. The drivers of the Linux kernel do not register, those of MLNX_OFED and DOCA-OFED do",
	"evidence": gds.driver_evidence,
	"remedies": ["load-nvidia-fs", "enable-gds-p2pdma"],
} if {
	input.storage.gds.loaded == true
	count(gds.unsupported) > 0
	count(gds.supported) == 0
	gds.asked == false
	count(gpudirect.direct) == 0
}

# What was really tried.
findings contains {
	"id": "tried",
	"subject": "GPUDirect Storage",
	"message": sprintf("cuFile reads from %s only through host memory (compatibility mode): without it, %s", [facts.list({r.mount | some r in gpudirect.staged}), facts.list({gpudirect.told(r) | some r in gpudirect.staged})]),
	"evidence": [e | some r in gpudirect.staged; some e in [gpudirect.read_evidence(r, "direct"), gpudirect.read_evidence(r, "configured")]],
	"remedies": ["load-nvidia-fs", "enable-gds-p2pdma"],
} if {
	count(gpudirect.staged) > 0
}

findings contains {
	"id": "corrupt",
	"subject": c.read.mount,
	"affects": [gpu | gpu := c.read.gpu; facts.is_address(gpu)],
	"message": sprintf("cuFile reports that it read a file of %s into the memory of GPU %s, but other data arrived there", [c.read.mount, c.read.gpu]),
	"evidence": [gpudirect.read_evidence(c.read, c.way)],
	"severity": "high",
	"confidence": "confirmed",
	"remedies": ["other"],
} if {
	some c in gpudirect.corrupt
}

findings contains {
	"id": "file-system",
	"subject": "GPUDirect Storage",
	"message": sprintf("GPUDirect Storage is set up for NVMe drives, but no file system for data on them is one that it supports (ext4 with ordered journaling, XFS): %s", [facts.list({sprintf("%s is %s", [m.path, gds.kind(m)]) | some m in gds.data_mounts})]),
	"evidence": [{"fact": sprintf("storage.mounts[%s].type", [m.path]), "value": m.type, "source": "/proc/self/mountinfo"} | some m in gds.data_mounts],
	"confidence": "possible",
	"remedies": ["use-gds-file-system"],
} if {
	gds.for_nvme
	count(gds.data_mounts) > 0
	count(gds.fit_mounts) == 0
	count(gds.supported - {"NVMe", "NVMe P2PDMA"}) == 0
}

findings contains {
	"id": "iommu",
	"subject": "GPUDirect Storage",
	"message": sprintf("The IOMMU translates the addresses of %s. NVIDIA does not support GPUDirect Storage with a translating IOMMU: transfers may be slow or fail", [facts.list(gds.translated)]),
	"evidence": [{"fact": "iommu.groups", "value": sort(gds.translated), "source": "/sys/kernel/iommu_groups"}],
	"confidence": "possible",
	"remedies": ["iommu-pt"],
	"params": iommu.params,
} if {
	gds.for_nvme
	count(gds.translated) > 0
}

findings contains {
	"id": "iommu",
	"subject": "GPUDirect Storage",
	"message": "gdscheck shows that the IOMMU is enabled. NVIDIA does not support GPUDirect Storage with a translating IOMMU: transfers may be slow or fail",
	"evidence": [{"fact": "storage.gds.iommu", "value": input.storage.gds.iommu, "source": gds.source}],
	"confidence": "possible",
	"remedies": ["iommu-pt"],
	"params": iommu.params,
} if {
	gds.told
	input.storage.gds.iommu == "enabled"
	count(gds.translated) == 0
}

# Paths that ACS lengthens: a drive and a GPU below one switch.
findings contains {
	"id": "acs",
	"subject": "GPUDirect Storage",
	"message": sprintf("ACS redirects the traffic between GPUs and NVMe drives below one switch (%s), so that it goes through the processor", [facts.few(gds.redirecting)]),
	"evidence": [{"fact": sprintf("pci.devices[%s].acs.control", [bridge]), "value": sort(pci.redirects(bridge)), "source": pci.port_at(bridge)} | some bridge in gds.redirecting],
	"remedies": ["disable-acs"],
	"params": {"bridges": sort(gds.redirecting), "bridge": min(gds.redirecting)},
} if {
	gds.for_nvme
	count(gds.redirecting) > 0
	facts.is_passthrough_host == false
}

missing contains {"fact": "storage.gds", "words": "it is not known whether GPUDirect Storage is set up"} if {
	not input.storage.gds
	not surroundings.no_nvidia
}

missing contains {"fact": "gpudirect.reads", "words": "cuFile refused to read without the compatibility mode, and it is not known why, or whether it reads with it"} if {
	count(gpudirect.unclear) > 0
}

missing contains {"fact": "storage.gds.loaded", "words": "it is not known whether the module nvidia_fs is loaded"} if {
	gds.of_machine
	not gds.loaded_known
}

missing contains {"fact": "storage.gds.properties", "words": "the settings of cuFile are not known"} if {
	gds.of_machine
	not gds.properties_known
}

missing contains {"fact": "storage.gds.drivers", "words": "it is not known which drivers are registered with nvidia_fs"} if {
	gds.of_machine
	input.storage.gds.loaded == true
	not gds.drivers_known
}

missing contains {"fact": "storage.gds.drivers", "words": "gdscheck's list of drivers (DRIVER CONFIGURATION) is not in the input"} if {
	gds.told
	count(gds.supported) == 0
}

missing contains {"fact": "storage.gds.kernel_p2pdma", "words": "it is not known whether the kernel has CONFIG_PCI_P2PDMA"} if {
	gds.of_machine
	gds.asked == true
	not gds.kernel_known
}

missing contains {"fact": "gpus.driver.open", "words": "it is not known whether the NVIDIA driver uses its open kernel modules"} if {
	gds.of_machine
	gds.asked == true
	not gds.driver_known
}

missing contains {"fact": "storage.mounts", "words": "the file systems on the NVMe drives are not known"} if {
	gds.of_machine
	gds.for_nvme
	not gds.mounts_known
}

missing contains {"fact": "host.virtualization", "words": "it is not known whether this is bare metal"} if {
	gds.of_machine
	gds.for_nvme
	not gds.guest_known
}

missing contains {"fact": "host.arch", "words": "the architecture of the processor is not known"} if {
	gds.of_machine
	gds.for_nvme
	not gds.arch_known
}

missing contains {"fact": "pci.devices", "words": "the PCI devices are not known"} if {
	gds.of_machine
	gds.for_nvme
	not gds.tree_known
}

missing contains {"fact": "links.pairs", "words": "the paths between GPUs and NVMe drives are not known"} if {
	gds.of_machine
	gds.for_nvme
	not gds.links_known
}

missing contains {"fact": "pci.devices[].acs", "words": "the ACS of bridges between GPUs and NVMe drives is not known"} if {
	gds.of_machine
	gds.for_nvme
	facts.is_guest == false
	count(gds.hidden) > 0
}

missing contains {"fact": "host.virtualization", "words": "it is not known whether this host passes devices to guests"} if {
	gds.of_machine
	gds.for_nvme
	count(gds.redirecting) > 0
	not gds.passthrough_known
}

missing contains {"fact": "iommu.groups", "words": "it is not known whether the IOMMU translates the addresses of the drives"} if {
	gds.of_machine
	gds.for_nvme
	not facts.is_guest == true
	not input.host.arch == "arm64"
	not gds.iommu_known
}

not_applicable contains "GPUDirect Storage is not set up here" if gds.not_set_up

not_applicable contains "no NVIDIA GPU" if {
	surroundings.no_nvidia
	gds.of_machine
}
