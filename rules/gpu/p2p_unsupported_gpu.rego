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
#   - ref: https://github.com/huggingface/accelerate/blob/v1.0.0/src/accelerate/state.py
#     description: Accelerate stops on GeForce RTX 4000 cards unless peer access and InfiniBand are disabled in NCCL.
# custom:
#   severity: low
#   confidence: confirmed
#   areas: [paths]
#   needs:
#     - ["links.pairs[].p2p.read", "transfers.peers[].access"]
#   remedies: [nccl-p2p-disable, disable-custom-all-reduce, upgrade-driver, update-bios, remove-module-parameter, disable-mig, reboot-or-reload-driver, enable-rebar, plan-without-peer-access]
#   explains: [collective-slow]
#   since: "0.1"
#   grades:
#     refused: "No peer access between {pairs}: {answers}. {meaning}"
#     stopped:
#       severity: critical
#       text: "The program stops because the driver offers no peer access between these GPUs[ ({models})]"
package gpudoctor.rules.p2p_unsupported_gpu

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.peers

# answers are what NVML says of a pair's reads and writes, where it refuses; else what the CUDA driver says, to the probe
# or to a program, or AMD's driver. In the same xGMI hive that is a fault, which amd-xgmi reports.
answers(p) := peers.refusals(p) if {
	count(peers.refusals(p)) > 0
} else := {"cuda"} if {
	peers.refused(p)
	"ok" in {p.p2p.read, p.p2p.write}
} else := {"cuda-alone"} if {
	peers.refused(p)
} else := {"cuda-alone"} if {
	p.read == "not-supported"
	p.write == "not-supported"
} else := {"amd"} if {
	p.accessible == false
	object.get(p, "link_type", "") != "xgmi"
	every address in [p.a, p.b] {
		facts.gpu[address].vendor == "amd"
	}
}

meaning := {
	"chipset-not-supported": ["chipset not supported (CNS)", "The driver does not allow peer reads through this processor's root complex; GPUs below one switch are not affected"],
	"gpu-not-supported": ["GPU not supported (GNS)", "The driver disables peer access over PCIe for this model, which is normal for GeForce cards"],
	"topology-not-supported": ["topology not supported (TNS)", "The GPUs are below different root complexes of a chipset that does not forward between them"],
	"disabled-by-regkey": ["disabled by a driver parameter (DR)", "A module parameter of the NVIDIA driver (RMForceP2PType or similar) disables it"],
	"not-supported": ["not supported (NS)", "The driver gives no specific reason; known ones are MIG, GPUs of different models, vGPU, virtual machines and confidential computing"],
	"cuda": ["refused by CUDA although NVML says OK", "This process sees something different from the machine: partitions, a container or the driver's libraries"],
	"cuda-alone": ["refused by CUDA", "Programs that check first use host memory"],
	"amd": [
		"AMD's driver offers none",
		"It requires a BAR that covers all memory on both, and a platform that forwards peer traffic on the path, which is often not the case between the root complexes of two sockets",
	],
}

limited(address) if regex.match(`GeForce|TITAN`, facts.gpu[address].name)
limited(address) if facts.gpu[address].virtualization_mode == "vgpu"

# expected_answers come from the design of a platform; a better one is another machine, not another setting.
expected_answers := {"chipset-not-supported", "topology-not-supported", "cuda-alone", "amd"}

class(p) := "nvlink" if {
	p.nvlinks > 0
	peers.whole(p.a)
	peers.whole(p.b)
} else := "partitioned" if {
	some address in [p.a, p.b]
	facts.gpu[address].mig == true
} else := "amd" if {
	answers(p) == {"amd"}
} else := "unexpected" if {
	count(answers(p) - expected_answers) > 0
	not facts.is_guest == true
	facts.gpu[p.a].name == facts.gpu[p.b].name
	every address in [p.a, p.b] {
		peers.whole(address)
		not limited(address)
	}
} else := "expected"

# weight is how much a refusal matters, what to say of it, and what helps: a limit in the design of cards, chipset or
# machine has no remedy, and NCCL needs no setting to skip peer access that does not exist.
weight := {
	"nvlink": ["high", ["NVLink connects them, so it should be offered: check the fabric and the state of the driver"], ["reboot-or-reload-driver", "upgrade-driver"]],
	"partitioned": ["low", ["MIG is enabled"], ["disable-mig"]],
	"amd": ["low", [], ["nccl-p2p-disable", "enable-rebar"]],
	"unexpected": ["medium", ["This is unexpected on this model"], ["upgrade-driver", "update-bios"]],
	"expected": ["low", [], ["plan-without-peer-access"]],
}

refused contains p if {
	some p in facts.gpu_pairs
	count(answers(p)) > 0
}

# Texts may tell what CUDA answered one of its programs where the paths are not known.
refused contains p if {
	not facts.gpu_pairs
	count({p | some p in input.gpus.p2p; p.read == "ok"}) == 0
	some p in input.gpus.p2p
	count(answers(p)) > 0
}

findings contains {
	"grade": "refused",
	"subject": subject(pairs),
	"affects": sort(peers.ends(pairs)),
	"about": {
		"pairs": peers.pairs_text(pairs),
		"answers": {meaning[answer][0] | some answer in k[1]},
		"meaning": concat(". ", array.concat(weight[k[0]][1], [meaning[answer][1] | some answer in k[1]; k[0] != "partitioned"])),
	},
	"evidence": evidence(pairs),
	"params": {"gpus": {address | some address in peers.ends(pairs); facts.gpu[address].mig == true}},
	"severity": weight[k[0]][0],
	"remedies": remedies(k),
} if some k, pairs in alike

alike[[class(p), sort(answers(p))]] contains p if some p in refused

# stopped are the messages with which a program exits because it lacks peer access: Accelerate's check of the model, and
# the driver's error 217 (cudaErrorPeerAccessUnsupported), which a program gets if it uses peer access without checking
# whether it is supported. NCCL checks before it uses peer access (src/transport/p2p.cc, p2pCanConnect); its own error
# 217 is about other memory.
stopped := logs.messages({"accelerate-peer-access-unsupported", "cuda-peer-unsupported", "hip-peer-access-failed"}) | own_all_reduce

# own_all_reduce are those of a server's custom all-reduce, which ignores NCCL's variables.
own_all_reduce := logs.messages({"trtllm-no-peer-access"}) | {m |
	some m in logs.by_id["vllm-custom-all-reduce-failed"]
	m.fields.error == "peer access is not supported between these two devices"
}

findings contains {
	"grade": "stopped",
	"subject": "host",
	"about": {"models": {g.name | some g in input.gpus.devices; g.name != ""}},
	"messages": stopped,
	"remedies": array.concat([r | some r in ["disable-custom-all-reduce"]; count(own_all_reduce) > 0], ["nccl-p2p-disable"]),
} if count(stopped) > 0

subject(pairs) := "host" if {
	count(pairs) > 1
	pairs == facts.gpu_pairs
} else := facts.pair_name(p.a, p.b) if {
	count(pairs) == 1
	some p in pairs
} else := sprintf("%s and %d more", [facts.pair_name(first.a, first.b), count(pairs) - 1]) if first := sort(pairs)[0]

remedies(k) := ["remove-module-parameter"] if {
	"disabled-by-regkey" in k[1]
	k[0] != "partitioned"
} else := ["reboot-or-reload-driver", "upgrade-driver"] if {
	k[0] == "unexpected"
	"cuda" in k[1]
} else := weight[k[0]][2]

evidence(pairs) := array.flatten([
	[{"fact": sprintf("links.pairs[%s].p2p.%s", [facts.pair_name(p.a, p.b), capability]), "value": answer, "source": "nvmlDeviceGetP2PStatus"} |
		some p in sort(pairs)
		some capability in ["read", "write"]
		answer := p.p2p[capability]
	],
	[{"fact": sprintf("transfers.peers[%s].access", [facts.pair_name(d[0], d[1])]), "value": false, "source": "cuDeviceCanAccessPeer"} |
		some p in sort(pairs)
		some d in [[p.a, p.b], [p.b, p.a]]
		peers.access[d] == false
	],
	[{"fact": sprintf("links.pairs[%s].accessible", [facts.pair_name(p.a, p.b)]), "value": false, "source": "the driver's topology"} |
		some p in sort(pairs)
		p.accessible == false
	],
	[{"fact": sprintf("gpus.p2p[%s]", [facts.pair_name(p.a, p.b)]), "value": p.read, "source": "cudaDeviceCanAccessPeer"} |
		some p in array.slice(sort(pairs), 0, 4)
		p.read
	],
])

told(p) if p.p2p.read
told(p) if is_boolean(peers.access[[p.a, p.b]])
told(p) if is_boolean(p.accessible)

missing contains {"fact": "links.pairs[].p2p", "words": "neither NVML nor the CUDA driver was queried for peer access"} if {
	some p in facts.gpu_pairs
	not told(p)
}

asks contains "links.pairs" if count(object.get(input, ["gpus", "p2p"], [])) == 0

not_applicable contains "fewer than two GPUs" if not facts.several
not_applicable contains "fewer than two GPUs" if count(facts.gpu_pairs) == 0
