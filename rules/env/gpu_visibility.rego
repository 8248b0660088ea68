# METADATA
# title: A variable hides GPUs
# description: >-
#   CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES choose
#   the GPUs that a program sees, NVIDIA_VISIBLE_DEVICES and
#   NVIDIA_DRIVER_CAPABILITIES those and the libraries that a container is
#   given. The first entry of a list that names no GPU ends it without a word,
#   so that programs run with fewer GPUs than meant, or with none.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables
#     description: CUDA_VISIBLE_DEVICES, and what an invalid entry does
#   - ref: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
#     description: NVIDIA_VISIBLE_DEVICES and NVIDIA_DRIVER_CAPABILITIES
#   - ref: https://rocm.docs.amd.com/en/docs-6.1.2/conceptual/gpu-isolation.html
#     description: ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES, and how they add up
# schemas:
#   - input: schema.facts
# custom:
#   severity: high
#   confidence: likely
#   remedies: [fix-visible-devices, pass-device-nodes, set-driver-capabilities]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.gpu_visibility

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.surroundings

# nvidia_before is the number of NVIDIA GPUs that CUDA would offer without
# CUDA_VISIBLE_DEVICES: what NVML shows here.
nvidia_before := count(surroundings.nvml_gpus) if {
	input.gpus.nvml == "ok"
} else := count(surroundings.nvidia_nodes) if {
	facts.in_container
} else := count(surroundings.of_vendor.nvidia)

amd_before := count(surroundings.usable_amd)

# filters are the variables that choose among the GPUs of a vendor, and how
# many GPUs there are to choose from. HIP honours CUDA's variable as well, and
# chooses from what ROCr's left over.
filters["CUDA_VISIBLE_DEVICES"] := nvidia_before if nvidia_before > 0

filters["CUDA_VISIBLE_DEVICES"] := amd_before if {
	amd_before > 0
	not surroundings.has_nvidia
}

filters["ROCR_VISIBLE_DEVICES"] := amd_before if amd_before > 0

filters["HIP_VISIBLE_DEVICES"] := after_rocr if amd_before > 0

after_rocr := count(kept_of(list_of(facts.env.ROCR_VISIBLE_DEVICES), amd_before)) if {
	facts.env.ROCR_VISIBLE_DEVICES
} else := amd_before

list_of(value) := [trim_space(e) | some e in split(value, ",")]

# entries are those of each filter's list.
entries[name] := list_of(facts.env[name]) if some name, _ in filters

# ends is the place of the first entry of each list that names no GPU.
ends[name] := end_of(entries[name], total) if some name, total in filters

# cut are the lists that end early.
cut contains name if some name, _ in ends

end_of(list, total) := min([i | some i, e in list; not names_gpu(e, total)])

# kept are the entries that count: all before the first that names no GPU.
kept(name) := kept_of(entries[name], filters[name])

kept_of(list, total) := array.slice(list, 0, end_of(list, total)) if {
	is_number(end_of(list, total))
} else := list

# names_gpu is true of an entry that may name one of so many GPUs. A UUID that
# cannot be compared, because none is known, passes; so does a MIG partition.
names_gpu(entry, total) if {
	regex.match(`^\+?[0-9]{1,4}$`, entry)
	to_number(plain(entry)) < total
}

names_gpu(entry, _) if {
	startswith(entry, "GPU-")
	not uuid_unknown(entry)
}

names_gpu(entry, _) if startswith(entry, "MIG-")

# plain is a number without its sign and leading zeros.
plain(entry) := regex.replace(trim_left(entry, "+"), `^0+([0-9])`, "$1")

# uuid_unknown is true of a UUID, or the beginning of one, that no GPU here
# has. Blanked UUIDs are blanked alike everywhere and can be compared.
uuid_unknown(entry) if {
	count(uuids) > 0
	every uuid in uuids {
		not startswith(lower(uuid), lower(entry))
	}
	every g in input.gpus.devices {
		g.uuid
	}
}

uuids := {g.uuid | some g in input.gpus.devices; g.uuid != ""}

# All GPUs are hidden.
findings contains {
	"subject": name,
	"message": sprintf("%s=%q, set %s, hides all %d GPUs: %s", [name, facts.env[name], surroundings.where(facts.variable[name]), filters[name], reason(name)]),
	"confidence": hidden_confidence(name),
	"evidence": array.concat([surroundings.variable_evidence(facts.variable[name])], probe_evidence),
	"params": {"variable": name},
	"remedies": ["fix-visible-devices"],
} if {
	some name, _ in entries
	count(kept(name)) == 0
}

reason(name) := "an empty value, -1 and NoDevFiles mean none" if {
	entries[name][0] in {"", "-1", "NoDevFiles"}
} else := sprintf("its first entry, %q, names no GPU here (%s)", [entries[name][0], numbers_remark(name)])

numbers_remark(name) := sprintf("they have the numbers 0 to %d", [filters[name] - 1]) if {
	filters[name] > 1
} else := "the only one has the number 0"

# The probe obeys the same variables.
hidden_confidence(name) := "confirmed" if {
	name != "ROCR_VISIBLE_DEVICES"
	count(probe_evidence) > 0
} else := "likely"

no_device := 100 # CUDA_ERROR_NO_DEVICE, cuda.h

probe_evidence := [{"fact": "transfers.error_name", "value": "CUDA_ERROR_NO_DEVICE", "source": "cuInit"}] if {
	input.transfers.error_code == no_device
} else := [{"fact": "transfers.devices", "value": [], "source": "cuDeviceGetCount"}] if {
	surroundings.offers_none
} else := []

# A bad entry hides those behind it.
findings contains {
	"subject": name,
	"message": sprintf("%s=%s, set %s: the entry %q names no GPU here (%s), so it and all behind it are dropped: %d of %d remain", [
		name, facts.env[name], surroundings.where(facts.variable[name]), entries[name][ends[name]],
		numbers_remark(name), count(kept(name)), count(entries[name]),
	]),
	"severity": lost_severity(name),
	"evidence": [surroundings.variable_evidence(facts.variable[name])],
	"params": {"variable": name},
	"remedies": ["fix-visible-devices"],
} if {
	some name, _ in entries
	is_number(ends[name])
	count(kept(name)) > 0
}

# A list that ends in -1 was cut on purpose.
lost_severity(name) := "low" if {
	entries[name][ends[name]] in {"-1", ""}
	ends[name] == count(entries[name]) - 1
} else := "medium"

# An entry twice: CUDA then offers no GPU.
findings contains {
	"subject": name,
	"message": sprintf("%s=%s, set %s, names %s twice: CUDA takes such a list for invalid", [name, facts.env[name], surroundings.where(facts.variable[name]), facts.list(twice)]),
	"severity": "high",
	"confidence": "possible",
	"evidence": [surroundings.variable_evidence(facts.variable[name])],
	"params": {"variable": name},
	"remedies": ["fix-visible-devices"],
} if {
	some name, _ in entries
	name != "ROCR_VISIBLE_DEVICES"
	count(surroundings.offered) == 0
	list := kept(name)
	twice := {e | some i, e in list; e in array.slice(list, i + 1, count(list))}
	count(twice) > 0
}

# Fewer than there are, as the variable says: told, so that nobody wonders.
findings contains {
	"subject": name,
	"message": sprintf("%s=%s, set %s, leaves %d of %d GPUs", [name, facts.env[name], surroundings.where(facts.variable[name]), count(kept(name)), filters[name]]),
	"severity": "info",
	"evidence": [surroundings.variable_evidence(facts.variable[name])],
	"params": {"variable": name},
	"remedies": ["fix-visible-devices"],
} if {
	some name, _ in entries
	count(kept(name)) > 0
	count(kept(name)) < filters[name]
	not name in cut
	not startswith(entries[name][0], "MIG-")
}

# ROCr's filter and HIP's one after the other: the second counts anew.
findings contains {
	"subject": "HIP_VISIBLE_DEVICES",
	"message": sprintf("ROCR_VISIBLE_DEVICES=%s and HIP_VISIBLE_DEVICES=%s are both set: HIP counts anew among the %d GPUs that ROCr leaves. It is safer to set one of them", [facts.env.ROCR_VISIBLE_DEVICES, facts.env.HIP_VISIBLE_DEVICES, after_rocr]),
	"severity": "low",
	"evidence": [surroundings.variable_evidence(facts.variable[name]) |
		some name in ["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"]
	],
	"params": {"variable": "HIP_VISIBLE_DEVICES"},
	"remedies": ["fix-visible-devices"],
} if {
	facts.env.ROCR_VISIBLE_DEVICES != ""
	facts.env.HIP_VISIBLE_DEVICES != ""
	after_rocr < amd_before
	not "HIP_VISIBLE_DEVICES" in cut
}

# The container was asked for without GPUs. Where nodes are there all the same,
# another way (CDI, a device plugin) brought them, and the value says nothing.
findings contains {
	"subject": "NVIDIA_VISIBLE_DEVICES",
	"message": sprintf("NVIDIA_VISIBLE_DEVICES=%q, set %s, asks the container toolkit for no GPU; this machine has %d", [facts.env.NVIDIA_VISIBLE_DEVICES, surroundings.where(facts.variable.NVIDIA_VISIBLE_DEVICES), surroundings.on_host]),
	"evidence": [
		surroundings.variable_evidence(facts.variable.NVIDIA_VISIBLE_DEVICES),
		{"fact": "container.device_nodes", "value": [], "source": "/dev"},
	],
	"params": {"variable": "NVIDIA_VISIBLE_DEVICES"},
	"remedies": ["pass-device-nodes"],
} if {
	facts.in_container
	lower(facts.env.NVIDIA_VISIBLE_DEVICES) in {"", "void", "none"}
	count(surroundings.nvidia_nodes) == 0
	surroundings.on_host > 0
	host_has_nvidia
}

host_has_nvidia if surroundings.has_nvidia

host_has_nvidia if count(surroundings.driver_devices) > 0

# Capabilities that leave out what CUDA and NVML need.
findings contains {
	"subject": "NVIDIA_DRIVER_CAPABILITIES",
	"message": sprintf("NVIDIA_DRIVER_CAPABILITIES=%s, set %s, leaves out %s: the container toolkit then does not bring %s, and none is here", [
		facts.env.NVIDIA_DRIVER_CAPABILITIES,
		surroundings.where(facts.variable.NVIDIA_DRIVER_CAPABILITIES), capability, library,
	]),
	"evidence": [
		surroundings.variable_evidence(facts.variable.NVIDIA_DRIVER_CAPABILITIES),
		{"fact": "libraries.files", "value": [], "source": sprintf("search for %s", [library])},
	],
	"params": {"variable": "NVIDIA_DRIVER_CAPABILITIES"},
	"remedies": ["set-driver-capabilities"],
} if {
	facts.in_container
	count(surroundings.nvidia_nodes) > 0
	given := {trim_space(c) | some c in split(lower(facts.env.NVIDIA_DRIVER_CAPABILITIES), ",")} - {""}
	count(given) > 0
	some capability, library in {"compute": "libcuda", "utility": "libnvidia-ml"}
	not capability in given
	not "all" in given
	is_array(input.libraries.files)
	not works(library)
}

works(kind) if {
	some l in input.libraries.files
	l.kind == kind
	not l.stub
	not l.empty
	not l.compat
}

# NVML shows GPUs, CUDA offers none, and no variable explains it.
findings contains {
	"subject": "CUDA",
	"message": sprintf("NVML shows %d GPUs and CUDA offers none, though no variable hides them: a missing /dev/nvidia-uvm, a library of another driver or a device cgroup does that", [nvidia_before]),
	"confidence": "confirmed",
	"evidence": array.concat([{"fact": "gpus.devices", "value": nvidia_before, "source": "NVML"}], probe_evidence),
	"remedies": ["pass-device-nodes", "fix-visible-devices"],
	"params": {"variable": "CUDA_VISIBLE_DEVICES", "nodes": ["/dev/nvidia-uvm"]},
} if {
	input.gpus.nvml == "ok"
	nvidia_before > 0
	count(probe_evidence) > 0
	not facts.env.CUDA_VISIBLE_DEVICES
}

missing contains "env: variables were not read" if not input.env

missing contains "gpus: it is not known whether there are GPUs" if {
	not input.gpus
	not input.container
}

not_applicable contains "no GPU on this machine" if {
	count(facts.gpus) == 0
	count(surroundings.driver_devices) == 0
}
