# RDMA on a machine, in logs and in tool output. Each set is empty if neither the machine nor a text shows it.
package gpudoctor.lib.rdma

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

# retry_exceeded are the messages that a NIC repeated what it sent and was never answered (completion status 12), while
# nothing says that a process had ended before.
retry_exceeded := {m |
	some m in logs.messages(["nccl-ib-completion-retry-exceeded", "rdma-retry-exceeded"])
	count({order | some order in ended; order <= m.order}) == 0
}

# ended is where in the logs a process died, which no longer answers then.
ended contains input.logs.job.first.order

ended contains m.order if {
	some m in logs.messages({"torch-out-of-memory", "torch-host-out-of-memory", "kernel-out-of-memory", "hsa-out-of-memory", "job-time-limit", "job-preempted"})
}

# addressed are those of them that a wrong GID does not explain: both have an IPv4 address that nobody chose by an index,
# or UCX chose them.
addressed := {m |
	some m in retry_exceeded
	startswith(m.fields.local_gid, "::ffff:")
	startswith(m.fields.remote_gid, "::ffff:")
	not gid_index
} | {m | some m in retry_exceeded; m.fields.ucx; not facts.env.UCX_IB_GID_INDEX}

# unconnected are NCCL's messages that a connection between two NICs could not be set up.
unconnected := logs.messages(["nccl-ib-modify-qp-invalid", "nccl-ib-modify-qp-unreachable", "nccl-ib-modify-qp-timed-out", "nccl-ib-modify-qp-failed"])

# lost are the messages that the verbs library reported a port error, or that a whole NIC failed.
lost := logs.messages(["nccl-ib-port-error", "ucx-port-error", "nccl-ib-device-fatal", "ucx-device-fatal"])

# ports are all of the machine and in the texts; active_ports those that can carry data.
ports contains p if some p in input.nics.rdma

active_ports := {p | some p in ports; p.state == "active"}

# link_layers are those in use: of ports, of a port that a line names ("mlx5_0:1/RoCE"), of GIDs with an IPv4 address.
link_layers contains p.link_layer if some p in ports
link_layers contains {"RoCE": "Ethernet", "IB": "InfiniBand"}[m.fields.link] if some m in logs.by_id["rdma-retry-exceeded"]
link_layers contains "Ethernet" if startswith(input.logs.messages[_].fields.local_gid, "::ffff:")

# of_machine is true of what the machine itself showed, not a text.
of_machine(p) if startswith(p.source, "/sys/")

# no_device is true where the machine, or its PCI tree, shows no RDMA device, and no log does.
no_device if {
	is_array(input.nics.rdma)
	count(input.nics.rdma) == 0
	link == "unknown"
}

no_device if {
	not input.nics.rdma
	surroundings.no_rdma_nic
	link == "unknown"
}

# no_roce is true where no port is one of RoCE: those of InfiniBand and of EFA are not.
no_roce if link == "infiniband"

no_roce if {
	count(ports) > 0
	link == "unknown"
	every p in ports {
		of_machine(p)
	}
}

# rate_per_hour is how often a counter grew in an hour since the machine started. While it starts, drivers and switches
# bring links up and down, so less than six hours count as six.
rate_per_hour(n) := (n * 3600) / max([input.host.uptime_seconds, 21600])

# link is "roce", "infiniband", "mixed" or "unknown".
link := name if {
	some name, layers in {"unknown": set(), "roce": {"Ethernet"}, "infiniband": {"InfiniBand"}, "mixed": {"Ethernet", "InfiniBand"}}
	layers == link_layers & {"Ethernet", "InfiniBand"}
}

# chooses_gid is true of an NCCL or RCCL that looks for the GID itself: from 2.21. Earlier versions use index 0 unless
# they are told another.
chooses_gid if {
	count(versions) > 0
	min(versions) >= [2, 21]
}

versions := {surroundings.version(trim_prefix(v, "v")) | some name in ["nccl", "rccl"]; some v in logs.versions[name]}

# gid_index is the GID index that NCCL was told to use; -1 means none.
gid_index := n if {
	n := to_number(facts.env.NCCL_IB_GID_INDEX)
	n >= 0
}

# slow_networks are the tables of ib_write_bw and its sisters below what the port carries, by the memory measured from.
slow_networks[b.memory] contains {"benchmark": b, "point": p, "ports": {q | some q in ports; q.device == p.a}} if {
	some b in input.benchmarks
	b.what == "network"
	some p in b.points
	p.gbps * halves < p.expected_gbps * p.threshold
}

# halves are the devices over which one port of a DGX Spark is reached, each over four lanes.
halves := 2 if logs.said("spark-told")

else := 1

# network_words describes such a table, network_evidence shows it.
network_words(n) := sprintf("%s over %s reaches %v Gb/s from %s memory, where %s carries %v and at least %v counts as good", [
	n.benchmark.test, n.point.a, round(n.point.gbps * 8), {"gpu": "a GPU's", "host": "host"}[n.benchmark.memory], n.point.basis,
	round(n.point.expected_gbps * 8), round((n.point.expected_gbps * n.point.threshold) * 8),
])

network_evidence(n) := {
	"fact": sprintf("benchmarks[%s].points", [n.benchmark.tool]),
	"value": n.point.gbps,
	"source": sprintf("%s:%d", [n.benchmark.source, n.point.line]),
}

# verbs_channels are channels of NCCL over verbs between machines.
verbs_channels contains t if {
	some t in input.logs.transports
	t.kind == "net"
	startswith(t.network, "IB")
	not t.same_host == true
}

direct_channels := {t | some t in verbs_channels; t.gdr == true} # They bypass host memory.

port_name(p) := sprintf("%s on %s", [plain_name(p), p.host]) if {
	p.host
} else := plain_name(p)

plain_name(p) := sprintf("%s:%d", [p.device, p.port]) if {
	p.device != ""
} else := "an RDMA port"

place(p) := {
	"fact": sprintf("nics.rdma[%s:%d]", [p.device, p.port]),
	"value": object.filter(p, ["state", "physical_state", "link_layer", "mtu", "allowed_mtu", "sm_lid", "counters"]),
	"source": logs.at(p),
}

channel_evidence(channels) := [{"fact": "logs.transports", "value": sprintf("%d channels via NET/%s", [t.channels, t.network]), "source": logs.at(t)} | some t in channels]

# Kernel modules for GPUDirect RDMA, in a list of modules that shows them.
peermem_loaded if {
	some m in input.nics.modules
	m in {"nvidia_peermem", "nv_peer_mem", "efa_nv_peermem"}
}

peermem_absent if {
	is_array(input.nics.modules)
	not input.nics.modules_partial == true
	not peermem_loaded
}

module_evidence := [{"fact": "nics.modules", "value": input.nics.modules, "source": facts.read_at("nics.modules", "/sys/module")} | is_array(input.nics.modules)]

# nodes_hidden is true where the machine has RDMA devices, and somebody found no device nodes of them, as in a container.
nodes_hidden if {
	logs.said("rdma-nodes-not-listed")
	count(input.nics.rdma) > 0
}
