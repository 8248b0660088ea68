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
package gpudoctor.rules.p2p_unsupported_gpu

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.peers

# answers are what NVML says of a pair's reads and writes, where it refuses; else what the CUDA driver says.
answers(p) := peers.refusals(p) if {
	count(peers.refusals(p)) > 0
} else := {"cuda"} if {
	peers.refused(p)
	"ok" in {p.p2p.read, p.p2p.write}
} else := {"cuda-alone"} if {
	peers.refused(p)
}

meaning := {
	"chipset-not-supported": ["chipset not supported (CNS)", "The driver does not allow peer reads through this processor's root complex; GPUs below one switch are not affected."],
	"gpu-not-supported": ["GPU not supported (GNS)", "The driver disables peer access over PCIe for this model, as for GeForce cards."],
	"topology-not-supported": ["topology not supported (TNS)", "The GPUs are below different root complexes of a chipset that does not forward between them."],
	"disabled-by-regkey": ["disabled by a driver parameter (DR)", "A module parameter of the NVIDIA driver (RMForceP2PType or similar) disables it."],
	"not-supported": ["not supported (NS)", "The driver gives no specific reason; known ones are GPUs of different models, vGPU and confidential computing."],
	"cuda": ["refused by CUDA although NVML says OK", "This process sees something different from the machine: partitions, a container or the driver's libraries."],
	"cuda-alone": ["refused by CUDA", "NVML gave no reason."],
}

# expected_answers come from the design of a platform; a better one is another machine, not another setting.
expected_answers := {"chipset-not-supported", "topology-not-supported", "cuda-alone"}

partitioned(address) if facts.gpu[address].mig == true

# class says how unexpected a refusal is for one pair.
class(p) := "nvlink" if {
	p.nvlinks > 0
	peers.whole(p.a)
	peers.whole(p.b)
} else := "partitioned" if {
	some address in [p.a, p.b]
	partitioned(address)
} else := "vgpu" if {
	some address in [p.a, p.b]
	facts.gpu[address].virtualization_mode == "vgpu"
} else := "consumer" if {
	some address in [p.a, p.b]
	regex.match(`GeForce|TITAN`, facts.gpu[address].name) # Their drivers offer no peer access over PCIe.
} else := "mixed" if {
	answers(p) == {"not-supported"}
	facts.gpu[p.a].name != facts.gpu[p.b].name
} else := "guest" if {
	facts.is_guest == true
} else := "unexpected" if {
	count(answers(p) - expected_answers) > 0
	every address in [p.a, p.b] {
		facts.gpu[address].name != ""
		peers.whole(address)
	}
} else := "unknown"

# weight is how much a refusal matters, what to say of it, and what helps: a limit in the design of cards, chipset or
# machine has no remedy, and NCCL needs no setting to skip peer access that does not exist.
weight := {
	"nvlink": ["high", " NVLink connects them, so it should be offered: check the fabric and the state of the driver.", ["reboot-or-reload-driver", "upgrade-driver"]],
	"partitioned": ["low", " MIG is enabled.", ["disable-mig"]],
	"vgpu": ["low", " They are vGPUs: the host's profile determines it.", ["plan-without-peer-access"]],
	"consumer": ["low", " These are consumer cards, for which this is normal.", ["plan-without-peer-access"]],
	"mixed": ["low", " They are of different models, between which the driver does not support it.", ["plan-without-peer-access"]],
	"guest": ["low", " In a virtual machine, the host's topology and settings determine it.", ["plan-without-peer-access"]],
	"unexpected": ["medium", " This is unexpected on this model.", ["upgrade-driver", "update-bios"]],
	"unknown": ["low", "", ["plan-without-peer-access"]],
}

refused contains p if {
	some p in facts.gpu_pairs
	count(answers(p)) > 0
}

kind(p) := [class(p), sort(answers(p))]

findings contains {
	"subject": subject(pairs),
	"affects": sort(peers.ends(pairs)),
	"message": trim_space(sprintf("No peer access between %s: %s.%s%s %s", [
		peers.pairs_text(pairs),
		concat(", ", [meaning[answer][0] | some answer in k[1]]),
		weight[k[0]][1],
		contradiction(pairs),
		concat(" ", [meaning[answer][1] | some answer in k[1]; k[0] in {"nvlink", "consumer", "unexpected", "unknown"}]),
	])),
	"evidence": evidence(pairs),
	"params": {"gpus": {address | some address in peers.ends(pairs); partitioned(address)}},
	"severity": weight[k[0]][0],
	"remedies": remedies(k),
} if {
	some k in {kind(p) | some p in refused}
	pairs := {p | some p in refused; kind(p) == k}
}

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
	"subject": "host",
	"message": sprintf("The program stops because the driver offers no peer access between these GPUs%s.", [models]),
	"messages": stopped,
	"severity": "critical",
	"remedies": stopped_cure,
} if {
	count(stopped) > 0
}

default stopped_cure := ["nccl-p2p-disable"]

stopped_cure := ["disable-custom-all-reduce", "nccl-p2p-disable"] if count(own_all_reduce) > 0

# told_refused are the pairs of which a text says, by what CUDA answered one of its
# programs, that there is no peer access, where their paths are not known.
told_refused := {[p.a, p.b] | some p in input.gpus.p2p; p.read == "not-supported"; p.write == "not-supported"}

told_offered := {[p.a, p.b] | some p in input.gpus.p2p; p.read == "ok"}

findings contains {
	"subject": "host",
	"affects": sort({address | some pair in told_refused; some address in pair}),
	"message": sprintf("CUDA offers no peer access between any two of these GPUs%s. Programs that check first use host memory.", [models]),
	"evidence": [{"fact": sprintf("gpus.p2p[%s]", [facts.pair_name(pair[0], pair[1])]), "value": "not-supported", "source": "cudaDeviceCanAccessPeer"} |
		some i, pair in sort(told_refused)
		i < 4
	],
	"remedies": ["nccl-p2p-disable"],
} if {
	not facts.gpu_pairs
	count(told_refused) > 0
	count(told_offered) == 0
}

# closed are the pairs of AMD GPUs between which their driver offers no access, as its tools show it
# (rocm-bandwidth-test, rocm-smi --showtopoaccess). In the same xGMI hive that is a fault, which amd-xgmi reports.
closed contains p if {
	some p in facts.gpu_pairs
	p.accessible == false
	object.get(p, "link_type", "") != "xgmi"
	every address in [p.a, p.b] {
		facts.gpu[address].vendor == "amd"
	}
}

findings contains {
	"subject": subject(closed),
	"affects": sort(peers.ends(closed)),
	"message": sprintf("No peer access between %s: AMD's driver offers none. It requires a BAR that covers all memory on both, and a platform that forwards peer traffic on the path, which is often not the case between the root complexes of two sockets.", [peers.pairs_text(closed)]),
	"evidence": [{"fact": sprintf("links.pairs[%s].accessible", [facts.pair_name(p.a, p.b)]), "value": false, "source": "the driver's topology"} | some p in sort(closed)],
	"remedies": ["nccl-p2p-disable", "enable-rebar"],
} if {
	count(closed) > 0
}

default models := ""

models := sprintf(" (%s)", [concat(", ", sort(names))]) if {
	names := {g.name | some g in input.gpus.devices; g.name != ""}
	count(names) > 0
}

# contradiction is reported if CUDA offers what NVML refuses and copies arrive. NCCL
# follows NVML (ncclTopoCheckP2p, src/graph/paths.cc, as of 2.28).
contradiction(pairs) := " NVML reports this, and NCCL follows it, but CUDA offers peer access, and the probe's copies arrived." if {
	every p in pairs {
		peers.measured(p.a, p.b) == "good"
	}
} else := ""

subject(pairs) := "host" if {
	count(pairs) > 1
	pairs == facts.gpu_pairs
} else := facts.pair_name(p.a, p.b) if {
	count(pairs) == 1
	some p in pairs
} else := sprintf("%s and %d more", [facts.pair_name(first.a, first.b), count(pairs) - 1]) if {
	first := sort(pairs)[0]
}

remedies(k) := ["remove-module-parameter"] if {
	"disabled-by-regkey" in k[1]
	k[0] != "partitioned"
} else := ["reboot-or-reload-driver", "upgrade-driver"] if {
	k[0] == "unexpected"
	"cuda" in k[1]
} else := weight[k[0]][2]

evidence(pairs) := array.concat(
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
)

# told is true for a pair of which NVML or the CUDA driver says something.
told(p) if p.p2p.read

told(p) if is_boolean(peers.access[[p.a, p.b]])

told(p) if is_boolean(p.accessible)

missing contains {"fact": "links.pairs[].p2p", "words": "neither NVML nor the CUDA driver was queried for peer access"} if {
	some p in facts.gpu_pairs
	not told(p)
}

asks contains "links.pairs" if count(told_refused | told_offered) == 0

not_applicable contains "fewer than two GPUs" if not facts.several

not_applicable contains "fewer than two GPUs" if count(facts.gpu_pairs) == 0
