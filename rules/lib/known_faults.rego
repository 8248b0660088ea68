# Known faults of library versions. Which rows of the table of known faults (rules/data/known_faults.yaml) apply here.
package gpudoctor.lib.known_faults

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.known_faults as table

# of_host_memory is true of an allocation that failed below NCCL's transport by shared memory, as the next lines show, in
# the versions that take it through cuMem without trying first: it asks for host memory, however CUDA names the error.
of_host_memory(m) if {
	endswith(m.fields.file, "alloc.h")
	some t in logs.by_id["nccl-shm-trace"]
	t.source == m.source
	(t.line - m.line) in {1, 2, 3}
	count(library_versions.cumem_untested) > 0
}

# models are those of the GPUs of the machines that an image is for, else of this machine. Notes that name cards also count.
models := {gpu_models.of(name) | some name in input.target.gpus} if {
	input.target.gpus
} else := {m | some m in gpu_models.model}

architectures := {m.architecture | some m in models} if {
	input.target.gpus
} else := gpu_models.architectures | {gpu_models.architecture({"name": m.fields.gpu}) | some m in logs.by_id["prose-p2p-off-needed"]}

holds("ampere") if "ampere" in architectures
holds("hopper") if "hopper" in architectures
holds("blackwell") if "blackwell" in architectures
holds("blackwell-12") if models[_].compute_capability == "12.0"
holds("spark") if models[_].name == "GB10"
holds("gfx12") if strings.any_prefix_match(architectures, "gfx12")
holds("gfx11") if strings.any_prefix_match(architectures, "gfx110")
holds("gfx950") if "gfx950" in architectures
holds("grace-blackwell") if models[_].name in {"GB200", "GB300"}

holds("before-blackwell") if {
	count(architectures) > 0
	count(architectures - {"maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper"}) == 0
}

holds("amd-pcie") if {object.get(p, "link_type", "") | some p in facts.gpu_pairs} == {"pcie"}
holds("arm") if input.host.arch == "arm64"
holds("arm") if models[_].name in {"GH200", "GB200", "GB300", "GB10", "Jetson"}
holds("mixed-gpus") if count(architectures - {""}) > 1
holds("several-hosts") if input.logs.communicators[_].nodes > 1
holds("several-hosts") if count(input.logs.communicators[_].hosts) > 1
holds("several-ranks") if input.logs.communicators[_].ranks > 1
holds("several-ranks") if input.launches[_].tensor_parallel > 1
holds("several-ranks") if {"nccl", "rccl"} & {p.name | some p in input.software; p.manager == "log"} != set()
holds("nvswitch") if surroundings.nvswitch

# Volta's and Ampere's NVSwitches have no NVLink SHARP, of which the rows speak.
holds("nvswitch") if count({m | some m in models; m.nvswitch; m.architecture in {"hopper", "blackwell"}}) > 0
holds("launch-blocking") if facts.env.CUDA_LAUNCH_BLOCKING == "1"
holds("gdr-off") if facts.env.NCCL_NET_GDR_LEVEL in {"LOC", "0"}
holds("ll-allowed") if lower(object.get(facts.env, "NCCL_PROTO", "")) != "simple"
holds("expandable-segments") if contains(lower(facts.env.PYTORCH_CUDA_ALLOC_CONF), "expandable_segments:true")
holds("expandable-segments") if contains(lower(facts.env.PYTORCH_ALLOC_CONF), "expandable_segments:true")
holds("net-plugin") if count({n.name | some n in input.logs.networks} - {"IB", "Socket"}) > 0
holds("split") if contains(input.logs.messages[_].text, "ncclCommSplit")
holds("numa-unknown") if count({d | some d in input.pci.devices; d.kind in {"nic", "gpu"}; d.no_numa_node == true}) > 0
holds("serving") if input.software[_].name in {"vllm", "sglang"}
holds("wsl") if contains(lower(input.host.kernel), "microsoft")
holds("kernel-6-6") if surroundings.version(input.host.kernel) >= [6, 6]
holds("kernel-6-8") if surroundings.version(input.host.kernel) >= [6, 8]

# RCCL names the kernel in its log.
holds("kernel-6-8") if surroundings.version(logs.versions.kernel[_]) >= [6, 8]
holds("pollara") if "0x1dd8" in {d.vendor | some d in input.pci.devices; d.kind == "nic"}

symptoms := {
	"hang": logs.messages(["torch-watchdog-timeout", "torch-heartbeat-timeout", "vllm-workers-stuck", "sglang-watchdog-timeout", "xla-collective-stuck", "horovod-stalled"]),
	"crash": logs.messages(["process-segmentation-fault"]),
	"fail": {m | some m in logs.complaints; m.program in {"nccl", "pytorch", "frameworks", "cuda", "vllm"}; m.role != "consequence"},
	"corrupt": logs.messages(["model-output-degenerate"]),
}

# signs are what shows a symptom where no message does: tables of benchmarks.
signs := {
	"stall": sort(logs.stalled),
	"corrupt": [{"fact": "benchmarks", "value": b.wrong, "source": logs.at(b)} | some b in input.benchmarks; b.wrong > 0],
}

# shown is how a fault of the table shows here; undefined where it does not. Rows with neither message nor symptom show by
# their circumstances alone, and so do GPUs that a version does not support where no log tells how a job fared.
shown(row) := {"messages": {first}, "evidence": []} if {
	said := {m | some id in row.said; some m in logs.by_id[id]; not has_field(m, row)}
	first := logs.first(said | object.get(symptoms, object.get(row, "symptom", ""), set()))
} else := {"messages": set(), "evidence": signs[row.symptom]} if {
	count(signs[row.symptom]) > 0
} else := {"messages": set(), "evidence": []} if {
	not row.said
	not row.symptom
} else := {"messages": set(), "evidence": []} if {
	not logs.given
	row in unsupported
}

has_field(m, row) if m.fields[row.lacks]

fits(row) if {
	every circumstance in object.get(row, "when", []) {
		holds(circumstance)
	}
}

# unsupported are the rows of versions that do not support the GPUs: they fail on each of them, so no message is needed.
unsupported contains row if {
	some row in table.rows
	row.symptom == "fail"
	row.confidence == "likely"
	count(row.when) > 0
	fits(row)
}

# found are the faults of a library that show here, with the version that has them.
found[library] contains object.union(how, {
	"row": row, "version": use.version, "evidence": array.concat(how.evidence, [use.evidence]),
}) if {
	some row in table.rows
	library := row.library
	fits(row)
	how := shown(row)
	some use in library_versions.used[library]
	library_versions.in_range(row, use.version)
}

# Faults that state themselves are found where no version is known.
found[row.library] contains object.union(shown(row), {"row": row}) if {
	some row in table.rows
	row.telltale
	not library_versions.version_known[row.library]
}

# finding is what rules say of a fault, with its version, if that is known, and the messages and other evidence for it.
finding(f) := {
	"subject": f.row.library,
	"message": sprintf("%s %s (%sfixed in %s)", [
		concat(" ", array.concat([{"nccl": "NCCL", "rccl": "RCCL", "rocm": "ROCm"}[f.row.library]], [v | v := f.version])), f.row.what,
		concat("", [sprintf("since %s, ", [since]) | since := f.row.since]), object.get(f.row, "fixed", "no known version"),
	]),
	"severity": object.get(f.row, "severity", "high"),
	"confidence": f.row.confidence,
	"messages": f.messages,
	"evidence": f.evidence,
	"remedies": f.row.remedies,
	"params": object.union({"fault": object.get(f.row, "fault", f.row.id)}, object.filter(f.row, ["source", "variable"])),
}
