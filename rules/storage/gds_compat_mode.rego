# METADATA
# title: GPUDirect Storage is not used
# description: >-
#   GPUDirect Storage is set up, but cuFile reads and writes through host memory (compatibility mode): slower, and without
#   an error. It needs the module nvidia_fs with a storage driver that registers with it, or PCI P2PDMA of the kernel.
# related_resources:
#   - ref: https://docs.nvidia.com/gpudirect-storage/api-reference-guide/topics/cufile-compatibility.html
#     description: When cuFile uses the compatibility mode
# custom:
#   severity: low
#   confidence: likely
#   cause: other
#   needs: [storage.gds]
#   remedies: [load-nvidia-fs, enable-gds-p2pdma, unset-gds-compat-mode]
#   profiles: [training]
#   first_of: [forced > impossible]
#   since: "0.2"
#   grades:
#     forced: "cuFile is set to use host memory for all reads and writes (properties.force_compat_mode)"
#     impossible: "cuFile reads and writes through host memory: {reasons}"
package gpudoctor.rules.gds_compat_mode

import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

findings contains object.union({"subject": "GPUDirect Storage", "remedies": ["load-nvidia-fs", "enable-gds-p2pdma"]}, s) if {
	not surroundings.no_nvidia
	some s in signs
}

gds := input.storage.gds

shown(field) := {"fact": sprintf("storage.gds.%s", [field]), "value": gds[field], "source": logs.at(gds)}

signs contains {
	"id": "forced",
	"evidence": [shown(field) | some field in ["properties", "config", "variables"]; gds[field]],
	"confidence": "confirmed",
	"remedies": ["unset-gds-compat-mode"],
} if is_set("properties.force_compat_mode")

# False is the default of the properties that are read here (cufile.json of CUDA 12.8).
is_set(name) := object.get(gds.properties, name, "false") == "true"

signs contains {
	"id": "impossible",
	"about": {"reasons": [nvidia_fs[0], p2pdma[0]]},
	"evidence": [nvidia_fs[1], p2pdma[1]],
}

# nvidia_fs and p2pdma say what these ways lack. Every gdscheck lists NVMe and NFS: a part of its list is not the whole.
nvidia_fs := ["nvidia_fs is not loaded", shown("loaded")] if {
	gds.loaded == false
} else := ["no storage driver is registered with nvidia_fs (those of MLNX_OFED and DOCA-OFED do)", shown("drivers")] if {
	object.filter(gds.drivers, ["NVMe", "NFS"]) == {"NVMe": "unsupported", "NFS": "unsupported"}
	count(supported) == 0
}

p2pdma := ["the kernel was built without CONFIG_PCI_P2PDMA", shown("kernel_p2pdma")] if {
	gds.kernel_p2pdma == false
} else := ["the NVIDIA driver uses its closed kernel modules", closed] if {
	is_set("properties.use_pci_p2pdma")
	input.gpus.driver.open == false
} else := ["cuFile is not set to use PCI P2PDMA", shown("properties")] if {
	is_set("properties.use_pci_p2pdma") == false
	object.get(gds, "loaded", true) # Otherwise nobody set up GDS.
}

closed := {"fact": "gpus.driver.open", "value": false, "source": "/proc/driver/nvidia/version"}

# gdscheck has lines about RDMA libraries among those about storage.
supported := {name | some name, "supported" in gds.drivers; not regex.match(`(?i)rdma|peerdirect|dynamic ?routing`, name)}

missing contains {"fact": "storage.gds.drivers", "words": "only a part of the list of storage drivers is known"} if {
	count(object.filter(gds.drivers, ["NVMe", "NFS"])) < 2
	count(supported) == 0
}

asks contains "storage.gds.loaded" if gds.line == 0
asks contains "storage.gds.properties" if gds.line == 0
asks contains "storage.gds.drivers" if object.get(gds, "loaded", true)
asks contains "storage.gds.kernel_p2pdma" if p2pdma_needed
asks contains "gpus.driver.open" if p2pdma_needed

p2pdma_needed if {
	is_set("properties.use_pci_p2pdma")
	count(supported) == 0
}

not_applicable contains "GPUDirect Storage is not set up here" if {
	gds.loaded == false
	{is_set("properties.use_pci_p2pdma"), is_set("properties.force_compat_mode")} == {false}
}
