# METADATA
# title: Peer-to-peer transfers fail although the driver offers them
# description: >-
#   The driver reports peer access between GPUs, yet transfers between them
#   hang, fail, or report success and deliver wrong data. Programs that trust
#   the driver, NCCL among them, then hang or compute on garbage.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: What NVIDIA says of peer access that is reported and does not work.
#   - ref: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__PEER__ACCESS.html
#     description: What cuDeviceCanAccessPeer promises.
#   - ref: https://github.com/ggml-org/llama.cpp/blob/master/docs/multi-gpu.md
#     description: llama.cpp uses peer access only where GGML_CUDA_P2P is set, to whatever value, since it corrupts outputs on some boards.
#   - ref: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#iommu-on-linux
#     description: Peer copies through a translating IOMMU are not supported on bare metal.
# schemas:
#   - input: schema.facts
# custom:
#   severity: critical
#   confidence: confirmed
#   needs:
#     - transfers-tried
#   remedies: [nccl-p2p-disable, iommu-pt, iommu-off, iommu-remap, disable-acs, unset-env, update-bios, upgrade-driver, reset-gpu, reboot-or-reload-driver, nccl-cumem-disable, replace-hardware, disable-custom-all-reduce]
#   explains: [transfer-failed]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.p2p_broken_platform

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers

# path is the way within a GPU that a test takes: its copy engine or its SMs,
# in one process, or memory that another process exported.
path := {
	"copy": "copy engine", "copy-read": "copy engine", "bidirectional": "copy engine", "all-at-once": "copy engine",
	"sm-store": "SM", "sm-load": "SM", "handshake": "SM", "atomics": "SM", "latency": "SM",
	"between-processes": "between processes",
}

# broken are the failed transfers of each ordered pair. Where data is lost on
# the way through host memory too, it is the GPU, not the path between them.
broken[[t.source, t.destination]] contains t if {
	some ts in peers.trouble
	some t in ts
	not peers.staged_failed(t.source, t.destination)
}

failures := {direction: ts | some direction, ts in broken}

worst(ts) := "hang" if {
	"hang" in {t.outcome | some t in ts}
} else := "corrupt" if {
	"corrupt" in {t.outcome | some t in ts}
} else := "error"

# kind groups ordered pairs that fail alike, so that a broken platform with
# eight GPUs gives one finding, not 56.
kind(ts) := [worst(ts), sort({path[t.test] | some t in ts})]

kinds := {kind(ts) | some ts in failures}

findings contains {
	"subject": subject(directions),
	"affects": sort({address | some direction in directions; some address in direction}),
	"message": concat(" ", array.concat([sprintf("%s %s, although the driver offers peer access.", [what(directions, transfers), became(transfers)])], remarks(directions, transfers))),
	"evidence": evidence(directions),
	"accounts_for": accounted(directions),
	"params": {"pairs": sort({facts.pair_name(d[0], d[1]) | some d in directions}), "staged_good": staged_good(directions)},
	"severity": "critical",
	"confidence": "confirmed",
	"remedies": remedies(k, directions, transfers),
} if {
	some k in kinds
	k[1] != ["between processes"]
	directions := {direction | some direction, ts in failures; kind(ts) == k}
	transfers := {t | some direction in directions; some t in failures[direction]}
}

# Between processes alone: the driver's export of memory is at fault, and a
# single process works. Where one of the two ways is right, programs that take
# that one work; NCCL takes cuMem, unless it is told not to.
findings contains {
	"subject": subject(directions),
	"affects": sort({address | some direction in directions; some address in direction}),
	"message": sprintf("%s %s when the memory belongs to another process, while they work inside one process.%s", [
		what(directions, transfers), became(transfers), reason(transfers),
	]),
	"evidence": evidence(directions),
	"accounts_for": accounted(directions),
	"params": {"pairs": sort({facts.pair_name(d[0], d[1]) | some d in directions})},
	"severity": "high",
	"confidence": "confirmed",
	"remedies": process_remedies(directions, transfers),
} if {
	some k in kinds
	k[1] == ["between processes"]
	directions := {direction | some direction, ts in failures; kind(ts) == k}
	transfers := {t | some direction in directions; some t in failures[direction]}
}

process_remedies(directions, ts) := ["nccl-cumem-disable", "upgrade-driver"] if {
	only_fails("cuMem", "cudaIpc", directions, ts)
} else := ["upgrade-driver"] if {
	only_fails("cudaIpc", "cuMem", directions, ts)
} else := ["nccl-p2p-disable", "upgrade-driver"]

# accounted are the transfers of some ordered pairs that failed, and those that
# arrived slowly beside them.
accounted(directions) := sort({peers.named(t) |
	some d in directions
	some t in (failures[d] | slow_beside(d))
})

slow_beside(d) := {t |
	some t in peers.sluggish[peers.key(d[0], d[1])]
	[t.source, t.destination] == d
}

# only_fails is true where one way of giving memory to another process fails
# over each of these pairs, and the other is right.
only_fails(way, other, directions, ts) if {
	{t.way | some t in ts} == {way}
	every d in directions {
		some t in peers.transfers_of[peers.key(d[0], d[1])]
		t.way == other
		t.outcome in {"ok", "slow"}
	}
}

# Memory that is at fault stays so without peer-to-peer (214, 226: see
# facts.hardware_errors). Over NVLink neither firmware nor IOMMU has a part in
# it, and in a virtual machine both are the host's. Pass-through cures only what
# it is not known to be in force for.
remedies(k, directions, ts) := ["reset-gpu", "reboot-or-reload-driver", "replace-hardware"] if {
	some t in ts
	t.error_code in {214, 226}
} else := ["nccl-p2p-disable", "reset-gpu", "reboot-or-reload-driver", "upgrade-driver"] if {
	peers.under_nvlink(directions)
} else := ["nccl-p2p-disable", "upgrade-driver"] if {
	facts.is_guest == true
} else := array.concat(array.concat(["nccl-p2p-disable"], pass_through(directions)), ["update-bios", "upgrade-driver"]) if {
	k[0] != "error"
} else := array.concat(["nccl-p2p-disable", "upgrade-driver", "update-bios"], pass_through(directions))

# AMD recommends remapping for Radeon GPUs.
pass_through(directions) := ["iommu-remap"] if {
	amd.only_radeon
	input.iommu.mode in {"passthrough", "off"}
} else := [] if {
	amd.only_radeon
} else := [] if {
	every d in directions {
		every address in d {
			pci.untranslated(address)
		}
	}
} else := ["iommu-pt"]

tried := {[t.source, t.destination] | some t in facts.peer_transfers}

subject(directions) := "host" if {
	count(directions) > 2
	directions == tried
} else := facts.pair_name(first[0], first[1]) if {
	count({peers.key(d[0], d[1]) | some d in directions}) == 1
	first := sort(directions)[0]
} else := sprintf("%s and %d more", [facts.pair_name(first[0], first[1]), count(directions) - 1]) if {
	first := sort(directions)[0]
}

# mutual are the tests that concern both directions of a pair at once.
mutual := {"handshake", "bidirectional"}

only_mutual(ts) if {
	{t.test | some t in ts} - mutual == set()
}

what(directions, ts) := sprintf("Transfers from GPU %s to %s", [d[0], d[1]]) if {
	count(directions) == 1
	some d in directions
	not only_mutual(ts)
} else := sprintf("Transfers between GPUs %s and %s, in both directions,", sort(ends)) if {
	ends := {address | some d in directions; some address in d}
	count(ends) == 2
} else := sprintf("Transfers over %d of %d ordered pairs of GPUs", [count(directions), count(tried)])

# became says what happened, each outcome with its tests, the worst first.
became(ts) := concat("; others ", [words |
	some outcome in ["hang", "corrupt", "error"]
	alike := {t | some t in ts; t.outcome == outcome}
	count(alike) > 0
	words := outcome_words(outcome, alike)
])

outcome_words("hang", ts) := sprintf("do not end (%s)", [tests_text(ts)])

outcome_words("corrupt", ts) := sprintf("report success and deliver wrong data (%s: %s)", [tests_text(ts), found(ts)])

outcome_words("error", ts) := sprintf("fail with %s (%s)", [errors_text(ts), tests_text(ts)])

tests_text(ts) := concat(", ", sort({name(t) | some t in ts}))

name(t) := sprintf("%s by %s", [t.test, t.way]) if {
	t.way != ""
} else := t.test

errors_text(ts) := concat(", ", sort(names)) if {
	names := {t.error_name | some t in ts; t.error_name != ""}
	count(names) > 0
} else := sprintf("an error (%s)", [reasons_text(ts)]) if {
	reasons_text(ts)
} else := "an error"

# reasons_text is what the probe says of these transfers.
reasons_text(ts) := concat("; ", sort(reasons)) if {
	reasons := {t.reason | some t in ts; t.reason != ""}
	count(reasons) > 0
}

stood := {
	"poison": "nothing arrived",
	"zeros": "zeros stood there",
	"foreign": "the data of another transfer stood there",
	"other": "other bytes stood there",
}

found(ts) := concat("; ", array.concat(sort({stood[t.found] | some t in ts}), [amount(ts)]))

amount(ts) := sprintf("up to %s wrong, from offset %d on", [facts.bytes(max(bad)), min(first)]) if {
	bad := {t.bad_bytes | some t in ts; t.bad_bytes > 0}
	first := {t.first_bad | some t in ts; t.outcome == "corrupt"}
	count(bad) > 0
	count(first) > 0
} else := reasons_text(ts) if {
	reasons_text(ts)
} else := "bytes differ"

# reason leaves out what the name of an error has said.
reason(ts) := sprintf(" The driver or the kernel said: %s.", [concat("; ", sort(reasons))]) if {
	reasons := {t.reason | some t in ts; t.reason != ""} - {t.error_name | some t in ts; t.error_name}
	count(reasons) > 0
} else := ""

# remarks point to the part that is at fault.
remarks(directions, ts) := sort({r |
	some r in [
		one_way(directions, ts), copies_only(directions, ts), stores_only(directions, ts), not_switched_on(ts), at_times(ts),
		together_only(ts), handshake_only(ts), atomics_only(ts), staged_text(directions),
	]
	r != ""
})

one_way(directions, ts) := "It fails in one direction only." if {
	count(directions) > 0
	not only_mutual(ts)
	every d in directions {
		not failures[[d[1], d[0]]]
		count([t | some t in peers.transfers_of[peers.key(d[0], d[1])]; t.source == d[1]; t.outcome == "ok"]) > 0
	}
} else := ""

# fine is true when a test of one way through the GPU was right over each of
# these pairs.
fine(directions, way) if {
	every d in directions {
		count([t |
			some t in peers.transfers_of[peers.key(d[0], d[1])]
			t.source == d[0]
			path[t.test] == way
			t.outcome in {"ok", "slow"}
		]) > 0
	}
}

stores_only(directions, ts) := "The copy engines are right: only loads and stores of the SMs fail, which NCCL's kernels use." if {
	{path[t.test] | some t in ts} == {"SM"}
	some t in ts
	t.test in {"sm-store", "sm-load"}
	fine(directions, "copy engine")
} else := ""

copies_only(directions, ts) := "Loads and stores of the SMs are right: only the copy engines fail." if {
	{path[t.test] | some t in ts} == {"copy engine"}
	fine(directions, "SM")
	not refused_late(ts)
} else := ""

# refused_late is true where the driver offers peer access and then fails to
# switch it on, so that no transfer was begun.
refused_late(ts) if {
	some t in ts
	t.call in enabling
}

# enabling are the calls that switch peer access on.
enabling := {"cuCtxEnablePeerAccess", "hipDeviceEnablePeerAccess"}

not_switched_on(ts) := sprintf("It cannot even be switched on (%s).", [concat(", ", sort({t.call | some t in ts; t.call in enabling}))]) if {
	refused_late(ts)
} else := ""

# The probe says how many of its attempts went wrong where not all did.
at_times(ts) := "It comes and goes: tried again, the same transfer arrived right." if {
	some t in ts
	t.outcome == "corrupt"
	t.repeats < t.attempts
} else := ""

together_only(ts) := "Each pair alone is right: it fails only while all GPUs write at once." if {
	{t.test | some t in ts} == {"all-at-once"}
} else := ""

handshake_only(ts) := sprintf("Every copy is right, yet two kernels that wait for each other do not see each other's stores%s.", [sighting(ts)]) if {
	{t.test | some t in ts} == {"handshake"}
} else := ""

sighting(ts) := sprintf(": %s", [reasons_text(ts)]) if {
	reasons_text(ts)
} else := ""

atomics_only(ts) := "Copies, loads and stores are right: only atomic operations on the peer's memory get lost." if {
	{t.test | some t in ts} == {"atomics"}
} else := ""

staged_good(directions) if {
	every d in directions {
		peers.staged_good(d[0], d[1])
	}
} else := false

staged_text(directions) := "The same data through host memory arrived right, so switching peer-to-peer off works around it." if {
	staged_good(directions)
} else := ""

evidence(directions) := array.concat(
	[{
		"fact": sprintf("transfers.peers[%s].access", [facts.pair_name(d[0], d[1])]),
		"value": true,
		"source": "cuDeviceCanAccessPeer",
	} |
		some d in sort(directions)
		peers.access[d] == true
	],
	[{
		"fact": sprintf("transfers.transfers[%s]", [facts.pair_name(d[0], d[1])]),
		"value": [object.filter(t, ["test", "way", "outcome", "reason", "found", "bad_bytes", "first_bad", "error_name", "repeats"]) | some t in sort(failures[d])],
		"source": "probe",
	} |
		some d in sort(directions)
	],
)

# wrong are the copies between GPUs whose values somebody found wrong: a tensor
# that was printed before and after, a benchmark that checks (simpleP2P).
wrong contains b if {
	some b in input.benchmarks
	b.what in {"copy", "copy-read", "bidirectional"}
	b.wrong > 0
	not b.p2p == false
}

# bench_cures are what lets copies arrive: the way through host memory for NCCL's,
# and for all others what stands in their way on the platform.
bench_cures := array.concat(["nccl-p2p-disable"], platform_cures)

platform_cures := ["upgrade-driver"] if {
	facts.is_guest == true
} else := ["disable-acs", "iommu-remap", "update-bios", "upgrade-driver"] if {
	amd.only_radeon
} else := ["iommu-pt", "iommu-off", "disable-acs", "update-bios", "upgrade-driver"]

findings contains {
	"subject": "host",
	"message": sprintf("A copy between GPUs reports success and delivers wrong data (%s). On bare metal that is the mark of an IOMMU that translates, or of ACS that redirects, on the way.", [
		concat("; ", sort({bench_words(b) | some b in wrong})),
	]),
	"evidence": [{"fact": sprintf("benchmarks[%s].wrong", [b.tool]), "value": b.wrong, "source": logs.at(b)} | some b in sort(wrong)],
	"params": platform,
	"severity": "critical",
	"confidence": "confirmed",
	"remedies": bench_cures,
} if {
	count(wrong) > 0
	count(failures) == 0
}

bench_words(b) := sprintf("%s, %s to %s", [b.test, b.points[0].a, b.points[0].b]) if {
	b.points[0].a != ""
} else := b.tool

# platform names whose IOMMU it is, where that is known: the kernel parameter bears
# its name.
default platform := {}

platform := {"vendor": cpu_vendor}

cpu_vendor := input.iommu.vendor if {
	input.iommu.vendor in {"intel", "amd"}
} else := "amd" if {
	input.host.cpu.vendor == "AuthenticAMD"
} else := "intel" if {
	input.host.cpu.vendor == "GenuineIntel"
} else := "amd" if {
	regex.match(`EPYC|Ryzen|AMD`, input.host.cpu.model)
} else := "intel" if {
	regex.match(`Intel|Xeon`, input.host.cpu.model)
}

# told_wrong are the transfers of NCCL's own check whose data arrived wrong, by
# whether NVLink joins the two GPUs.
told_wrong[over_nvlink] contains m if {
	some m in logs.by_id["nccl-diag-p2p-mismatch"]
	over_nvlink := m.fields.path in {"NVL", "NVB", "XGMI", "C2C"}
}

findings contains {
	"subject": "host",
	"message": sprintf("NCCL's own check moved data between GPUs and found other bytes there, although the driver offers peer access: %s.%s", [
		facts.list({sprintf("GPU %s to %s over %s (%s)", [m.fields.from, m.fields.to, m.fields.path, m.fields.what]) | some m in ms}),
		{true: "", false: " On bare metal the first suspects are an IOMMU that translates and ACS that redirects."}[over_nvlink],
	]),
	"evidence": array.slice(logs.all_evidence(ms), 0, 4),
	"order": logs.first(ms).order,
	"params": object.union(platform, {"gpus": all_gpus}),
	"severity": "critical",
	"confidence": "confirmed",
	"remedies": {true: ["nccl-p2p-disable", "reset-gpu", "reboot-or-reload-driver", "replace-hardware"], false: bench_cures}[over_nvlink],
} if {
	some over_nvlink, ms in told_wrong
	count(failures) == 0
}

# A collective that does not begin to move over peer-to-peer transfers which cross
# PCIe, and nothing else is known against it: the transfers do not arrive, which on
# bare metal is the work of ACS or of an IOMMU (NCCL user guide, troubleshooting). A
# text that was cut looks the same.
standing_still if {
	count(logs.stalled) > 0
	count(logs.complaints) == 0
	count(over_peers) > 0
	not networks.multi_node
	not amd.present
	not nvlink_shown
	on_pcie
}

# over_peers are the channels that NCCL made over peer access between processes or
# within one.
over_peers contains t if {
	some t in input.logs.transports
	startswith(t.kind, "p2p")
}

nvlink_shown if {
	some p in facts.gpu_pairs
	peers.joined(p) == "nvlink"
}

nvlink_shown if {
	some g in input.gpus.devices
	count(object.get(g, "nvlinks", [])) > 0
}

# on_pcie is true where a matrix shows PCIe between GPUs, or the model is a card.
on_pcie if peers.over_pcie

on_pcie if {
	some m in gpu_models.model
	m.form == "card"
	not m.nvlink == "pair"
}

findings contains {
	"subject": "host",
	"message": "A collective over peer-to-peer transfers that cross PCIe began and has not moved anything. Unless the text was cut: on bare metal, ACS that redirects and an IOMMU that translates keep such transfers from arriving; with NCCL_P2P_DISABLE=1 it then runs",
	"evidence": sort(logs.stalled),
	"params": object.union(platform, {"gpus": all_gpus}),
	"severity": "medium",
	"confidence": "possible",
	"remedies": ["nccl-p2p-disable", "disable-acs", "iommu-pt", "iommu-off", "update-bios", "upgrade-driver"],
} if {
	standing_still
	count(failures) == 0
}

all_gpus := [] if {
	not facts.gpus
} else := sort(facts.gpus)

# A mapping inside of one process needs no permission of the container: what
# refuses it is the driver.
direct_refused := {m |
	some m in logs.by_id["nccl-diag-p2p-import"]
	m.fields.handle == "DIRECT"
	m.fields.what == "peer-memory import failed"
}

findings contains {
	"subject": "host",
	"message": sprintf("NCCL's own check could not map the memory of a peer GPU within one process (%s), although the driver offers peer access.", [
		facts.list({sprintf("GPU %s to %s over %s", [m.fields.from, m.fields.to, m.fields.path]) | some m in direct_refused}),
	]),
	"evidence": array.slice(logs.all_evidence(direct_refused), 0, 4),
	"order": logs.first(direct_refused).order,
	"params": platform,
	"severity": "high",
	"confidence": "likely",
	"remedies": ["nccl-p2p-disable", "nccl-cumem-disable", "upgrade-driver"],
} if {
	count(direct_refused) > 0
}

# broken_off are the benchmarks of peer copies that do not end: their table stops
# where peer access comes on.
broken_off contains b if {
	some b in input.benchmarks
	b.tool in {"p2pBandwidthLatencyTest", "simpleP2P"}
	b.complete == false
}

findings contains {
	"subject": "host",
	"message": sprintf("%s does not come to its end: copies with peer access hang or fail.", [concat(", ", sort({b.tool | some b in broken_off}))]),
	"evidence": [{"fact": sprintf("benchmarks[%s].complete", [b.tool]), "value": false, "source": logs.at(b)} | some b in sort(broken_off)],
	"params": platform,
	"severity": "high",
	"confidence": "possible",
	"remedies": bench_cures,
} if {
	count(broken_off) > 0
	count(wrong) + count(failures) == 0
	count(refused_mapping) == 0
}

refused_mapping := {m | some m in logs.complaints; contains(m.text, "mapping of buffer object failed")}

# compared are two runs of one benchmark: the one does not end, and the other, with
# peer access switched off, does. That is the check which NVIDIA asks for first.
compared contains b if {
	some b in input.benchmarks
	b.what == "collective"
	b.complete == false
	count(object.get(b, "points", [])) == 0
	b.ranks > 1
	some other in input.benchmarks
	other.what == "collective"
	count(object.get(other, "points", [])) > 0
	switched_off
}

switched_off if {
	some v in input.env.variables
	v.name == "NCCL_P2P_DISABLE"
	v.value == "1"
}

findings contains {
	"subject": "host",
	"message": "A collective does not end with peer access, and does without it (NCCL_P2P_DISABLE=1): the driver offers peer access that does not work on this platform. On bare metal the first suspects are an IOMMU that translates and ACS that redirects.",
	"evidence": [{"fact": "benchmarks", "value": b.test, "source": logs.at(b)} | some b in sort(compared)],
	"params": platform,
	"severity": "critical",
	"confidence": "likely",
	"remedies": bench_cures,
} if {
	count(compared) > 0
	count(failures) == 0
}

# told_needed are sentences by which somebody says that a program runs only with peer
# access off. On AMD's GPUs rule rccl-p2p-transport weighs them.
told_needed := logs.messages({"prose-p2p-off-needed"})

findings contains {
	"subject": "host",
	"message": "A program runs only with NCCL_P2P_DISABLE=1: the driver offers peer access that does not work here. On bare metal the first suspects are an IOMMU that translates and ACS that redirects; gpudoctor probe p2p --probe full tells which transfers fail.",
	"evidence": array.slice(logs.all_evidence(told_needed), 0, 2),
	"order": logs.first(told_needed).order,
	"params": platform,
	"severity": "high",
	"confidence": "possible",
	"remedies": bench_cures,
} if {
	count(told_needed) > 0
	not amd.present
	count(wrong) + count(failures) == 0
}

# late are the latencies of p2pBandwidthLatencyTest with peer access that no path
# has: its kernel waits for a word that does not arrive until a limit of tens of
# milliseconds ends the wait (49206 us in transformers issue 20438), where the
# slowest path through two sockets takes some 50 us.
late contains b if {
	some b in input.benchmarks
	b.what == "latency"
	b.p2p == true
	some p in b.points
	p.microseconds > 1000
}

findings contains {
	"subject": "host",
	"message": sprintf("With peer access the latency between GPUs is up to %v us, where any path takes less than 100: what one GPU writes does not reach the other, and the test waits in vain. On bare metal that is the mark of an IOMMU that translates, or of ACS that redirects, on the way.", [
		round(max({p.microseconds | some b in late; some p in b.points})),
	]),
	"evidence": [{"fact": sprintf("benchmarks[%s].points", [b.tool]), "value": max({p.microseconds | some p in b.points}), "source": logs.at(b)} | some b in sort(late)],
	"params": platform,
	"severity": "critical",
	"confidence": "likely",
	"remedies": bench_cures,
} if {
	count(late) > 0
	count(wrong) + count(failures) == 0
}

# forced are variables by which a program uses peer access that it would leave
# off, or does not test first. llama.cpp heeds that its own is set, not the value.
# Over NVLink that is right.
forced[name] := v if {
	some name in {"GGML_CUDA_P2P", "VLLM_SKIP_P2P_CHECK", "SGLANG_SKIP_P2P_CHECK"}
	v := facts.variable[name]
	not left_off(name, v.value)
}

left_off(name, value) if {
	name != "GGML_CUDA_P2P"
	lower(value) in {"0", "", "false"}
}

# garbage is what a model writes when its weights or activations arrive wrong.
garbage := logs.messages({"model-output-degenerate"})

findings contains object.union(
	{
		"subject": name,
		"message": sprintf("%s is set (to %q), by which the program uses peer access between the GPUs without a test, and no NVLink joins them: peer copies over PCIe are lost on machines whose IOMMU or ACS stands in their way, and the model then writes garbage.%s", [
			name, v.value, garbage_words,
		]),
		"evidence": array.concat([{"fact": sprintf("env.variables[%s]", [name]), "value": v.value, "source": variable_at(v)}], logs.all_evidence(garbage)),
		"params": {"variable": name},
		"severity": forced_grade[0],
		"confidence": forced_grade[1],
		"remedies": forced_cures,
	},
	when_garbage,
) if {
	some name, v in forced
	only_pcie
	count(wrong) + count(failures) == 0
}

only_pcie if peers.over_pcie

# Radeon cards have no link but PCIe, except a few with a bridge (Radeon Pro VII,
# W6800X Duo). Where llama.cpp lists several, peer access goes over it.
only_pcie if count(radeons) > 1

radeons := {m.fields.index |
	some m in logs.by_id["ggml-rocm-device"]
	regex.match(`Radeon.*(?:RX|R9700|W[67][0-9]{3}\b)`, m.fields.name)
}

variable_at(v) := sprintf("%s:%d", [v.source, v.line]) if {
	v.line > 0
} else := v.source

# RCCL has a switch of its own, beside the program's.
default forced_cures := ["unset-env", "iommu-pt"]

forced_cures := ["unset-env", "nccl-p2p-disable", "iommu-pt"] if count(radeons) > 1

default garbage_words := ""

garbage_words := " So it does here." if count(garbage) > 0

default forced_grade := ["low", "possible"]

forced_grade := ["critical", "likely"] if count(garbage) > 0

default when_garbage := {}

when_garbage := {"order": logs.first(garbage).order} if count(garbage) > 0

# A collective that never ends, between GeForce cards: drivers 525 to 535 offered
# peer access between Ada cards where there is none that works (NVIDIA/nccl-tests
# issue 117), and modified drivers offer it on platforms that lose it.
stuck contains c if {
	some c in input.logs.communicators
	c.library == "nccl"
	count(newer_geforce) > 1
	count(went_on) == 0
	count(staged_way) == 0
	count(told_off) == 0
}

newer_geforce := {g |
	some g in input.gpus.devices
	model := gpu_models.model[g.name]
	model.geforce
	model.architecture in {"ada", "blackwell"}
}

# A log that ends early may have been cut by whoever sent it: without a
# complaint it is worth knowing and no more.
default stuck_grade := "low"

stuck_grade := "high" if count(logs.complaints) > 0

# went_on are the signs that collectives ran: a table with values.
went_on := {b | some b in input.benchmarks; b.what == "collective"; count(b.points) > 0}

# staged_way are the transports by which the log shows that peer access is not
# used.
staged_way := {t | some t in input.logs.transports; t.kind in {"shm", "net", "collnet"}}

told_off := {v |
	some v in input.env.variables
	v.name == "NCCL_P2P_DISABLE"
	v.value == "1"
} | {m | some m in logs.complaints; m.role == "cause"}

findings contains {
	"subject": "host",
	"message": "NCCL's log ends after its communicator was made, between GeForce cards that no NVLink joins: where the driver offers them peer access that does not work (525 to 535 did so for Ada cards, modified drivers do), the first collective hangs.",
	"evidence": [{"fact": "logs.communicators", "value": c.ranks, "source": logs.at(c)} | some c in sort(stuck)],
	"params": platform,
	"severity": stuck_grade,
	"confidence": "possible",
	"remedies": ["nccl-p2p-disable", "upgrade-driver", "iommu-pt"],
} if {
	count(stuck) > 0
	(count(wrong) + count(failures)) + count(broken_off) == 0
}

# unmoved are the signs that a job's very first collective never ended: the first
# number of a process group at the watchdog, none completed when it gave up, or
# vLLM's workers that do not answer while their GPUs compute without end.
unmoved contains m if {
	some m in logs.by_id["torch-watchdog-timeout"]
	m.fields.seq == "1"
}

unmoved contains m if {
	some m in logs.by_id["torch-work-status"]
	m.fields.completed == "-1"
}

unmoved contains m if {
	some m in logs.by_id["vllm-workers-stuck"]
	spinning
}

# spinning is true where all GPUs are shown busy: the kernels of a collective wait
# in a loop, so that its ranks have come to it, and none is late or still loads.
spinning if {
	count(input.gpus.devices) > 1
	every g in input.gpus.devices {
		g.utilization_percent >= 95
	}
}

# trials are command lines that switch peer access off by themselves, and no
# complaint follows in their text: somebody tried what it changes.
trials contains l if {
	some l in input.launches
	l.variables.NCCL_P2P_DISABLE == "1"
	count({m | some m in logs.complaints; m.source == l.source; m.line > l.line}) == 0
}

# served_then is true where such a trial came as far as to answer.
served_then if {
	some l in trials
	some m in logs.by_id["server-ready"]
	m.source == l.source
	m.line > l.line
}

# kept_off is true where peer access was off in the run that failed, too.
kept_off if {
	some v in input.env.variables
	v.name in {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL"}
	v.value in {"1", "LOC"}
	count({l | some l in trials; l.source == v.source; l.line == v.line}) == 0
}

# A watchdog's timeout names no cause. On one machine, between cards that PCIe
# joins, a first collective that all ranks came to and none leaves is peer access
# that does not work; a slow rank alone looks the same where nothing shows the GPUs
# busy (vllm issues 5484 and 14025, lightning issue 19425, SkyRL pull 325).
findings contains {
	"subject": "host",
	"message": sprintf("The first collective of the job never ended (%s), on one machine whose GPUs reach each other over PCIe%s. Either peer-to-peer transfers are lost on the way, as by a translating IOMMU, ACS or a driver that offers access which does not work, or a rank came late; NCCL_P2P_DISABLE=1 tells the two apart", [logs.at(first_unmoved), spinning_words]),
	"evidence": array.slice(logs.all_evidence(unmoved), 0, 3),
	"params": object.union(platform, {"gpus": all_gpus}),
	"severity": "high",
	"confidence": unmoved_confidence,
	"order": first_unmoved.order,
	"remedies": array.concat(unmoved_first, platform_cures),
} if {
	count(unmoved) > 0
	not elsewhere
	(count(wrong) + count(failures)) + count(broken_off) == 0
}

first_unmoved := logs.first(unmoved)

default spinning_words := ""

spinning_words := ", and runs with peer access switched off (NCCL_P2P_DISABLE=1)" if {
	served_then
} else := ", and all of them are busy without end" if spinning

default unmoved_confidence := "possible"

unmoved_confidence := "likely" if served_then

unmoved_confidence := "likely" if spinning

default unmoved_first := ["nccl-p2p-disable"]

unmoved_first := ["nccl-p2p-disable", "disable-custom-all-reduce"] if logs.said("vllm-workers-stuck")

# elsewhere is true where the texts show another reason, another way than peer
# access over PCIe, or several machines.
elsewhere if count({m | some m in logs.complaints; m.role == "cause"}) > 0

elsewhere if networks.multi_node

elsewhere if amd.present

elsewhere if nvlink_shown

elsewhere if not on_pcie

elsewhere if kept_off

elsewhere if count(staged_way) > 0

elsewhere if count(went_on) > 0

missing contains {"fact": "transfers", "words": "the probe did not run, so no transfer was tried"} if {
	several
	not facts.peer_transfers
}

missing contains {"fact": "transfers", "words": sprintf("the probe stopped (%s)", [input.transfers.outcome])} if {
	several
	input.transfers.outcome != "ok"
	count(facts.peer_transfers) == 0
}

# Who knows of no GPU has nothing to miss; two are needed.
several if count(facts.gpus) > 1

several if not facts.gpus

not_applicable contains "the driver offers fewer than two GPUs here" if {
	input.transfers.outcome == "ok"
	count(input.transfers.devices) < 2
}

not_applicable contains "fewer than two GPUs" if not several

not_applicable contains "the driver offers no peer access between these GPUs" if {
	several
	count(peers.access) > 0
	every answer in peers.access {
		answer == false
	}
}
