# What NICs really reach of the GPUs' memory: outcomes of registrations that children of gpudoctor made with the full
# probe. Each set is empty if nothing was tried.
package gpudoctor.lib.gpudirect

import data.gpudoctor.lib.surroundings

pairs contains {"nic": n, "gpu": g} if {
	some n in input.gpudirect.nics
	some g in n.gpus
}

ways := {"dmabuf", "peermem"}

# registered are the NICs that register memory of a GPU, by either way: NCCL uses both.
registered contains p.nic.device if {
	some p in pairs
	p.gpu[ways[_]].outcome == "ok"
}

# refused are the pairs that work in neither way, although the NIC registers memory of the host, on adapters that are
# known to do GPUDirect RDMA. EFA has rules of its own.
refused contains p if {
	some p in pairs
	p.nic.host.outcome == "ok"
	every way in ways {
		lasting(p.gpu[way])
	}
	p.nic.device in able
}

able contains p.device if {
	some p in input.nics.rdma
	p.address in surroundings.rdma_nics
	not p.address in {d.address | some d in surroundings.efa_devices}
}

# lasting is true of a refusal for a reason that stays: not memory, files or rights.
lasting(a) if {
	a.outcome == "refused"
	not a.errno in {"", "ENOMEM", "EAGAIN", "EINTR", "EBUSY", "EMFILE", "ENFILE", "ENOSPC", "EACCES", "EPERM"}
}

# unlocked are the NICs that did not register memory of the host because too little may be locked.
unlocked contains n if {
	some n in input.gpudirect.nics
	n.host.outcome == "refused"
	n.host.call == "ibv_reg_mr"
	n.host.errno in {"ENOMEM", "EAGAIN"}
}

locked_bytes := max({n.host.bytes | some n in input.gpudirect.nics; n.host.outcome == "ok"})

# nic_evidence shows what a NIC registers of the host and of a GPU.
nic_evidence(n, gpu) := array.concat([host_evidence(n)], [e |
	some way in ways
	e := tried(sprintf("nics[%s].gpus[%s].%s", [n.device, gpu.address, way]), gpu[way], "a registration of the GPU's memory")
])

host_evidence(n) := tried(sprintf("nics[%s].host", [n.device]), n.host, "ibv_reg_mr(3) of host memory")

tried(fact, attempt, what) := {
	"fact": sprintf("gpudirect.%s", [fact]),
	"value": object.filter(attempt, ["outcome", "call", "errno", "bytes"]),
	"source": sprintf("%s, really tried", [what]),
}
