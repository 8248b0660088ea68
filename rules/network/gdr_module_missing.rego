# METADATA
# title: GPUDirect RDMA is not available
# description: >-
#   A NIC accesses GPU memory directly only with nvidia-peermem (nv_peer_mem before driver 470), which needs the peer
#   memory of MLNX_OFED or DOCA-OFED, or with DMA-BUF: kernel 5.12 and NVIDIA's open modules. Otherwise NCCL uses host
#   memory, and programs that register GPU memory fail. The full probe settles which of the two works.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/gpudirect-rdma/
#     description: Requirements of the module and of DMA-BUF
#   - ref: https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-rdma.html
#     description: Which of the two the operator configures, and the order of installation
# custom:
#   severity: high
#   confidence: likely
#   needs: [[nics.modules, job-connected]]
#   remedies: [load-nvidia-peermem, enable-dmabuf, enable-ibgda, upgrade-nccl, other]
#   profiles: [training]
#   first_of:
#     - version > driver-version > no-stack > build > unsigned > absent > unloadable > refused > unregistered
#     - version > driver-version > no-stack > build > unsigned > absent > unloadable > one-host > disabled > no-module
#     - registration > no-module
#   grades:
#     disabled: >-
#       NCCL reports that NICs cannot access the memory of the GPUs ({at}): this needs nvidia-peermem, registered with the
#       RDMA stack, or DMA-BUF, which NCCL_DMABUF_ENABLE=0 disables. Traffic between machines goes through host memory, at
#       a fraction of the rate
#     one-host:
#       severity: high
#       text: >-
#         On {host} the NICs cannot access the memory of the GPUs ({at}), and on {others:comma} of the same job they can:
#         nvidia-peermem is not loaded there, or not registered with the RDMA stack. The job runs at the rate of the slowest
#         host
#     no-module: >-
#       NCCL moves data between machines over verbs without GPUDirect RDMA (channels NET/IB without /GDRDMA), and
#       nvidia-peermem is not loaded
#     neither: >-
#       NICs here cannot access the memory of the GPUs: nvidia-peermem is not loaded, and DMA-BUF needs {lacks}. Jobs over
#       several machines move their data through host memory
#     registration: >-
#       {nic} registers memory of the host, but not that of GPU {gpu}: as DMA-BUF, {dmabuf}, and by its address
#       (nvidia-peermem), {peermem}: jobs over several machines move their data through host memory
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
# 'mlx5_0'". Those with a distance are of gdr-topology. NET/Socket is TCP, which never reaches it, and says so as well.
disabled contains m if {
	some m in logs.messages(["nccl-gdr-no-module", "nccl-gdr-nic-disabled", "rccl-gdr-no-peer-memory"])
	object.get(m, ["fields", "network"], "") != "Socket"
}

findings contains unavailable({
	"id": "disabled",
	"about": {"at": logs.at(first)},
	"messages": {first},
	"evidence": rdma.module_evidence,
	"severity": disabled_severity,
}) if {
	count(rdma.direct_channels) == 0
	first := logs.first(disabled)
}

# What one host of a job lacks and others have is no choice of anybody's.
findings contains {
	"id": "one-host",
	"grade": "one-host",
	"subject": "GPUDirect RDMA",
	"about": {"host": first.host, "at": logs.at(first), "others": {host | some [host, _] in able}},
	"messages": {first},
	"evidence": [evidence | evidence := sort([e | some [_, e] in able])[0]],
	"remedies": ["load-nvidia-peermem", "enable-dmabuf"],
} if {
	count(able) > 0
	first := logs.first({m | some m in disabled; not m.host in {host | some [host, _] in able}})
	first.host != ""
}

# able are the hosts that have it, with what shows that. Of the two ends of a channel the one has it that is not on the
# only host which says that it has none.
able contains [m.host, logs.evidence(m)] if some m in logs.by_id["nccl-gdr-nic-enabled"]

able contains ["another host", evidence] if {
	count({m.host | some m in disabled}) == 1
	count(logs.by_id["nccl-gdr-nic-enabled"]) == 0
	some end in rdma.direct_channels
	some other in (rdma.verbs_channels - rdma.direct_channels)
	[end.a, end.b] == [other.a, other.b]
	some evidence in rdma.channel_evidence([end])
}

# RCCL says it at every start, and one machine does not need it.
default disabled_severity := "low"

disabled_severity := "medium" if count(rdma.verbs_channels) > 0
disabled_severity := "medium" if networks.multi_node

# Channels over verbs without GPUDirect RDMA, and a list of modules without it. Other machines of the job may have it.
findings contains unavailable({
	"id": "no-module",
	"evidence": array.concat(rdma.module_evidence, rdma.channel_evidence(rdma.verbs_channels)),
}) if {
	count(rdma.verbs_channels) > 0
	count(rdma.direct_channels) == 0
	rdma.peermem_absent
	count(logs.messages(["nccl-dmabuf-available", "rccl-dmabuf-on"])) == 0
	count(gpudirect.registered) == 0
}

# A machine with active ports and NVIDIA GPUs that offers neither way.
findings contains unavailable({
	"id": "neither",
	"about": {"lacks": dmabuf_lacks},
	"evidence": array.concat(rdma.module_evidence, [rdma.place(port)]),
}) if {
	untried
	port := sort([p | some p in rdma.active_ports; rdma.of_machine(p)])[0]
	surroundings.has_nvidia
	count(dmabuf_lacks) > 0
}

# What was really tried: memory of a GPU is refused in both ways, and that of the host is not.
findings contains unavailable({
	"id": "registration",
	"affects": sort({p.gpu.address | some p in gpudirect.refused; facts.is_address(p.gpu.address)}),
	"about": {
		"nic": refusal.nic.device, "gpu": refusal.gpu.address,
		"dmabuf": attempts.told(refusal.gpu.dmabuf), "peermem": attempts.told(refusal.gpu.peermem),
	},
	"evidence": gpudirect.nic_evidence(refusal.nic, refusal.gpu),
	"severity": {true: "medium", false: "low"}[count(gpudirect.registered) == 0],
	"confidence": "confirmed",
}) if {
	count(rdma.direct_channels | disabled) == 0
	refusal := sort(gpudirect.refused)[0]
}

dmabuf_lacks contains "NVIDIA's open kernel modules" if input.gpus.driver.open == false

dmabuf_lacks contains sprintf("kernel 5.12 (this is %s)", [input.host.kernel]) if surroundings.version(input.host.kernel) < [5, 12]

# untried is a machine without the module where nothing shows what works.
untried if {
	rdma.peermem_absent
	not logs.given
	count(gpudirect.registered | gpudirect.refused) == 0
}

missing contains {"fact": "gpudirect.nics", "words": "a NIC refused memory of a GPU in one way, and it is not known whether another works"} if {
	some p in gpudirect.pairs
	p.gpu[gpudirect.ways[_]].outcome == "refused"
	p.nic.device in gpudirect.able
	count(gpudirect.registered | gpudirect.refused) == 0
}

asks contains "nics.modules" if count(union({rdma.direct_channels, gpudirect.registered, gpudirect.refused})) == 0

asks contains "pci" if {
	some p in gpudirect.pairs
	gpudirect.lasting(p.gpu[gpudirect.ways[_]])
}

asks contains "gpus.driver.open" if untried
asks contains "host.kernel" if untried
asks contains "nics.rdma[].state" if rdma.peermem_absent

not_applicable contains "no RDMA device is available" if rdma.no_device

not_applicable contains "no NVIDIA GPU" if {
	facts.only_amd
	not input.logs
}
