# METADATA
# title: GPUDirect Storage
# description: >-
#   What shows that GPUDirect Storage (GDS) is set up, which ways it has to reach
#   drives, and what stands in their way: read from the machine or from gdscheck.
package gpudoctor.lib.gds

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.surroundings

# told is true of the words of gdscheck, of_machine of what was read from the machine.
told if input.storage.gds.line > 0

of_machine if input.storage.gds.line == 0

source := sprintf("%s:%d", [input.storage.gds.source, input.storage.gds.line]) if {
	told
} else := input.storage.gds.source

properties := input.storage.gds.properties

# on is the value of a property that is true or false: without it, false is the default of all that
# are read here (cufile.json of CUDA 12.8). It is undefined if the settings are not known.
on(name) := object.get(properties, name, "false") == "true"

asked := on("properties.use_pci_p2pdma")

default forced := false

forced := on("properties.force_compat_mode")

# set_by says where a setting comes from.
set_by(variable) := sprintf(", set by %s", [variable]) if {
	variable in input.storage.gds.variables
} else := sprintf(" in %s", [input.storage.gds.config]) if {
	input.storage.gds.config != ""
} else := ""

property(name) := {"fact": sprintf("storage.gds.properties[%s]", [name]), "value": properties[name], "source": properties_source}

properties_source := input.storage.gds.config if {
	input.storage.gds.config != ""
} else := source

# not_drivers are lines of gdscheck about RDMA libraries, among those about storage.
not_drivers := {"Mellanox PeerDirect", "rdma library", "rdma devices", "rdma_device_status", "Userspace RDMA", "DynamicRouting", "Dynamic Routing"}

supported := {name | some name, value in input.storage.gds.drivers; value == "supported"} - not_drivers

unsupported := {name | some name, value in input.storage.gds.drivers; value == "unsupported"} - not_drivers

driver_evidence := [{"fact": sprintf("storage.gds.drivers[%s]", [name]), "value": "unsupported", "source": drivers_source} | some name in sort(unsupported)]

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
	of_machine
	count(obstacles) == 0
	not surroundings.no_nvidia
}

# obstacles are what P2PDMA lacks (GDS Support for NVMe Drives Using Linux PCI P2PDMA Support).
obstacles contains "the kernel was built without CONFIG_PCI_P2PDMA" if input.storage.gds.kernel_p2pdma == false

obstacles contains "the NVIDIA driver uses its closed kernel modules" if input.gpus.driver.open == false

obstacle_evidence contains {"fact": "storage.gds.kernel_p2pdma", "value": false, "source": "the kernel's configuration"} if {
	input.storage.gds.kernel_p2pdma == false
}

obstacle_evidence contains {"fact": "gpus.driver.open", "value": false, "source": "/proc/driver/nvidia/version"} if {
	input.gpus.driver.open == false
}

# system are folders of the system, where no job reads its data with GDS.
system := {"/", "/home", "/opt", "/root", "/srv", "/tmp", "/var"}

# data_mounts are the file systems for data on NVMe drives, fit_mounts those that GDS supports.
data_mounts contains m if {
	some m in input.storage.mounts
	count(m.drives) > 0
	not m.path in system
	not startswith(m.path, "/var/")
}

fit_mounts contains m if {
	some m in data_mounts
	m.type == "xfs"
}

fit_mounts contains m if {
	some m in data_mounts
	m.type == "ext4"
	object.get(m, "data", "ordered") == "ordered"
}

kind(m) := sprintf("%s with data=%s", [m.type, m.data]) if {
	m.data != ""
} else := m.type

# translated are the NVIDIA GPUs and NVMe drives whose addresses the IOMMU translates, on bare metal with
# a processor of x86: on ARM, NVIDIA supports it.
translated contains d.address if {
	input.host.arch == "amd64"
	facts.is_guest == false
	some d in input.pci.devices
	d.kind == "nvme"
	pci.translated(d.address)
}

translated contains g.address if {
	input.host.arch == "amd64"
	facts.is_guest == false
	some g in facts.named
	g.vendor == "nvidia"
	pci.translated(g.address)
}

# redirecting are the bridges between a GPU and an NVMe drive below one switch that redirect their traffic.
redirecting contains bridge if {
	facts.is_guest == false
	some p in facts.pairs
	p.kind == "gpu-nvme"
	p.common_bridge != ""
	some bridge in pci.redirecting(p)
}

# not_set_up is true where it is known that nobody set up GDS: cuFile is part of the CUDA toolkit, and so
# is its file with the defaults.
not_set_up if {
	of_machine
	input.storage.gds.loaded == false
	asked == false
	forced == false
}

mounts_known if {
	is_array(input.storage.mounts)
	every m in input.storage.mounts {
		placed(m)
	}
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

# What is known of the rest.
loaded_known if is_boolean(input.storage.gds.loaded)

properties_known if is_object(properties)

drivers_known if is_object(input.storage.gds.drivers)

kernel_known if is_boolean(input.storage.gds.kernel_p2pdma)

driver_known if is_boolean(input.gpus.driver.open)

guest_known if is_boolean(facts.is_guest)

arch_known if input.host.arch != ""

tree_known if is_array(input.pci.devices)

links_known if is_array(input.links.pairs)

passthrough_known if is_boolean(facts.is_passthrough_host)

# hidden are the bridges between a GPU and an NVMe drive below one switch whose ACS could not be read.
hidden contains bridge if {
	some p in facts.pairs
	p.kind == "gpu-nvme"
	p.common_bridge != ""
	some bridge in pci.hidden(p)
}
