# METADATA
# title: Faults that versions of libraries have
# description: >-
#   Which rows of the table of known faults (rules/data/known_faults.yaml) show
#   here. The rules nccl-bug, rccl-bug and rccl-p2p-transport read it.
# schemas:
#   - input: schema.facts
package gpudoctor.lib.known_faults

import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.known_faults as table

# of_host_memory is true of an allocation that failed below NCCL's transport by
# shared memory, as the next lines of the same process show, in the versions that
# take it through cuMem without trying first: it asks for host memory, however
# CUDA names the error.
of_host_memory(m) if {
	endswith(m.fields.file, "alloc.h")
	some t in logs.by_id["nccl-shm-trace"]
	t.source == m.source
	object.get(t, "pid", 0) == object.get(m, "pid", 0)
	t.line > m.line
	t.line - m.line < 4
	some use in library_versions.used.nccl
	library_versions.in_range({"since": "2.24.3", "fixed": "2.26.3"}, use.version)
}

# gpu_names are the models that the facts or the texts name.
gpu_names contains sprintf("%s %s", [object.get(g, "name", ""), object.get(g, "architecture", "")]) if some g in input.gpus.devices

gpu_names contains name if {
	some b in input.benchmarks
	some name in b.gpu_names
}

# What somebody writes of his cards names them, too.
gpu_names contains m.fields.gpu if {
	some m in logs.by_id["prose-p2p-off-needed"]
	m.fields.gpu != ""
}

a_gpu(pattern) if {
	some name in gpu_names
	regex.match(pattern, name)
}

ampere := `(?i)\b(?:A100|A800|A30|A10|A40|A16|A2|A6000|A5000|A4000|RTX 30[5-9]0)\b|ampere`

hopper := `(?i)\b(?:H100|H200|H800|H20|GH200)\b|hopper`

blackwell := `(?i)\b(?:B100|B200|B300|GB200|GB300|GB10)\b|blackwell|RTX 50[5-9]0`

blackwell_12 := `(?i)RTX 50[5-9]0|RTX PRO \d+ Blackwell`

# holds is true of a circumstance that is known.
holds("ampere") if a_gpu(ampere)

holds("hopper") if a_gpu(hopper)

holds("blackwell") if a_gpu(blackwell)

holds("blackwell-12") if a_gpu(blackwell_12)

holds("spark") if a_gpu(`\bGB10\b`)

holds("grace-blackwell") if a_gpu(`\bGB[23]00\b`)

holds("before-blackwell") if {
	count(gpu_names) > 0
	every name in gpu_names {
		regex.match(concat("|", [ampere, hopper, `\b(?:V100|T4|L4|L40S?|RTX 40[5-9]0)\b`]), name)
	}
}

holds("gfx12") if a_gpu(`(?i)gfx12|R9700|RX 90[67]0`)

holds("gfx11") if a_gpu(`(?i)gfx110|RX 7[89]00|W7[89]00`)

holds("amd-pcie") if {
	count(input.links.pairs) > 0
	every p in input.links.pairs {
		p.link_type == "pcie"
	}
}

holds("gfx950") if a_gpu(`(?i)gfx950|MI35[05]`)

holds("arm") if input.host.arch == "arm64"

holds("arm") if a_gpu(`\b(?:GH200|GB200|GB300|GB10)\b`)

holds("mixed-gpus") if {
	families := {f | some f, pattern in {"ampere": ampere, "hopper": hopper, "blackwell": blackwell, "ada": `(?i)\b(?:L4|L40S?|RTX 40[5-9]0|RTX \d+ Ada)\b`}; a_gpu(pattern)}
	count(families) > 1
}

holds("several-hosts") if {
	some c in input.logs.communicators
	c.nodes > 1
}

holds("several-hosts") if {
	some c in input.logs.communicators
	count(c.hosts) > 1
}

holds("nvswitch") if surroundings.nvswitch

holds("nvswitch") if a_gpu(`(?i)\b(?:H100 80GB HBM3|H100 SXM|H200|H800|B200|B300|GB200|GB300)\b`)

holds("cubemesh") if {
	surroundings.nvlinked
	a_gpu(`(?i)V100-SXM2|P100-SXM2`)
}

holds("launch-blocking") if {
	some v in input.env.variables
	v.name == "CUDA_LAUNCH_BLOCKING"
	v.value == "1"
}

holds("gdr-off") if {
	some v in input.env.variables
	v.name == "NCCL_NET_GDR_LEVEL"
	v.value in {"LOC", "0"}
}

holds("expandable-segments") if {
	some v in input.env.variables
	v.name in {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}
	contains(lower(v.value), "expandable_segments:true")
}

holds("net-plugin") if {
	some n in input.logs.networks
	not n.name in {"IB", "Socket"}
}

holds("split") if {
	some m in input.logs.messages
	contains(m.text, "ncclCommSplit")
}

holds("numa-unknown") if {
	some d in input.pci.devices
	d.kind in {"nic", "gpu"}
	d.numa_node == -1
}

holds("serving") if {
	some p in input.software
	p.name in {"vllm", "sglang"}
}

holds("kernel-6-6") if surroundings.version(input.host.kernel) >= [6, 6]

holds("kernel-6-8") if surroundings.version(input.host.kernel) >= [6, 8]

# RCCL names the kernel in its log.
holds("kernel-6-8") if {
	some p in input.software
	p.name == "kernel"
	surroundings.version(p.version) >= [6, 8]
}

holds("pollara") if {
	some d in input.pci.devices
	d.vendor == "0x1dd8"
	d.kind == "nic"
}

# symptoms are the messages of each symptom.
symptoms := {
	"hang": {m | some id in ["torch-watchdog-timeout", "torch-heartbeat-timeout", "vllm-workers-stuck", "sglang-watchdog-timeout", "xla-collective-stuck", "horovod-stalled"]; some m in logs.by_id[id]},
	"stall": set(),
	"crash": logs.messages(["process-segmentation-fault", "process-segfault"]),
	"fail": {m | some m in logs.complaints; m.program in {"nccl", "pytorch", "frameworks", "cuda", "vllm"}; m.role != "consequence"},
	"corrupt": {m | some m in logs.by_id["llm-output-garbage"]},
}

# corrupted are tables of benchmarks that counted wrong values.
corrupted contains {"fact": "benchmarks", "value": b.wrong, "source": sprintf("%s:%d", [b.source, b.line])} if {
	some b in input.benchmarks
	b.wrong > 0
}

# shown is how a fault of the table shows here: {evidence, order}; undefined
# where it does not. Rows with neither message nor symptom show by their
# circumstances alone.
shown(row) := {"evidence": [logs.evidence(first)], "order": first.order} if {
	first := logs.first({m | some id in row.said; some m in logs.by_id[id]; not has_field(m, row)})
} else := {"evidence": [logs.evidence(first)], "order": first.order} if {
	first := logs.first(symptoms[row.symptom])
} else := {"evidence": sort(logs.stalled), "order": null} if {
	row.symptom == "stall"
	count(logs.stalled) > 0
} else := {"evidence": [e | some e in corrupted]} if {
	row.symptom == "corrupt"
	count(corrupted) > 0
} else := {"evidence": []} if {
	not row.said
	not row.symptom
}

has_field(m, row) if m.fields[row.lacks]

# fits is true of a row whose circumstances are all known to hold.
fits(row) if {
	every circumstance in object.get(row, "when", []) {
		holds(circumstance)
	}
}

# found are the faults of a library that show here, with the version that has
# them.
found[library] contains {"row": row, "version": use.version, "evidence": array.concat(how.evidence, [use.evidence]), "order": object.get(how, "order", null)} if {
	some row in table.rows
	library := row.library
	fits(row)
	how := shown(row)
	some use in library_versions.used[library]
	library_versions.in_range(row, use.version)
}

# telltale are faults that state themselves where no version is known.
telltale[library] contains {"row": row, "evidence": how.evidence, "order": how.order} if {
	some row in table.rows
	row.telltale
	library := row.library
	how := shown(row)
	not library_versions.version_known[library]
}
