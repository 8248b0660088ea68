# METADATA
# title: GPUDirect RDMA is not available
# description: >-
#   A NIC can access GPU memory directly only with kernel support: the module nvidia-peermem (nv_peer_mem before driver
#   470), or DMA-BUF, which needs kernel 5.12 or newer and NVIDIA's open modules. The module needs an RDMA stack with
#   peer memory (MLNX_OFED, DOCA-OFED), of the version that it was built with. Without either, NCCL uses host memory,
#   and programs that register GPU memory with the NIC fail. The full probe registers memory and settles which of the
#   two works.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/gpudirect-rdma/
#     description: Requirements of the module and of DMA-BUF
#   - ref: https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-rdma.html
#     description: Which of the two the operator configures, and the order of installation
#   - ref: https://github.com/Mellanox/nv_peer_memory
#     description: The older module
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: How NCCL logs whether it uses it
# custom:
#   severity: high
#   confidence: likely
#   needs: [[nics.modules, job-connected]]
#   remedies: [load-nvidia-peermem, enable-dmabuf, enable-ibgda, upgrade-nccl, other]
#   profiles: [training]
#   first_of:
#     - version > driver-version > no-stack > build > unsigned > absent > unloadable > refused > unregistered
#     - version > driver-version > no-stack > build > unsigned > absent > unloadable > disabled > no-module
#     - registration > no-module
#   grades:
#     disabled: >-
#       NCCL reports that NICs cannot access the memory of the GPUs ({at}): this needs nvidia-peermem, registered with the
#       RDMA stack, or DMA-BUF, which NCCL_DMABUF_ENABLE=0 disables. Traffic between machines goes through host memory, at
#       a fraction of the rate[. Yet {nic} registers memory of {gpu} here: compare the job's libibverbs, version of NCCL
#       and variables]
#   since: "0.1"
package gpudoctor.rules.gdr_module_missing

import data.gpudoctor.lib.attempts
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpudirect
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.rdma
import data.gpudoctor.lib.surroundings

unavailable(f) := object.union(found, f) if found := {
	"subject": "GPUDirect RDMA", "severity": "medium", "remedies": ["load-nvidia-peermem", "enable-dmabuf"],
}

# disabled are NCCL's words that a NIC cannot reach memory of the GPU at all: "GPU Direct RDMA Disabled for HCA 0
# 'mlx5_0'", up to 2.12 with "(no module)". Those with a distance are of gdr-topology. NET/Socket is TCP, which never
# reaches it, and says so as well.
disabled contains m if {
	some m in logs.messages(["nccl-gdr-no-module", "nccl-gdr-nic-disabled", "rccl-gdr-no-peer-memory"])
	object.get(m, ["fields", "network"], "") != "Socket"
}

findings contains unavailable({
	"id": "disabled",
	"about": {
		"at": logs.at(first),
		"nic": {p.nic | some p in gpudirect.registered},
		"gpu": {p.gpu | some p in gpudirect.registered},
	},
	"messages": {first},
	"evidence": array.concat(
		rdma.module_evidence,
		[surroundings.variable_evidence(facts.variable.NCCL_DMABUF_ENABLE) | facts.env.NCCL_DMABUF_ENABLE == "0"],
	),
	"severity": disabled_severity,
}) if {
	count(rdma.direct_channels) == 0
	first := logs.first(disabled)
}

default disabled_severity := "medium"

disabled_severity := "low" if {
	count(rdma.verbs_channels) == 0
	on_one_machine
}

# RCCL says it at every start.
on_one_machine if logs.first(disabled).program == "rccl"

on_one_machine if {
	count(input.logs.communicators) > 0
	not networks.multi_node
}

# Channels over verbs without GPUDirect RDMA, and a list of modules without it, or a person's look at the directory of
# modules that registered with the RDMA stack, which is not there. Other machines of the job may have it.
findings contains unavailable({
	"id": "no-module",
	"message": "NCCL moves data between machines over verbs without GPUDirect RDMA (channels NET/IB without /GDRDMA), and nvidia-peermem is not loaded",
	"messages": {m | m := logs.first(logs.by_id["peermem-no-clients"])},
	"evidence": array.concat(rdma.module_evidence, rdma.channel_evidence(indirect)),
}) if {
	count(indirect) > 0
	without_module
	count(logs.messages(["nccl-dmabuf-available", "rccl-dmabuf-on"])) == 0
	count(gpudirect.registered) == 0
}

indirect := rdma.verbs_channels - rdma.direct_channels

without_module if {
	rdma.peermem_absent
	count(rdma.direct_channels) == 0
}

without_module if {
	logs.said("peermem-no-clients")
	not rdma.peermem_loaded
}

# A machine with active ports and NVIDIA GPUs that offers neither way. DMA-BUF needs the open kernel
# modules, which the driver's version file tells, and kernel 5.12.
findings contains unavailable({
	"id": "neither",
	"message": sprintf("NICs here cannot access the memory of the GPUs: nvidia-peermem is not loaded, and DMA-BUF needs %s. Jobs over several machines move their data through host memory", [facts.list(dmabuf_lacks)]),
	"evidence": array.concat(rdma.module_evidence, [rdma.place(p) | some p in array.slice(sort(live_ports), 0, 2)]),
}) if {
	not logs.given
	count(live_ports) > 0
	surroundings.has_nvidia
	rdma.peermem_absent
	count(dmabuf_lacks) > 0
	count(gpudirect.registered | gpudirect.refused) == 0
}

# What was really tried: memory of a GPU is refused in both ways, and that of the host is not.
findings contains unavailable({
	"id": "registration",
	"affects": sort({p.gpu.address | some p in gpudirect.refused; facts.is_address(p.gpu.address)}),
	"message": sprintf("%s registers memory of the host, but not that of GPU %s: as DMA-BUF, %s, and by its address (nvidia-peermem), %s: jobs over several machines move their data through host memory", [
		refusal.nic.device, refusal.gpu.address, attempts.told(refusal.gpu.dmabuf), attempts.told(refusal.gpu.peermem),
	]),
	"evidence": array.concat(gpudirect.nic_evidence(refusal.nic.device, refusal.gpu), [gpudirect.host_evidence(refusal.nic)]),
	"severity": {true: "medium", false: "low"}[count(gpudirect.registered) == 0],
	"confidence": "confirmed",
}) if {
	count(rdma.direct_channels | disabled) == 0
}

refusal := sort(gpudirect.refused)[0]

live_ports := {p | some p in rdma.active_ports; rdma.of_machine(p)}

dmabuf_lacks contains "NVIDIA's open kernel modules" if input.gpus.driver.open == false

dmabuf_lacks contains sprintf("kernel 5.12 (this is %s)", [input.host.kernel]) if {
	surroundings.version(input.host.kernel) < [5, 12]
}

missing contains {"fact": "nics.modules", "words": "it is not known whether nvidia-peermem is loaded (lsmod)"} if {
	not input.nics.modules
	count(union({rdma.direct_channels, gpudirect.registered, gpudirect.refused})) == 0
	not rdma.no_device
}

missing contains {"fact": "gpudirect.nics", "words": "a NIC refused memory of a GPU in one way, and it is not known whether another works"} if {
	count(gpudirect.doubtful) > 0
}

asks contains "gpus.driver.open" if dmabuf_unclear
asks contains "host.kernel" if dmabuf_unclear

dmabuf_unclear if {
	rdma.peermem_absent
	not logs.given
	count(dmabuf_lacks) == 0
	count(gpudirect.registered | gpudirect.refused) == 0
}

asks contains "nics.rdma[].state" if rdma.peermem_absent

not_applicable contains "no RDMA device is available" if rdma.no_device

not_applicable contains "no NVIDIA GPU" if {
	facts.only_amd
	not input.logs
}
