# Known faults of library versions. Which rows of the table of known faults (rules/data/known_faults.yaml) apply here.
# The rules nccl-bug, rccl-bug and rccl-p2p-transport read it.
package gpudoctor.lib.known_faults

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.known_faults as table

# of_host_memory is true of an allocation that failed below NCCL's transport by shared memory, as the next lines of the
# same process show, in the versions that take it through cuMem without trying first: it asks for host memory, however
# CUDA names the error.
of_host_memory(m) if {
	endswith(m.fields.file, "alloc.h")
	some t in logs.by_id["nccl-shm-trace"]
	t.source == m.source
	object.get(t, "pid", 0) == object.get(m, "pid", 0)
	t.line > m.line
	t.line - m.line < 4
	count(library_versions.cumem_untested) > 0
}

architectures := gpu_models.architectures | in_prose

# Notes that name the cards also count.
in_prose contains gpu_models.architecture({"name": m.fields.gpu}) if some m in logs.by_id["prose-p2p-off-needed"]

# older are the architectures before Blackwell.
older := {"maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper"}

holds("ampere") if "ampere" in architectures
holds("hopper") if "hopper" in architectures
holds("blackwell") if "blackwell" in architectures
holds("blackwell-12") if gpu_models.model[_].compute_capability == "12.0"
holds("spark") if gpu_models.model[_].name == "GB10"
holds("gfx12") if strings.any_prefix_match(architectures, "gfx12")
holds("gfx11") if strings.any_prefix_match(architectures, "gfx110")
holds("gfx950") if "gfx950" in architectures
holds("grace-blackwell") if gpu_models.model[_].name in {"GB200", "GB300"}

holds("before-blackwell") if {
	count(architectures) > 0
	count(architectures - older) == 0
}

holds("amd-pcie") if {object.get(p, "link_type", "") | some p in facts.gpu_pairs} == {"pcie"}
holds("arm") if input.host.arch == "arm64"

holds("arm") if {
	some m in gpu_models.model
	m.form == "superchip"
	not startswith(m.architecture, "gfx")
}

holds("mixed-gpus") if count(architectures - {""}) > 1
holds("several-hosts") if input.logs.communicators[_].nodes > 1
holds("several-hosts") if count(input.logs.communicators[_].hosts) > 1
holds("nvswitch") if surroundings.nvswitch

# Volta's and Ampere's NVSwitches have no NVLink SHARP, of which the rows speak.
holds("nvswitch") if {
	some m in gpu_models.model
	m.nvswitch
	m.architecture in {"hopper", "blackwell"}
}

holds("cubemesh") if {
	surroundings.nvlinked
	gpu_models.model[_].name in {"V100 SXM2", "P100 SXM2"}
}

holds("launch-blocking") if facts.env.CUDA_LAUNCH_BLOCKING == "1"
holds("gdr-off") if facts.env.NCCL_NET_GDR_LEVEL in {"LOC", "0"}
holds("expandable-segments") if contains(lower(facts.env.PYTORCH_CUDA_ALLOC_CONF), "expandable_segments:true")
holds("expandable-segments") if contains(lower(facts.env.PYTORCH_ALLOC_CONF), "expandable_segments:true")
holds("net-plugin") if count({n.name | some n in input.logs.networks} - {"IB", "Socket"}) > 0
holds("split") if contains(input.logs.messages[_].text, "ncclCommSplit")

holds("numa-unknown") if {
	some d in input.pci.devices
	d.kind in {"nic", "gpu"}
	d.no_numa_node == true
}

holds("serving") if input.software[_].name in {"vllm", "sglang"}
holds("wsl") if input.host.virtualization.kind == "wsl"
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

# corrupted are tables of benchmarks that counted wrong values.
corrupted contains {"fact": "benchmarks", "value": b.wrong, "source": sprintf("%s:%d", [b.source, b.line])} if {
	some b in input.benchmarks
	b.wrong > 0
}

signs := {"stall": sort(logs.stalled), "corrupt": sort(corrupted)}

# shown is how a fault of the table shows here; undefined where it does not. Rows with neither message nor symptom show
# by their circumstances alone.
shown(row) := {"messages": {first}, "evidence": []} if {
	first := logs.first({m | some id in row.said; some m in logs.by_id[id]; not has_field(m, row)})
} else := {"messages": {first}, "evidence": []} if {
	first := logs.first(symptoms[row.symptom])
} else := {"messages": set(), "evidence": signs[row.symptom]} if {
	count(signs[row.symptom]) > 0
} else := {"messages": set(), "evidence": []} if {
	not row.said
	not row.symptom
}

has_field(m, row) if m.fields[row.lacks]

fits(row) if {
	every circumstance in object.get(row, "when", []) {
		holds(circumstance)
	}
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

# unsupported are the rows of versions that do not support this machine's GPUs: they fail
# on each of them, so no message is needed.
unsupported[row.library] contains row if {
	some row in table.rows
	row.symptom == "fail"
	row.confidence == "likely"
	count(row.when) > 0
	fits(row)
}

# by_gpus are the versions among those in use where no log tells how a job fared.
by_gpus[library] contains {
	"row": row, "version": use.version, "messages": set(), "evidence": [use.evidence], "certain": true,
} if {
	not logs.given
	some library, rows in unsupported
	some row in rows
	some use in library_versions.used[library]
	library_versions.in_range(row, use.version)
}

# telltale are faults that state themselves where no version is known.
telltale[row.library] contains object.union(shown(row), {"row": row}) if {
	some row in table.rows
	row.telltale
	not library_versions.version_known[row.library]
}

reported[library] contains f if {
	some by_library in [found, by_gpus, telltale]
	some library, faults in by_library
	some f in faults
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
