# METADATA
# title: GPUDirect RDMA is not available
# description: >-
#   A NIC reads and writes the memory of a GPU itself only where the kernel lets
#   it: through the module nvidia-peermem (nv_peer_mem before driver 470), or
#   through DMA-BUF, for which a kernel from 5.12 on and NVIDIA's open modules
#   are needed. The module needs an RDMA stack that offers peer memory
#   (MLNX_OFED, DOCA-OFED), of the version that it was built with. Without
#   either, NCCL goes through host memory, and programs that hand memory of the
#   GPU to the NIC fail.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/gpudirect-rdma/
#     description: What the module and DMA-BUF need
#   - ref: https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-rdma.html
#     description: Which of the two the operator sets up, and the order of installation
#   - ref: https://github.com/Mellanox/nv_peer_memory
#     description: The older module
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: How NCCL says whether it uses it
# schemas:
#   - input: schema.facts
# custom:
#   severity: high
#   confidence: likely
#   needs:
#     - [nics.modules, job-connected]
#   remedies: [load-nvidia-peermem, enable-dmabuf, upgrade-nccl, other]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.gdr_module_missing

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.rdma

# unloadable are the messages of a module that did not build or load.
unloadable := logs.messages(["peermem-not-loaded", "peermem-symbol", "peermem-build-failed"])

findings contains {
	"subject": "nvidia-peermem",
	"message": sprintf("The kernel module of GPUDirect RDMA does not load. %s", [explanation]),
	"evidence": array.concat(array.slice(logs.all_evidence(unloadable), 0, 6), ofed_evidence),
	"order": logs.first(unloadable).order,
	"severity": "high",
	"confidence": "confirmed",
	"remedies": ["load-nvidia-peermem", "enable-dmabuf", "other"],
} if {
	count(unloadable) > 0
}

# explanation is what the most telling of the messages means. The kernel refuses
# a symbol that no loaded module offers (err 0 or -2), or that was built with
# other checksums (err -22, «disagrees»); modprobe then says «Unknown symbol» or
# «Invalid argument».
explanation := "The RDMA stack offers peer memory in another version than the module was built with: MLNX_OFED was installed or updated after it. Build the module (or the NVIDIA driver) anew" if {
	some m in unloadable
	m.fields.problem == "disagrees about version of symbol"
	startswith(m.fields.symbol, "ib_")
} else := "The module was built for another version of the NVIDIA driver; build it anew, or use nvidia-peermem, which the driver brings" if {
	some m in unloadable
	startswith(m.fields.symbol, "nvidia_p2p")
} else := "The loaded RDMA stack does not offer peer memory (ib_register_peer_memory_client): the kernel's own modules are loaded, or MLNX_OFED is not installed for the kernel that runs" if {
	some m in unloadable
	contains(m.text, "ib_register_peer_memory_client")
} else := "Its source did not compile: headers of the RDMA stack or of the driver are missing for the kernel that runs" if {
	some m in unloadable
	m.id == "peermem-build-failed"
	not startswith(m.text, "dpkg")
} else := "A module must be signed where Secure Boot is on" if {
	some m in unloadable
	regex.match(`(?i)key was rejected|required key`, m.text)
} else := "The driver that is installed for this kernel does not bring it" if {
	some m in unloadable
	m.fields.absent
} else := "«Invalid argument» and «Unknown symbol» mean that the RDMA stack and the NVIDIA driver do not fit each other: the driver was built before MLNX_OFED was installed, or MLNX_OFED is not installed for the kernel that runs; the kernel log names the symbol"

ofed_evidence := [{"fact": "software[ofed]", "value": p.version, "source": logs.at(p)} |
	some p in input.software
	p.name == "ofed"
]

# refusals are messages of programs that found neither way.
refusals := logs.messages(["peermem-not-detected", "dmabuf-required", "dmabuf-not-supported"]) | dmabuf_refused

# dmabuf_refused are NCCL's words that the driver of the NIC does not take memory
# by DMA-BUF: it is older than Linux 5.12 or MLNX_OFED 5.4, say. NCCL 2.13 does
# not turn to nvidia-peermem by itself then (NVIDIA/nccl#778).
dmabuf_refused contains m if {
	some m in logs.by_id["nccl-ib-register-bad-address"]
	m.fields.call == "ibv_reg_dmabuf_mr"
	contains(m.text, "Operation not supported")
}

findings contains {
	"subject": "GPUDirect RDMA",
	"message": sprintf("A program found no way for the NIC into the memory of the GPU (%s). %s", [logs.at(first), cure]),
	"evidence": array.slice(logs.all_evidence(refusals | unregistered), 0, 4),
	"order": first.order,
	"severity": "high",
	"confidence": "confirmed",
	"remedies": refusal_remedies,
} if {
	count(refusals) > 0
	count(unloadable) == 0
	first := logs.first(refusals)
}

refusal_remedies := ["load-nvidia-peermem", "upgrade-nccl", "enable-dmabuf"] if {
	count(dmabuf_refused) > 0
} else := ["load-nvidia-peermem", "enable-dmabuf"]

cure := "nvidia-peermem serves in its place, with NCCL_DMABUF_ENABLE=0 or a newer NCCL" if {
	count(dmabuf_refused) > 0
} else := "nvidia-peermem serves in its place" if {
	logs.said("dmabuf-not-supported")
} else := "It needs nvidia-peermem, or DMA-BUF"

# unregistered are failures to register memory of a GPU: the address is none of
# host memory (EFAULT), or perftest, which had taken memory of a GPU, failed.
unregistered contains m if some m in logs.by_id["gpu-memory-not-registered"]

unregistered contains m if {
	logs.said("perftest-gpu-buffer")
	some m in logs.by_id["perftest-no-mr"]
}

unregistered contains m if some m in logs.by_id["gpu-mr-not-registered"]

# NCCL's words name other errors with it; only EFAULT says so.
unregistered contains m if {
	some m in logs.by_id["nccl-ib-register-bad-address"]
	contains(m.text, "Bad address")
}

findings contains {
	"subject": "GPUDirect RDMA",
	"message": sprintf("The NIC's driver refused memory that it does not know as host memory (%s), which is how memory of a GPU is refused where neither nvidia-peermem is loaded nor DMA-BUF used%s", [logs.at(first), loaded_remark]),
	"evidence": array.concat(array.slice(logs.all_evidence(unregistered), 0, 4), module_evidence),
	"order": first.order,
	"severity": "high",
	"confidence": registration_confidence,
	"remedies": ["load-nvidia-peermem", "enable-dmabuf"],
} if {
	count(unregistered) > 0
	count(unloadable) == 0
	count(refusals) == 0
	first := logs.first(unregistered)
}

loaded_remark := "; the module is loaded here, so look at the product (GeForce has no GPUDirect RDMA) and at the memory's kind" if {
	module_loaded
} else := ""

registration_confidence := "possible" if {
	module_loaded
} else := "likely"

module_loaded if {
	some m in input.nics.modules
	m in {"nvidia_peermem", "nv_peer_mem", "efa_nv_peermem"}
}

# module_absent is true when a list of modules would show it and does not.
module_absent if {
	is_array(input.nics.modules)
	not input.nics.modules_partial == true
	not module_loaded
}

module_evidence := [{"fact": "nics.modules", "value": input.nics.modules, "source": "lsmod"} | is_array(input.nics.modules)]

# disabled are NCCL's words that a NIC cannot reach memory of the GPU at all:
# «GPU Direct RDMA Disabled for HCA 0 'mlx5_0'», up to 2.12 with «(no module)».
# Those with a distance are of gdr-topology.
# NET/Socket is TCP, which never reaches it, and says so all the same.
disabled contains m if {
	some m in logs.messages(["nccl-gdr-no-module", "nccl-gdr-nic-disabled", "rccl-gdr-no-peer-memory"])
	not contains(m.text, "NET/Socket")
}

# dmabuf_seen are the words that the driver offers DMA-BUF.
dmabuf_seen if count(logs.messages(["nccl-dmabuf-available", "rccl-dmabuf-on"])) > 0

dmabuf_off if facts.env.NCCL_DMABUF_ENABLE == "0"

findings contains {
	"subject": "GPUDirect RDMA",
	"message": sprintf("NCCL says that NICs cannot reach the memory of the GPUs (%s)%s. Traffic between machines goes through host memory, at a part of the rate", [logs.at(first), why]),
	"evidence": array.concat(array.slice(logs.all_evidence(disabled), 0, 3), module_evidence),
	"order": first.order,
	"severity": severity,
	"confidence": "likely",
	"remedies": ["load-nvidia-peermem", "enable-dmabuf"],
} if {
	count(disabled) > 0
	count(unloadable) == 0
	count(rdma.direct_channels) == 0
	first := logs.first(disabled)
	severity := disabled_severity(first)
}

why := "; nvidia-peermem is loaded, but did not register with the RDMA stack: it was built without it, or before it" if {
	module_loaded
} else := "; NCCL_DMABUF_ENABLE=0 turns the way by DMA-BUF off" if {
	dmabuf_off
} else := "; the driver offers DMA-BUF, and the RDMA stack does not take it" if {
	dmabuf_seen
} else := ": neither nvidia-peermem is loaded nor DMA-BUF offered"

# On one machine nothing goes over the NICs; RCCL says it at every start.
disabled_severity(m) := "low" if {
	m.program == "rccl"
	count(rdma.verbs_channels) == 0
} else := "low" if {
	one_node
} else := "medium"

one_node if {
	count(input.logs.communicators) > 0
	not rdma.several_nodes
	count(rdma.verbs_channels) == 0
}

# Channels over verbs without GPUDirect RDMA, and a list of modules without it.
findings contains {
	"subject": "GPUDirect RDMA",
	"message": "NCCL moves data between machines over verbs without GPUDirect RDMA (channels NET/IB without /GDRDMA), and nvidia-peermem is not loaded",
	"evidence": array.concat(module_evidence, [{"fact": "logs.transports", "value": sprintf("%d channels via NET/%s", [t.channels, t.network]), "source": logs.at(t)} | some t in rdma.verbs_channels]),
	"severity": "medium",
	"confidence": "likely",
	"remedies": ["load-nvidia-peermem", "enable-dmabuf"],
} if {
	count(rdma.verbs_channels) > 0
	count(rdma.direct_channels) == 0
	module_absent
	not dmabuf_seen
	count(disabled) == 0
	count(unloadable) == 0
}

# What a person looked at: the directory of modules that registered with the
# RDMA stack is not there, and channels go without. Other machines of the job
# may have it: their channels then are direct.
findings contains {
	"subject": "GPUDirect RDMA",
	"message": sprintf("NCCL moves data between machines over verbs without GPUDirect RDMA, and no module has registered with the RDMA stack (%s): nvidia-peermem is not loaded%s", [logs.at(m), elsewhere]),
	"evidence": array.concat([logs.evidence(m)], [{"fact": "logs.transports", "value": sprintf("%d channels via NET/%s", [t.channels, t.network]), "source": logs.at(t)} | some t in indirect]),
	"severity": "medium",
	"confidence": "likely",
	"remedies": ["load-nvidia-peermem", "enable-dmabuf"],
} if {
	m := logs.first(logs.by_id["peermem-no-clients"])
	count(indirect) > 0
	count(disabled) == 0
	count(unloadable) == 0
	not dmabuf_seen
	not module_loaded
}

indirect contains t if {
	some t in rdma.verbs_channels
	not t.gdr == true
}

elsewhere := " on this machine, and is on another one of the job, whose channels bypass host memory" if {
	count(rdma.direct_channels) > 0
} else := ""

# GDRCopy has a module of its own, which bears on programs that use GDRCopy alone:
# UCX, NVSHMEM, and NCCL's flush.
copying := logs.messages({"gdrcopy-symbol", "gdrcopy-module-missing"}) | {m |
	some m in logs.by_id["ucx-transport-unavailable"]
	contains(m.fields.transport, "gdr_copy")
}

findings contains {
	"subject": "gdrdrv",
	"message": sprintf("The kernel module of GDRCopy (gdrdrv) is not there or does not load (%s). %s. NCCL does without it", [logs.at(first), copying_words]),
	"evidence": array.slice(logs.all_evidence(copying), 0, 4),
	"order": first.order,
	"severity": "medium",
	"confidence": copying_confidence,
	"remedies": ["other", "load-nvidia-peermem"],
} if {
	count(copying) > 0
	first := logs.first(copying)
}

copying_confidence := "confirmed" if {
	logs.said("gdrcopy-symbol")
} else := "likely"

copying_words := "It was built for another version of the NVIDIA driver, or that is not loaded: build and install it anew" if {
	logs.said("gdrcopy-symbol")
} else := "Install it for the kernel and the driver that run, and load it (insmod.sh of GDRCopy makes /dev/gdrdrv, modprobe alone may not); in a container pass /dev/gdrdrv in"

missing contains {"fact": "nics.modules", "words": "it is not known whether nvidia-peermem is loaded (lsmod)"} if {
	count(((unloadable | refusals) | copying)) == 0
	count(disabled) == 0
	not known
}

missing contains {"fact": "logs.transports", "words": "nvidia-peermem is not loaded, and no log tells whether the job does without it"} if {
	module_absent
	not input.logs
}

known if is_array(input.nics.modules)

known if count(rdma.direct_channels) > 0
