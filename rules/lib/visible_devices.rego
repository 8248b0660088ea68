# Which GPUs CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES leave visible, and how many of them a
# job's ranks request.
package gpudoctor.lib.visible_devices

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

choosers := ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"]

chosen := {name | some name in choosers; facts.env[name]}

evidence := [surroundings.variable_evidence(facts.variable[name]) | some name in choosers; name in chosen]

# chooser is the variable that chooses in this job, or the usual one.
chooser := min(chosen) if {
	count(chosen) > 0
} else := "HIP_VISIBLE_DEVICES" if {
	amd.present
} else := "CUDA_VISIBLE_DEVICES"

# nvidia_before is the number of NVIDIA GPUs that CUDA would offer without CUDA_VISIBLE_DEVICES: what NVML shows here.
nvidia_before := count(surroundings.nvml_gpus) if {
	input.gpus.nvml == "ok"
} else := count(surroundings.nvidia_nodes) if {
	facts.in_container
} else := count(surroundings.of_vendor.nvidia)

amd_before := count(surroundings.usable_amd)

# filters are the variables that choose among the GPUs of a vendor, and how many GPUs there are to choose from. HIP
# honours CUDA's variable as well, and chooses from what ROCr's left over.
filters["CUDA_VISIBLE_DEVICES"] := nvidia_before if nvidia_before > 0

filters["CUDA_VISIBLE_DEVICES"] := after_rocr if {
	amd_before > 0
	not surroundings.has_nvidia
}

filters["ROCR_VISIBLE_DEVICES"] := amd_before if amd_before > 0
filters["HIP_VISIBLE_DEVICES"] := after_rocr if amd_before > 0

after_rocr := count(kept_of(list_of(facts.env.ROCR_VISIBLE_DEVICES), amd_before)) if {
	facts.env.ROCR_VISIBLE_DEVICES
} else := amd_before

list_of(value) := [trim_space(e) | some e in split(value, ",")]

entries[name] := list_of(facts.env[name]) if some name, _ in filters

# kept are the entries that count: all before the first that names no GPU.
kept[name] := kept_of(list, filters[name]) if some name, list in entries

kept_of(list, total) := array.slice(list, 0, min(array.concat([count(list)], [i | some i, e in list; not names_gpu(e, total)])))

# names_gpu is true of an entry that may name one of so many GPUs. A UUID that cannot be compared, because none is
# known, passes; so does a MIG partition.
names_gpu(entry, total) if {
	regex.match(`^\+?[0-9]{1,4}$`, entry)
	to_number(entry) < total
}

names_gpu(entry, _) if {
	startswith(entry, "GPU-")
	not uuid_unknown(entry)
}

names_gpu(entry, _) if startswith(entry, "MIG-")

# uuid_unknown is true of a UUID, or the beginning of one, that no GPU here has. Blanked UUIDs are blanked alike
# everywhere and can be compared.
uuid_unknown(entry) if {
	count(input.gpus.devices) > 0
	every g in input.gpus.devices {
		g.uuid != ""
		not startswith(lower(g.uuid), lower(entry))
	}
}

none := {"", "-1", "NoDevFiles"}

# alone is a list with one GPU in it.
alone := min({name |
	some name in chosen
	regex.match(`^(GPU-)?[0-9a-fA-F-]+$`, facts.env[name])
})

# instances is true if several GPUs in the list are MIG instances of one: rule mig-mode reports these.
instances if input.gpus.devices[_].mig == true
instances if regex.match("MIG-.*MIG-", facts.env[chosen[_]])

# ranks are how many processes of one node the job starts, each with a GPU of its own.
ranks := max([n |
	some l in logs.launches
	some key in ["processes", "tensor_parallel"]
	n := l[key]
	is_number(n)
])
