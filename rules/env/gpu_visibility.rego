# METADATA
# title: A variable hides GPUs
# description: >-
#   CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES choose
#   the GPUs that a program sees, NVIDIA_VISIBLE_DEVICES and
#   NVIDIA_DRIVER_CAPABILITIES those and the libraries that a container is
#   given. The first entry of a list that names no GPU ends it without a word,
#   so that programs run with fewer GPUs than meant, or with none. In logs this
#   shows as «invalid device ordinal», as no GPU at all, or as two ranks on one
#   GPU. What is said of AMD GPUs was not tried on AMD hardware.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables
#     description: CUDA_VISIBLE_DEVICES, and what an invalid entry does
#   - ref: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
#     description: NVIDIA_VISIBLE_DEVICES and NVIDIA_DRIVER_CAPABILITIES
#   - ref: https://rocm.docs.amd.com/en/docs-6.1.2/conceptual/gpu-isolation.html
#     description: ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES, and how they add up
#   - ref: https://github.com/vllm-project/vllm/issues/12572
#     description: CUDA_VISIBLE_DEVICES next to ROCR_VISIBLE_DEVICES, invalid device ordinal
#   - ref: https://github.com/lemonade-sdk/llamacpp-rocm/issues/96
#     description: A program crashes on the integrated GPU next to a card
# schemas:
#   - input: schema.facts
# custom:
#   severity: high
#   confidence: likely
#   needs:
#     - env.variables
#     - container.inside
#     - libraries.files
#     - [gpus.devices, container.device_nodes]
#   remedies: [fix-visible-devices, unset-env, fix-application, pass-device-nodes, set-driver-capabilities, update-bios, nccl-p2p-disable]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.gpu_visibility

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.gpu_models

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
filters.CUDA_VISIBLE_DEVICES := nvidia_before if nvidia_before > 0

filters.CUDA_VISIBLE_DEVICES := after_rocr if {
	amd_before > 0
	not surroundings.has_nvidia
}

filters.ROCR_VISIBLE_DEVICES := amd_before if amd_before > 0

filters.HIP_VISIBLE_DEVICES := after_rocr if amd_before > 0

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

# refused are messages that a program could not use a GPU that it asked for, or
# found none.
refused := logs.messages({
	"hip-invalid-device", "cuda-invalid-device", "hip-no-device", "cuda-no-device", "torch-sees-no-gpu", "visible-devices-conflict", "too-few-gpus",
})

# rocr_entries are what ROCr leaves at most, whatever the machine has: as many
# GPUs as its list has entries.
rocr_entries := list_of(facts.env.ROCR_VISIBLE_DEVICES) if facts.env.ROCR_VISIBLE_DEVICES != ""

# stacked are the lists that choose once more among the GPUs that ROCr's list
# left, and name a number that is not among them. This needs no knowledge of the
# machine.
stacked[name] := beyond if {
	some name in ["HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"]
	amd_before == 0
	not surroundings.has_nvidia
	beyond := {e |
		some e in list_of(facts.env[name])
		regex.match(`^[0-9]{1,4}$`, e)
		to_number(plain(e)) >= count(rocr_entries)
	}
	count(beyond) > 0
}

findings contains object.union(
	{
		"subject": name,
		"message": sprintf("ROCR_VISIBLE_DEVICES=%s leaves %d GPUs, which then have the numbers from 0 on, and %s=%s chooses among these: %s names none%s. Set one of the two", [
			facts.env.ROCR_VISIBLE_DEVICES, count(rocr_entries), name, facts.env[name], facts.list(beyond), told_refusal,
		]),
		"severity": stacked_severity,
		"confidence": "likely",
		"evidence": array.concat(
			[surroundings.variable_evidence(facts.variable[n]) | some n in ["ROCR_VISIBLE_DEVICES", name]],
			logs.all_evidence(refused),
		),
		"params": {"variable": redundant(name)},
		"remedies": ["fix-visible-devices", "unset-env"],
	},
	ordered(refused),
) if {
	some name, beyond in stacked
}

# redundant is the list to take away: HIP's where it repeats ROCr's, ROCr's
# where another was meant to choose.
redundant(name) := name if {
	facts.env[name] == facts.env.ROCR_VISIBLE_DEVICES
} else := "ROCR_VISIBLE_DEVICES"

default told_refusal := ""

told_refusal := ", and a program was refused one" if count(refused) > 0

default stacked_severity := "high"

stacked_severity := "critical" if count(refused) > 0

# ordered is the place of the first of some messages, where there are any.
ordered(set_) := {"order": logs.first(set_).order} if {
	count(set_) > 0
} else := {}

# explained is true where a variable, by what is known of the GPUs, accounts for
# what programs complained of.
explained if count(stacked) > 0

explained if {
	some name, _ in entries
	is_number(ends[name])
}

# A program was refused a GPU, and a list in force hides some: the two belong
# together.
findings contains {
	"subject": "GPUs",
	"message": sprintf("A program was refused a GPU (%s), and %s=%s, set %s, ends before the list does", [words(logs.first(refused)), name, facts.env[name], surroundings.where(facts.variable[name])]),
	"severity": "critical",
	"confidence": "likely",
	"evidence": array.concat([surroundings.variable_evidence(facts.variable[name])], logs.all_evidence(refused)),
	"order": logs.first(refused).order,
	"params": {"variable": name},
	"remedies": ["fix-visible-devices", "unset-env"],
} if {
	count(refused) > 0
	name := sort([n | some n, _ in entries; is_number(ends[n])])[0]
}

words(m) := trim_suffix(substring(m.text, 0, 120), ".")

# The variables contradict each other, as the program itself says.
findings contains {
	"subject": "GPUs",
	"message": sprintf("The program refuses the way in which the variables choose GPUs: %s", [words(logs.first(conflicts))]),
	"severity": "critical",
	"confidence": "confirmed",
	"evidence": array.concat(logs.all_evidence(conflicts), chosen_evidence),
	"order": logs.first(conflicts).order,
	"params": {"variable": "ROCR_VISIBLE_DEVICES"},
	"remedies": ["fix-visible-devices", "unset-env"],
} if {
	count(conflicts) > 0
	not explained
}

conflicts := logs.messages({"visible-devices-conflict"})

choosers := ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"]

chosen_evidence := [surroundings.variable_evidence(facts.variable[name]) | some name in choosers; facts.env[name]]

# Two ranks on one GPU: NCCL and RCCL refuse that.
duplicates := {m |
	some m in input.logs.messages
	regex.match(`Duplicate GPU detected|(?i:multiple ranks (are|detected) using the same GPU)`, m.text)
}

findings contains {
	"subject": "GPUs",
	"message": sprintf("Two ranks of one communicator use the same GPU: %s. Each rank has to choose its own (its local rank), or be given another list of visible GPUs%s", [duplicate_words, one_visible]),
	"severity": "critical",
	"confidence": "confirmed",
	"evidence": array.concat(logs.all_evidence(duplicates), chosen_evidence),
	"order": logs.first(duplicates).order,
	"params": {"variable": "CUDA_VISIBLE_DEVICES"},
	"remedies": ["fix-visible-devices", "fix-application"],
} if {
	count(duplicates) > 0
	not slices
}

# slices is true where what looks like one GPU are MIG instances of one: rule
# mig-mode tells of these.
slices if {
	some g in input.gpus.devices
	g.mig == true
}

slices if {
	some n in choosers
	count(regex.find_n(`MIG-`, facts.env[n], -1)) > 1
}

# wordless are invalid usages of NCCL of which PyTorch does not repeat the reason
# (NCCL before 2.13): two ranks on one GPU is what it mostly was (pytorch issues
# 47885 and 50921).
wordless := {m |
	some m in logs.by_id["nccl-invalid-usage"]
	count(duplicates) == 0
	not slices
	not told_otherwise
}

findings contains {
	"subject": "GPUs",
	"message": "NCCL calls its use invalid, and the reason is not repeated here. Mostly it is two ranks on one GPU: the same *_VISIBLE_DEVICES for both, or no choice of a GPU by local rank. NCCL_DEBUG=WARN makes NCCL say it",
	"severity": "high",
	"confidence": "possible",
	"evidence": array.concat(logs.all_evidence(wordless), chosen_evidence),
	"order": logs.first(wordless).order,
	"params": {"variable": chooser},
	"remedies": ["fix-visible-devices", "fix-application"],
} if {
	count(wordless) > 0
}

# beyond are GPUs that a peer named and this process does not see: NCCL's direct
# way opens the memory of a peer's GPU, which must be visible to both.
beyond_sight contains m if {
	some m in logs.by_id["nccl-cuda-invalid-device"]
	not regex.match(`(?:^|/)(?:shm\.cc|alloc\.h)$`, object.get(m.fields, "file", ""))
}

beyond_sight contains m if {
	some m in logs.by_id["nccl-ipc-open-failed"]
	m.fields.error in {"10", "101"}
}

beyond_sight contains m if {
	some m in logs.by_id["openmpi-cuda-ipc-failed"]
	m.fields.error in {"10", "101"}
}

beyond_sight contains m if {
	some m in logs.by_id["openmpi-cuda-ipc-failed"]
	one_each
}

# one_each is true where Slurm gives each task one GPU alone, which its control
# group then hides from the others.
one_each if {
	some l in logs.launches
	l.kind == "slurm"
	l.gpus == 1
	l.processes > 1
}

# With one visible GPU a process can open the memory of no other; older drivers
# call that an invalid argument.
beyond_sight contains m if {
	some m in logs.by_id["nccl-ipc-open-failed"]
	one_visible != ""
}

findings contains {
	"subject": "GPUs",
	"message": sprintf("A rank reaches for the GPU of another (%s) that its process does not see, as when each task or container is given one GPU alone (--gpus-per-task, --gpu-bind, a list with one GPU). Let the ranks of a machine see all of its GPUs, and choose by local rank", [words(logs.first(beyond_sight))]),
	"severity": "critical",
	"confidence": "likely",
	"evidence": array.concat(logs.all_evidence(beyond_sight), chosen_evidence),
	"order": logs.first(beyond_sight).order,
	"params": {"variable": chooser},
	"remedies": ["fix-visible-devices", "nccl-p2p-disable", "fix-application"],
} if {
	count(beyond_sight) > 0
	not apart
}

# apart is true where containers have one GPU each: rule ipc-namespace tells.
apart if {
	some l in logs.launches
	l.kind in {"docker-run", "compose", "kubernetes"}
	l.gpus == 1
}

duplicate_words := regex.find_n(`rank \d+ and rank \d+ both on \w+ device \w+`, logs.first(duplicates).text, 1)[0] if {
	true
} else := "the library names it"

default one_visible := ""

one_visible := sprintf("; %s=%s leaves one GPU to all of them", [name, facts.env[name]]) if {
	name := sort([n | some n in choosers; regex.match(`^(GPU-)?[0-9a-fA-F-]+$`, facts.env[n])])[0]
}

# The container runtime was told to give a GPU that is not there. In a batch job the
# numbers of the machine are none of those that the job sees, which begin at 0.
unknown_devices := logs.messages({"nvidia-device-unknown"})

findings contains {
	"subject": "GPUs",
	"message": sprintf("The container is to be given GPU %s, and the runtime finds none of that name: NVIDIA_VISIBLE_DEVICES (or --gpus device=) counts among the GPUs that are visible where the container is started. In a job of a batch system these begin at 0; «all» takes those of the job", [facts.list({m.fields.device | some m in unknown_devices})]),
	"severity": "critical",
	"confidence": "confirmed",
	"evidence": array.concat(logs.all_evidence(unknown_devices), [surroundings.variable_evidence(facts.variable[n]) | some n in ["NVIDIA_VISIBLE_DEVICES"]; facts.env[n]]),
	"order": logs.first(unknown_devices).order,
	"params": {"variable": "NVIDIA_VISIBLE_DEVICES"},
	"remedies": ["fix-visible-devices", "pass-device-nodes"],
} if {
	count(unknown_devices) > 0
}

# The program says itself that it was asked for more GPUs than it sees.
findings contains {
	"subject": "GPUs",
	"message": sprintf("The program was asked to use more GPUs than it sees: %s", [words(logs.first(few))]),
	"severity": "critical",
	"confidence": "confirmed",
	"evidence": array.concat(logs.all_evidence(few), chosen_evidence),
	"order": logs.first(few).order,
	"params": {"variable": chooser},
	"remedies": ["fix-visible-devices", "fix-application", "pass-device-nodes"],
} if {
	count(few) > 0
	not explained
}

few := logs.messages({"too-few-gpus"})

# chooser is the variable that chooses in this job, or the usual one.
chooser := sort([n | some n in choosers; facts.env[n]])[0] if {
	some n in choosers
	facts.env[n]
} else := "HIP_VISIBLE_DEVICES" if {
	amd.present
} else := "CUDA_VISIBLE_DEVICES"

# ranks are how many processes of one node the job starts, each with a GPU of
# its own; available counts the GPUs that they can see.
ranks := max([n |
	some l in logs.launches
	some key in ["processes", "tensor_parallel"]
	n := l[key]
	is_number(n)
])

available := min(array.concat(
	[count(entries_of(facts.env[n])) | some n in choosers; facts.env[n]],
	[count(input.gpus.devices) | count(input.gpus.devices) > 0],
))

entries_of(value) := [e | some e in list_of(value); not e in {"", "-1", "NoDevFiles"}]

ordinals := logs.messages({"hip-invalid-device", "cuda-invalid-device"})

# A rank asks for a GPU that it has not got. «invalid device ordinal» is about
# the choice of a GPU and about nothing else.
findings contains {
	"subject": "GPUs",
	"message": sprintf("A rank asks for a GPU that its process does not see (%s): the job starts %d ranks on a node that leaves them %d GPUs", [words(logs.first(ordinals)), ranks, available]),
	"severity": "critical",
	"confidence": "likely",
	"evidence": array.concat(logs.all_evidence(ordinals), chosen_evidence),
	"order": logs.first(ordinals).order,
	"params": {"variable": chooser},
	"remedies": ["fix-visible-devices", "fix-application"],
} if {
	count(ordinals) > 0
	ranks > available
	not explained
}

outnumbered if ranks > available

findings contains {
	"subject": "GPUs",
	"message": sprintf("A rank asks for a GPU that its process does not see (%s): more ranks than visible GPUs, a *_VISIBLE_DEVICES that leaves fewer than meant, or a number that counts from another list", [words(logs.first(ordinals))]),
	"severity": "critical",
	"confidence": "likely",
	"evidence": array.concat(logs.all_evidence(ordinals), chosen_evidence),
	"order": logs.first(ordinals).order,
	"params": {"variable": chooser},
	"remedies": ["fix-visible-devices", "unset-env", "fix-application"],
} if {
	count(ordinals) > 0
	not explained
	not outnumbered
	count(few) == 0
}

# No GPU at all, and nothing that tells why.
absent := logs.messages({"hip-no-device", "cuda-no-device", "torch-sees-no-gpu", "nvsmi-no-devices"})

findings contains {
	"subject": "GPUs",
	"message": sprintf("A program sees no GPU (%s): a *_VISIBLE_DEVICES that hides all, devices that the container or the user was not given, or a driver that does not work", [words(logs.first(absent))]),
	"severity": absent_severity,
	"confidence": absent_confidence,
	"evidence": array.concat(logs.all_evidence(absent), chosen_evidence),
	"order": logs.first(absent).order,
	"params": {"variable": chooser},
	"remedies": ["fix-visible-devices", "pass-device-nodes"],
} if {
	count(absent) > 0
	not explained
	not told_otherwise
	not without_gpus
}

# without_gpus is true of a container that was started without GPUs: rule
# container-caps tells of it.
without_gpus if count(launches.without_gpus) > 0

# told_otherwise is true where a message states why there is no GPU.
told_otherwise if {
	some m in logs.complaints
	m.role == "cause"
	not m.id in {"rocblas-no-kernels"}
}

# A machine without GPUs is no fault: PyTorch's report says so of each laptop.
# An empty list, and one that begins with -1, hide all GPUs.
default absent_confidence := "possible"

absent_confidence := "confirmed" if {
	some n in choosers
	list_of(facts.env[n])[0] in {"", "-1", "NoDevFiles"}
}

default absent_severity := "low"

absent_severity := "high" if count(surroundings.of_vendor) > 0

absent_severity := "high" if count(logs.messages({"hip-no-device", "cuda-no-device", "nvsmi-no-devices"})) > 0

absent_severity := "high" if count(chosen_evidence) > 0

# In a container no driver means that the container toolkit brought no libraries:
# it does so for images that set NVIDIA_VISIBLE_DEVICES, as NVIDIA's do, or where
# the launch sets it (enroot doc/standard-hooks.md, 98-nvidia.sh; Docker's --gpus
# sets it, Apptainer's --nv stands for it).
findings contains {
	"subject": "GPUs",
	"message": sprintf("No driver is found in the container of %s: its libraries come in only where NVIDIA_VISIBLE_DEVICES is set, by the image or by the launch, and NVIDIA_DRIVER_CAPABILITIES holds compute", [object.get(l, "image", "the job")]),
	"severity": "critical",
	"confidence": "likely",
	"evidence": array.concat(logs.all_evidence(logs.by_id["torch-no-driver"]), [launches.evidence(l)]),
	"order": logs.first(logs.by_id["torch-no-driver"]).order,
	"params": {"variable": "NVIDIA_VISIBLE_DEVICES"},
	"remedies": ["fix-visible-devices", "set-driver-capabilities", "pass-device-nodes"],
} if {
	logs.said("torch-no-driver")
	not without_gpus
	l := sort(launches.enclosed)[0]
}

# A pod's own value takes the place of what the device plugin chose: the kubelet
# adds the pod's variables behind the plugin's (pkg/kubelet/kubelet_pods.go,
# GenerateRunContainerOptions).
findings contains {
	"subject": "NVIDIA_VISIBLE_DEVICES",
	"message": sprintf("%s asks Kubernetes for %s GPUs and sets NVIDIA_VISIBLE_DEVICES=%s itself: that takes the place of the GPUs which the device plugin chose, so that pods share one GPU while others are idle", [launches.title(l), l.resources["nvidia.com/gpu"], value]),
	"severity": "high",
	"confidence": "likely",
	"evidence": [{"fact": "launches[].variables.NVIDIA_VISIBLE_DEVICES", "value": value, "source": logs.at(l)}],
	"params": {"variable": "NVIDIA_VISIBLE_DEVICES"},
	"remedies": ["fix-visible-devices", "unset-env"],
} if {
	some l in input.launches
	l.kind == "kubernetes"
	l.resources["nvidia.com/gpu"] != "0"
	value := l.variables.NVIDIA_VISIBLE_DEVICES
	regex.match(`^(\d|GPU-)`, value)
}

# guessed are ranks that chose no GPU, and take one by their number among those
# that they see. Two with the same GPU are well where each sees another one GPU
# alone; where their first collective does not end, they share one.
guessed[m.fields.gpu] contains m if some m in logs.by_id["torch-device-guessed"]

findings contains {
	"subject": "GPUs",
	"message": sprintf("Ranks %s chose no GPU of their own and all use GPU %s, and their first collective did not end: call torch.cuda.set_device(local_rank), or give init_process_group a device_id, before the first barrier", [concat(" and ", sort(ranks_)), gpu]),
	"severity": "high",
	"confidence": "likely",
	"evidence": array.concat(array.slice(logs.all_evidence(ms), 0, 2), [logs.evidence(stuck)]),
	"order": stuck.order,
	"params": {"variable": chooser},
	"remedies": ["fix-application", "fix-visible-devices"],
} if {
	some gpu, ms in guessed
	ranks_ := {m.fields.who | some m in ms}
	count(ranks_) > 1
	not logs.said("nccl-duplicate-gpu")
	stuck := logs.first({m |
		some m in logs.by_id["torch-watchdog-timeout"]
		m.fields.seq in {"0", "1", "2"}
	})
	neighbours(ranks_)
}

# neighbours are ranks that are surely on one machine: ranks of two machines
# guess alike.
neighbours(numbers) if {
	some a in numbers
	some b in numbers
	to_number(b) == to_number(a) + 1
}

# An integrated GPU next to cards: programs take it for one more, though it is
# slow, has no memory of its own and is not supported by ROCm's libraries.
taken := {m |
	some m in logs.by_id["ggml-rocm-device"]
	m.fields.architecture in gpu_models.amd_integrated
}

cards := {m |
	some m in logs.by_id["ggml-rocm-device"]
	not m.fields.architecture in gpu_models.amd_integrated
}

findings contains object.union(
	{
		"subject": "GPUs",
		"message": sprintf("The program takes the integrated GPU (%s) for one more next to %s%s. Leave it out: HIP_VISIBLE_DEVICES with the numbers of the cards alone", [
			concat(", ", sort({sprintf("%s, %s", [m.fields.name, m.fields.architecture]) | some m in taken})),
			concat(", ", sort({m.fields.name | some m in cards})), crash_words,
		]),
		"severity": integrated_severity,
		"confidence": "likely",
		"evidence": array.concat(logs.all_evidence(taken | amd.crashes), integrated_evidence),
		"params": {"variable": "HIP_VISIBLE_DEVICES"},
		"remedies": ["fix-visible-devices"],
	},
	ordered(taken),
) if {
	count(taken) > 0
	count(cards) > 0
}

# The same where only the list of the machine's GPUs shows it, and a program
# crashed without a list in force.
findings contains {
	"subject": "GPUs",
	"affects": sort([address | some address in amd.integrated; facts.is_address(address)]),
	"message": sprintf("Next to %d cards there is an integrated GPU, which programs take for one more unless *_VISIBLE_DEVICES leaves it out, and a program crashed on a GPU. HIP_VISIBLE_DEVICES with the numbers of the cards alone keeps it from that", [count(amd.discrete)]),
	"severity": "high",
	"confidence": crash_confidence,
	"evidence": array.concat(integrated_evidence, logs.all_evidence(amd.crashes)),
	"order": logs.first(amd.crashes).order,
	"params": {"variable": "HIP_VISIBLE_DEVICES"},
	"remedies": ["fix-visible-devices"],
} if {
	count(taken) == 0
	count(amd.integrated) > 0
	count(amd.discrete) > 0
	count(amd.crashes) > 0
	count(chosen_evidence) == 0
}

# Nothing crashed, and HIP counts the integrated GPU as device 0, in the order of the
# compute driver's nodes: a program that takes the first GPU computes on it, and one
# that takes all of them waits for the slowest.
integrated_first if {
	input.transfers.api == "hip"
	input.transfers.devices[0].address in amd.integrated
}

integrated_first if {
	count(surroundings.offered) == 0
	nodes := {g.kfd.node | some g in amd.gpus; g.address in amd.integrated; g.kfd}
	others := {g.kfd.node | some g in amd.gpus; g.address in amd.discrete; g.kfd}
	min(nodes) < min(others)
}

findings contains {
	"subject": "GPUs",
	"affects": sort([address | some address in amd.integrated; facts.is_address(address)]),
	"message": sprintf("HIP counts the integrated GPU as device 0, before %d cards: a program that takes the first GPU computes on it, and RCCL over all of them includes it. HIP_VISIBLE_DEVICES with the numbers of the cards alone leaves it out", [count(amd.discrete)]),
	"severity": "low",
	"confidence": "likely",
	"evidence": [{"fact": sprintf("gpus.devices[%s].integrated", [address]), "value": true, "source": "the compute driver's topology"} | some address in sort(amd.integrated)],
	"params": {"variable": "HIP_VISIBLE_DEVICES"},
	"remedies": ["fix-visible-devices"],
} if {
	integrated_first
	count(amd.discrete) > 0
	count(taken) == 0
	count(amd.crashes) == 0
	count({n | some n in ["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"]; facts.env[n]}) == 0
}

# rocBLAS names the integrated GPU itself: a program did compute there.
findings contains {
	"subject": "GPUs",
	"message": sprintf("A program computes on the integrated GPU %s, for which ROCm's libraries have no kernels. Leave it out: HIP_VISIBLE_DEVICES with the numbers of the cards alone", [m.fields.architecture]),
	"severity": "critical",
	"confidence": "likely",
	"evidence": array.concat([logs.evidence(m)], integrated_evidence),
	"order": m.order,
	"params": {"variable": "HIP_VISIBLE_DEVICES"},
	"remedies": ["fix-visible-devices"],
} if {
	count(taken) == 0
	some m in logs.by_id["rocblas-no-kernels"]
	m.fields.architecture in gpu_models.amd_integrated
	count(amd.discrete) > 0
}

default crash_words := ""

crash_words := ", and it crashed" if count(amd.crashes) > 0

default integrated_severity := "low"

integrated_severity := "critical" if count(amd.crashes) > 0

default crash_confidence := "possible"

crash_confidence := "likely" if {
	some m in amd.crashes
	m.program in {"rocr", "hip", "rocblas"}
}

# The driver leaves a GPU out whose slot offers no atomic operations.
findings contains {
	"subject": "GPUs",
	"message": sprintf("ROCm does without a GPU because its slot, or a bridge above it, offers no PCIe atomic operations: %s", [sort(rejected)[0].message]),
	"severity": "high",
	"confidence": "confirmed",
	"evidence": [{"fact": "kernel_log.events[amdgpu]", "value": e.message, "source": input.kernel_log.source} | some e in sort(rejected)],
	"remedies": ["update-bios"],
} if {
	count(rejected) > 0
}

rejected := {e | some e in input.kernel_log.events; contains(e.message, "PCI rejects atomics")}

integrated_evidence := [{
	"fact": sprintf("gpus.devices[%s].architecture", [g.address]),
	"value": g.architecture,
	"source": "rocminfo",
} |
	some g in amd.gpus
	g.address in amd.integrated
	g.architecture
]

missing contains {"fact": "env", "words": "variables were not read"} if {
	not input.env
	count(findings) == 0
}

missing contains {"fact": "gpus", "words": "it is not known whether there are GPUs"} if {
	count(findings) == 0
	not input.gpus
	not input.container
}

not_applicable contains "no GPU on this machine" if {
	count(facts.gpus) == 0
	count(findings) == 0
	count(surroundings.driver_devices) == 0
}

# unbounded are the pods that ask for fewer GPUs than there are and run privileged:
# the device plugin's choice is then without effect, as a privileged container gets
# every device of its node (kubernetes issue 81256, k8s-device-plugin issue 1294).
unbounded contains l if {
	some l in input.launches
	l.kind == "kubernetes"
	l.privileged
	l.gpus > 0
	count(surroundings.nvml_gpus) > l.gpus
}

findings contains {
	"subject": "GPUs",
	"message": sprintf("%s asks for %d of %d GPUs and is privileged, so that it sees all of the node, those of other pods among them: programs then take the first ones. Leave out privileged and add the capabilities it needs, or set NVIDIA_VISIBLE_DEVICES by what the device plugin chose", [launches.title(l), l.gpus, count(surroundings.nvml_gpus)]),
	"severity": "medium",
	"confidence": "likely",
	"evidence": [{"fact": "launches[].privileged", "value": true, "source": logs.at(l)}, {"fact": "gpus.devices", "value": count(surroundings.nvml_gpus), "source": "NVML"}],
	"params": {"variable": "NVIDIA_VISIBLE_DEVICES"},
	"remedies": ["fix-visible-devices"],
} if {
	l := sort(unbounded)[0]
}
