# METADATA
# title: An RDMA port is not active
# description: >-
#   A port without a link carries no traffic: a cable is unplugged or faulty, a switch port is off, or an InfiniBand
#   fabric has no subnet manager. If a port goes down during a job, the verbs library reports "port error", and the
#   peers' NICs retransmit until they give up (completion status 12), which is a consequence. An unused port may be down.
# related_resources:
#   - ref: https://github.com/linux-rdma/rdma-core/blob/v55.0/libibverbs/enum_strs.c
#     description: Port events and completion statuses
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/net/ethernet/mellanox/mlx5/core/events.c
#     description: mlx5 messages about cables
# custom:
#   severity: critical
#   confidence: likely
#   needs: ["nics.rdma[].state"]
#   remedies: [bring-port-up, other]
#   explains: [roce-gid, roce-mtu-pfc, collective-hang/between-hosts, failure-area]
#   first_of: [lost, unanswered]
#   profiles: [training]
#   grades:
#     inactive: >-
#       RDMA port {subject} is {state}[ (physical link: {link})][, and lost its link before (link_downed: {downed})]. Check
#       the cable, the transceiver and the switch port; in the state init or armed, it waits for a subnet manager (opensm)
#     left-out:
#       severity: high
#       confidence: likely
#       text: >-
#         NCCL takes {device} on {others:comma}, and a variable names it for the job, but not on {host}: its port is not active
#         there, or the device is missing. The job uses the others, at less bandwidth
#   since: "0.1"
package gpudoctor.rules.ib_port_down

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.rdma

# broken are the messages by which a job failed at the network.
broken := (rdma.retry_exceeded | rdma.lost) | logs.messages(["perftest-port-state", "rdma-port-not-active"])

findings contains {
	"id": "lost",
	"subject": object.get(first, "host", "network"),
	"message": sprintf("A program lost an RDMA port, or its NIC (%s). After a port error, check the cable, the switch port and the error counters of that machine: a link that goes up and down is worn or badly seated. After a catastrophic error, look for the NIC's firmware, driver or hardware in the kernel log (dmesg)", [logs.at(first)]),
	"messages": (rdma.lost | rdma.retry_exceeded),
	"severity": lost_severity,
	"confidence": "confirmed",
} if first := logs.first(rdma.lost)

default lost_severity := "critical"

# A port that came back without a failure did no lasting harm.
lost_severity := "medium" if {
	count(logs.messages(["nccl-ib-port-active", "ucx-port-active"])) > 0
	count(logs.complaints - rdma.lost) == 0
}

# The kernel's lines. At start-up every unused port has its cable "unplugged", and links that come up were down before.
findings contains {
	"subject": object.get(m, ["fields", "address"], object.get(m, "host", "network")),
	"message": sprintf("The kernel reports that the link, the cable or the firmware of a NIC failed (%s); an unused port may have no link", [logs.at(m)]),
	"messages": {m},
	"evidence": array.slice(logs.all_evidence(broken), 0, 3),
	"severity": severity,
	"confidence": confidence,
} if {
	some m in logs.messages(["mlx5-link-down", "mlx5-cable", "mlx5-health"])
	[severity, confidence] := kernel_grade(m)
}

kernel_grade(m) := ["critical", "likely"] if {
	count(broken) > 0
} else := [{true: "low", false: "medium"}[m.id == "mlx5-link-down"], "possible"] if {
	object.get(m, ["fields", "problem"], "") != "unplugged"
	count({order | some order in ups[m.fields.address]; order > m.order}) == 0
}

ups[m.fields.address] contains m.order if some m in logs.messages(["mlx5-link-up", "mlx5-cable-in"])

# The tools' listings. NCCL itself leaves inactive ports out.
findings contains {
	"subject": rdma.port_name(p),
	"grade": "inactive",
	"about": {"state": p.state, "link": [p.physical_state | true], "downed": [n | n := p.counters.link_downed; n > 0]},
	"evidence": array.concat([rdma.place(p)], array.slice(logs.all_evidence(broken), 0, 3)),
	"severity": severity,
	"confidence": confidence,
} if {
	some p in rdma.ports
	p.state in {"down", "init", "armed"}
	[severity, confidence] := grade(p)
}

# NCCL lists the active ports: a device that NCCL_IB_HCA, of one value, names is on the list of one host of the job, and
# not of another.
findings contains {
	"id": "left-out",
	"grade": "left-out",
	"subject": sprintf("%s on %s", [device, host]),
	"about": {"device": device, "host": host, "others": takers},
	"evidence": [rdma.place(p) | some p in listed; p.device == device],
} if {
	listed := [p | some p in rdma.ports; p.state == "active"; p.host in lists]
	count({v.value | some v in input.env.variables; v.name == "NCCL_IB_HCA"}) == 1
	some device in networks.patterns(facts.env.NCCL_IB_HCA)
	takers := {p.host | some p in listed; p.device == device}
	count(takers) > 0
	some host in (lists - takers)
	count([p | some p in listed; p.host == host]) > 0
	count([p | some p in rdma.ports; p.host == host; p.device == device]) == 0
}

# lists are the hosts on which NCCL says which RDMA devices it takes.
lists := {n.host | some n in input.logs.networks; n.name == "IB"}

grade(p) := ["critical", "likely"] if {
	needed(p)
	count(broken | logs.messages(["nccl-ib-no-device", "rdma-no-devices"])) > 0
} else := ["high", "likely"] if {
	p.device in wanted
} else := ["high", "possible"] if {
	count(broken) > 0
} else := ["medium", "likely"] if {
	used(p)
} else := ["info", "possible"]

# wanted are the devices that a variable names for the job.
wanted contains device if {
	some name in ["NCCL_IB_HCA", "UCX_NET_DEVICES", "NVSHMEM_HCA_LIST"]
	not networks.excludes(facts.env[name])
	some device in networks.patterns(facts.env[name])
}

# alone is true of a port on a machine that shows no active one.
alone(p) if not networks.host_of(p) in {networks.host_of(q) | some q in rdma.active_ports}

needed(p) if p.device in wanted
needed(p) if alone(p)

# used is true of a port that had a link since the driver was loaded, and lost it (PortCounters LinkDowned of the
# InfiniBand specification, 16.1.3.5), and of the only ones of a machine if they have a link, or the job needs them.
used(p) if {
	rdma.of_machine(p)
	p.state == "down"
	p.physical_state != "Disabled"
	p.counters.link_downed > 0
}

used(p) if {
	alone(p)
	p.state in {"init", "armed"}
}

used(p) if {
	alone(p)
	networks.multi_node
}

# Transfers that were never answered, on a fabric where only a dead link, a dead peer or routing can be the reason.
findings contains {
	"id": "unanswered",
	"subject": object.get(first, "host", "network"),
	"message": sprintf("A NIC retransmitted and got no response (status 12, %s). On InfiniBand, the cause is a link that went down on the path, a peer that died, or routing: check for port errors on the other machines, and run ibqueryerrors", [logs.at(first)]),
	"messages": rdma.retry_exceeded,
	"confidence": "possible",
} if {
	rdma.link in {"infiniband", "mixed"}
	first := logs.first(rdma.retry_exceeded)
}

not_applicable contains "no RDMA device is available" if rdma.no_device
