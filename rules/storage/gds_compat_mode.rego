# METADATA
# title: GPUDirect Storage is not used or slow
# description: >-
#   GPUDirect Storage (GDS) is set up here, but cuFile cannot use it and reads and writes through host memory instead
#   (compatibility mode): slower, with a load on the processors, and without an error. It needs the module nvidia_fs
#   with a storage driver that registers with it, or PCI P2PDMA of the kernel; local drives need ext4 with ordered
#   journaling, or XFS. A translating IOMMU, or ACS that redirects, slows it down. That cuFile and its cufile.json are
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
#   first_of: [forced > impossible > unregistered > file-system > tried]
#   since: "0.2"
package gpudoctor.rules.gds_compat_mode

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpudirect
import data.gpudoctor.lib.iommu
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.surroundings

findings contains object.union({"subject": "GPUDirect Storage", "remedies": ["load-nvidia-fs", "enable-gds-p2pdma"]}, s) if {
	some s in signs
}

signs contains {
	"id": "forced",
	"message": "cuFile is set to use host memory for all reads and writes (properties.force_compat_mode)",
	"evidence": property("properties.force_compat_mode", "CUFILE_FORCE_COMPAT_MODE"),
	"confidence": "confirmed",
	"remedies": ["unset-gds-compat-mode"],
} if {
	forced
	not surroundings.no_nvidia
}

signs contains {
	"id": "impossible",
	"message": sprintf("cuFile is set to use PCI P2PDMA (properties.use_pci_p2pdma), but %s, and nvidia_fs is not loaded: it reads and writes through host memory", [concat(", ", sort(object.keys(obstacles)))]),
	"evidence": array.concat(property("properties.use_pci_p2pdma", "CUFILE_USE_PCIP2PDMA"), [e | some e in obstacles]),
	"severity": "medium",
} if {
	asked
	gds.loaded == false
	count(obstacles) > 0
	not surroundings.no_nvidia
	count(gpudirect.direct) == 0
}

signs contains {
	"id": "unregistered",
	"message": "No storage here supports GPUDirect Storage: no storage driver is registered with nvidia_fs, so cuFile reads and writes through host memory. The drivers of the Linux kernel do not register, those of MLNX_OFED and DOCA-OFED do",
	"evidence": [{"fact": sprintf("storage.gds.drivers[%s]", [name]), "value": "unsupported", "source": drivers_source} | some name in sort(unsupported)],
} if {
	count(unsupported) > 0
	count(supported) == 0
	count(gpudirect.direct) == 0
	list_whole
}

# Every version of gdscheck lists NVMe and NFS, so that a part of its list is not taken for the whole.
list_whole if {
	told
	count({"NVMe", "NFS"} - unsupported) == 0
}

list_whole if {
	gds.loaded == true
	asked == false
}

signs contains {
	"id": "tried",
	"message": sprintf("cuFile reads from %s only through host memory (compatibility mode): without it, %s", [facts.list({r.mount | some r in gpudirect.staged}), facts.list({gpudirect.told(r) | some r in gpudirect.staged})]),
	"evidence": [gpudirect.read_evidence(r, way) | some r in gpudirect.staged; some way in ["direct", "configured"]],
} if count(gpudirect.staged) > 0

signs contains {
	"id": "corrupt",
	"subject": c.mount,
	"affects": [gpu | gpu := c.read.gpu; facts.is_address(gpu)],
	"message": sprintf("cuFile reports that it read a file of %s into the memory of GPU %s, but other data arrived there", [c.mount, c.read.gpu]),
	"evidence": [gpudirect.read_evidence(c.read, c.way)],
	"severity": "high",
	"confidence": "confirmed",
	"remedies": ["other"],
} if some c in gpudirect.corrupt

signs contains {
	"id": "file-system",
	"message": sprintf("GPUDirect Storage is set up for NVMe drives, but no file system for data on them is one that it supports (ext4 with ordered journaling, XFS): %s", [facts.list({sprintf("%s is %s%s", [m.path, m.type, concat("", [sprintf(" with data=%s", [m.data]) | m.data != ""])]) | some m in data_mounts})]),
	"evidence": [{"fact": sprintf("storage.mounts[%s].type", [m.path]), "value": m.type, "source": "/proc/self/mountinfo"} | some m in data_mounts],
	"confidence": "possible",
	"remedies": ["use-gds-file-system"],
} if {
	for_nvme
	count(data_mounts) > 0
	count(fit_mounts) == 0
	count(supported - {"NVMe", "NVMe P2PDMA"}) == 0
}

signs contains {
	"id": "iommu",
	"message": "The IOMMU translates addresses, with which NVIDIA does not support GPUDirect Storage: transfers may be slow or fail",
	"evidence": [translation],
	"confidence": "possible",
	"remedies": ["iommu-pt"],
	"params": iommu.params,
}

translation := {"fact": "iommu.groups", "value": sort(translated), "source": "/sys/kernel/iommu_groups"} if {
	for_nvme
	count(translated) > 0
} else := {"fact": "storage.gds.iommu", "value": "enabled", "source": source} if {
	told
	gds.iommu == "enabled"
}

signs contains {
	"id": "acs",
	"message": sprintf("ACS redirects the traffic between GPUs and NVMe drives below one switch (%s), so that it goes through the processor", [facts.few(redirecting)]),
	"evidence": [{"fact": sprintf("pci.devices[%s].acs.control", [bridge]), "value": sort(pci.redirects(bridge)), "source": pci.port_at(bridge)} | some bridge in redirecting],
	"remedies": ["disable-acs"],
	"params": {"bridges": sort(redirecting), "bridge": min(redirecting)},
} if {
	for_nvme
	count(redirecting) > 0
	facts.is_passthrough_host == false
}

missing contains {"fact": "gpudirect.reads", "words": "cuFile refused to read without the compatibility mode, and it is not known why, or whether it reads with it"} if {
	count(gpudirect.unclear) > 0
}

asks contains "storage.gds.loaded" if machine
asks contains "storage.gds.properties" if machine
asks contains "storage.gds.kernel_p2pdma" if p2pdma_wanted
asks contains "gpus.driver.open" if p2pdma_wanted
asks contains "storage.gds.drivers" if machine.loaded
asks contains "host.virtualization" if drives_here
asks contains "host.arch" if drives_here
asks contains "pci.devices" if drives_here
asks contains "links.pairs" if drives_here
asks contains "storage.mounts" if drives_here
asks contains "host.virtualization.passthrough_host" if count(redirecting) > 0

p2pdma_wanted if {
	machine
	asked
}

drives_here if {
	machine
	for_nvme
}

missing contains {"fact": "storage.gds.drivers", "words": "gdscheck's list of drivers (DRIVER CONFIGURATION) is not in the input"} if {
	told
	count(supported) == 0
}

missing contains {"fact": "storage.mounts", "words": "the file systems on the NVMe drives are not known"} if {
	drives_here
	some m in input.storage.mounts
	not placed(m)
}

missing contains {"fact": "pci.devices[].acs", "words": "the ACS of bridges between GPUs and NVMe drives is not known"} if {
	drives_here
	some p in below_switch
	count(pci.hidden(p)) > 0
}

missing contains {"fact": "iommu.groups", "words": "it is not known whether the IOMMU translates the addresses of the drives"} if {
	drives_here
	not facts.is_guest == true
	not input.host.arch == "arm64"
	not iommu_known
}

not_applicable contains "no NVIDIA GPU" if {
	surroundings.no_nvidia
	machine
}

gds := input.storage.gds

# told is true of the words of gdscheck, machine is what was read from the machine.
told if gds.line > 0

machine := gds if gds.line == 0

source := logs.at(gds)

# on is the value of a property that is true or false: without it, false is the default of all that
# are read here (cufile.json of CUDA 12.8). It is undefined if the settings are not known.
on(name) := object.get(gds.properties, name, "false") == "true"

asked := on("properties.use_pci_p2pdma")

forced := on("properties.force_compat_mode")

property(name, variable) := array.concat(
	[{"fact": sprintf("storage.gds.properties[%s]", [name]), "value": gds.properties[name], "source": place}],
	[{"fact": "storage.gds.variables", "value": variable, "source": source} | variable in gds.variables],
) if place := [p | some p in [object.get(gds, "config", ""), source]; p != ""][0]

# not_drivers are lines of gdscheck about RDMA libraries, among those about storage.
not_drivers := {"Mellanox PeerDirect", "rdma library", "rdma devices", "rdma_device_status", "Userspace RDMA", "DynamicRouting", "Dynamic Routing"}

supported := {name | some name, "supported" in gds.drivers} - not_drivers

unsupported := {name | some name, "unsupported" in gds.drivers} - not_drivers

drivers_source := source if {
	told
} else := "/proc/driver/nvidia-fs/modules"

# for_nvme is true where GDS can reach NVMe drives, as far as it is set up.
for_nvme if {
	count(supported & {"NVMe", "NVMe P2PDMA"}) > 0
	not surroundings.no_nvidia
}

for_nvme if {
	asked == true
	machine
	count(obstacles) == 0
	not surroundings.no_nvidia
}

# obstacles are what P2PDMA lacks (GDS Support for NVMe Drives Using Linux PCI P2PDMA Support).
obstacles["the kernel was built without CONFIG_PCI_P2PDMA"] := {"fact": "storage.gds.kernel_p2pdma", "value": false, "source": "the kernel's configuration"} if {
	gds.kernel_p2pdma == false
}

obstacles["the NVIDIA driver uses its closed kernel modules"] := {"fact": "gpus.driver.open", "value": false, "source": "/proc/driver/nvidia/version"} if {
	input.gpus.driver.open == false
}

# data_mounts are the file systems for data on NVMe drives, fit_mounts those that GDS supports.
data_mounts contains m if {
	some m in input.storage.mounts
	count(m.drives) > 0
	not regex.match(`^/(|home|opt|root|srv|tmp|var(/.*)?)$`, m.path) # No job reads its data there with GDS.
}

fit_mounts contains m if {
	some m in data_mounts
	m.type in {"ext4", "xfs"}
	object.get(m, "data", "") in {"", "ordered"} # Ordered is the default of ext4, and XFS has no other.
}

# translated are the NVIDIA GPUs and NVMe drives whose addresses the IOMMU translates, on bare metal with
# a processor of x86: on ARM, NVIDIA supports it.
translated contains address if {
	input.host.arch == "amd64"
	facts.is_guest == false
	drives := {d.address | some d in input.pci.devices; d.kind == "nvme"}
	some address in (drives | {g.address | some g in facts.named; g.vendor == "nvidia"})
	pci.translated(address)
}

# below_switch are a GPU and an NVMe drive below one switch, redirecting the bridges between them that redirect their
# traffic.
below_switch contains p if {
	facts.is_guest == false
	some p in facts.pairs
	p.kind == "gpu-nvme"
	p.common_bridge != ""
}

redirecting := {bridge | some p in below_switch; some bridge in pci.redirecting(p)}

# Nobody set it up: cuFile is part of the CUDA toolkit, and so is its file with the defaults.
not_applicable contains "GPUDirect Storage is not set up here" if {
	machine.loaded == false
	asked == false
	forced == false
}

placed(m) if m.network == true
placed(m) if is_array(m.drives)

# Of file systems with devices of their own (ZFS), no file shows the drives.
placed(m) if object.get(m, "device", "") == ""

iommu_known if {
	is_array(input.iommu.groups)
	every g in input.iommu.groups {
		g.type != ""
	}
}

iommu_known if input.iommu.mode == "off"
