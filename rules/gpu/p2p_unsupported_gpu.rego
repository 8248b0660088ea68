# METADATA
# title: The driver offers no peer access between GPUs
# description: >-
#   The driver does not support direct access between these GPUs. Nothing is broken: NCCL falls back to host memory
#   automatically. This costs bandwidth and latency, and is unexpected on data center and workstation GPUs.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__PEER__ACCESS.html
#     description: cuDeviceCanAccessPeer determines support; NVIDIA publishes no list of models.
#   - ref: https://github.com/NVIDIA/open-gpu-kernel-modules/blob/main/src/nvidia/src/kernel/platform/p2p/p2p_caps.c
#     description: The conditions under which the driver does not offer peer access.
# custom:
#   severity: low
#   confidence: confirmed
#   areas: [paths]
#   needs:
#     - links.pairs
#     - ["links.pairs[].p2p.read", "transfers.peers[].access", "links.pairs[].accessible"]
#   remedies: [nccl-p2p-disable, disable-custom-all-reduce, upgrade-driver, update-bios, remove-module-parameter, reboot-or-reload-driver, enable-rebar, plan-without-peer-access]
#   explains: [collective-slow]
#   since: "0.1"
#   grades:
#     refused: "No peer access between {pairs}: {answers}. {meaning}"
package gpudoctor.rules.p2p_unsupported_gpu

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.peers

# answers are what NVML says of a pair's reads and writes, where it refuses; else what the CUDA driver says, to the probe
# or to a program, or AMD's driver. In the same xGMI hive that is a fault, which amd-xgmi reports.
answers(p) := peers.refusals(p) if {
	count(peers.refusals(p)) > 0
} else := {"cuda"} if {
	peers.refused(p)
} else := {"cuda"} if {
	p.read == "not-supported"
	p.write == "not-supported"
} else := {"amd"} if {
	p.accessible == false
	object.get(p, "link_type", "") != "xgmi"
}

meaning := {
	"chipset-not-supported": ["chipset not supported (CNS)", "The driver does not allow peer reads through this processor's root complex; GPUs below one switch are not affected"],
	"gpu-not-supported": ["GPU not supported (GNS)", "The driver disables peer access over PCIe for this model, which is normal for GeForce cards"],
	"topology-not-supported": ["topology not supported (TNS)", "The GPUs are below different root complexes of a chipset that does not forward between them"],
	"disabled-by-regkey": ["disabled by a driver parameter (DR)", "A module parameter of the NVIDIA driver (RMForceP2PType or similar) disables it"],
	"not-supported": ["not supported (NS)", "The driver gives no specific reason; known ones are MIG, GPUs of different models, vGPU, virtual machines and confidential computing"],
	"cuda": ["refused by CUDA", "Programs that check first use host memory"],
	"amd": ["AMD's driver offers none", "It requires BARs that cover all memory, and a platform that forwards peer traffic on the path"],
}

# grade is how much a refusal matters: over NVLink it should be offered, and some limits are in the design of cards,
# chipset or machine, which no setting changes.
grade(p) := ["high", "NVLink connects them, so it should be offered: check the fabric and the state of the driver"] if {
	p.nvlinks > 0
	peers.whole(p.a)
	peers.whole(p.b)
} else := ["medium", "This is unexpected on this model"] if {
	count(answers(p) - {"chipset-not-supported", "topology-not-supported", "cuda", "amd"}) > 0
	not facts.is_guest == true
	facts.gpu[p.a].name == facts.gpu[p.b].name
	every address in [p.a, p.b] {
		peers.whole(address)
		not limited(address)
	}
} else := ["low", ""]

limited(address) if regex.match(`GeForce|TITAN`, facts.gpu[address].name)
limited(address) if facts.gpu[address].virtualization_mode == "vgpu"

# NCCL needs no setting to skip peer access that does not exist.
remedies(severity, answers) := ["remove-module-parameter"] if {
	"disabled-by-regkey" in answers
} else := ["nccl-p2p-disable", "enable-rebar"] if {
	"amd" in answers
} else := ["plan-without-peer-access"] if {
	severity == "low"
} else := ["reboot-or-reload-driver", "upgrade-driver", "update-bios"]

alike[[grade(p), sort(answers(p))]] contains p if some p in facts.gpu_pairs

# Texts may tell what CUDA answered one of its programs where the paths are not known.
alike[[grade(p), sort(answers(p))]] contains p if {
	not facts.gpu_pairs
	count({p | some p in input.gpus.p2p; p.read == "ok"}) == 0
	some p in input.gpus.p2p
}

findings contains {
	"grade": "refused",
	"subject": peers.shorten({facts.pair_name(p.a, p.b) | some p in pairs}),
	"affects": sort(peers.ends(pairs)),
	"about": {
		"pairs": peers.pairs_text(pairs),
		"answers": {meaning[answer][0] | some answer in told},
		"meaning": concat(". ", array.concat([said | said != ""], [meaning[answer][1] | some answer in told])),
	},
	"evidence": array.flatten([shown(p) | some p in sort(pairs)]),
	"severity": severity,
	"remedies": remedies(severity, told),
} if some [[severity, said], told], pairs in alike

shown(p) := array.flatten([
	[evidence(sprintf("links.pairs[%s].p2p", [name]), object.filter(p.p2p, ["read", "write"]), "nvmlDeviceGetP2PStatus") | p.p2p.read],
	[evidence(sprintf("links.pairs[%s].accessible", [name]), false, "the driver's topology") | p.accessible == false],
	[evidence(sprintf("gpus.p2p[%s]", [name]), p.read, "cudaDeviceCanAccessPeer") | p.read],
	[evidence(sprintf("transfers.peers[%s].access", [facts.pair_name(d[0], d[1])]), false, "cuDeviceCanAccessPeer") |
		some d in [[p.a, p.b], [p.b, p.a]]
		peers.access[d] == false
	],
]) if name := facts.pair_name(p.a, p.b)

evidence(fact, value, source) := {"fact": fact, "value": value, "source": source}

missing contains {"fact": "links.pairs[].p2p", "words": "neither NVML nor the CUDA driver was queried for peer access"} if {
	some p in facts.gpu_pairs
	not answered(p)
}

answered(p) if p.p2p.read
answered(p) if is_boolean(peers.access[[p.a, p.b]])
answered(p) if is_boolean(p.accessible)

not_applicable contains "fewer than two GPUs" if not facts.several
