# METADATA
# title: Processes cannot run near their GPU
# description: >-
#   Each GPU is attached to one NUMA node. A process that can run only on
#   another node reaches its GPU over the link between the sockets. This reduces
#   bandwidth and adds latency for host copies and for all traffic through host
#   memory. Automatic NUMA balancing unmaps pages to see who uses them and
#   migrates them, which makes timings vary.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ignore-cpu-affinity
#     description: NCCL follows the job's CPU affinity by default
#   - ref: https://rocm.docs.amd.com/projects/rccl/en/latest/how-to/troubleshooting-rccl.html
#     description: RCCL recommends numa_balancing=0
#   - ref: https://docs.kernel.org/admin-guide/sysctl/kernel.html#numa-balancing
#     description: What automatic NUMA balancing does, and its modes
# custom:
#   severity: medium
#   confidence: likely
#   areas: [numa]
#   needs:
#     - numa.nodes[].allowed_cpus
#     - numa.allowed_cpus
#     - pci.devices[].numa_node
#     - [gpus.devices, transfers.devices]
#   remedies: [bind-numa, ignore-cpu-affinity, disable-numa-balancing, update-bios]
#   first_of: [narrowed, pinned, few-cpus]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.numa_affinity

import data.gpudoctor.lib.cpu_affinity
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

# node_gpus are the usable GPUs of each NUMA node.
node_gpus[d.numa_node] contains d.address if {
	some d in input.pci.devices
	d.address in used
}

# A GPU of which only nvidia-smi topo -m told has its node from there.
node_gpus[g.numa_node] contains g.address if {
	some g in input.gpus.devices
	g.address in used
}

# used are the usable GPUs by address; where only device nodes are known, none
# can be placed.
used := surroundings.usable & facts.gpus

findings contains {
	"subject": sprintf("node%d", [n.id]),
	"affects": sort(node_gpus[n.id]),
	"message": sprintf("%s on NUMA node %d, but this process cannot run on any CPU of that node (%s), only on %s: host copies and NCCL's threads cross to another node%s", [
		subjects(node_gpus[n.id]),
		n.id, n.cpus, input.numa.allowed_cpus, distance_remark(n),
	]),
	"evidence": [
		{"fact": sprintf("numa.nodes[%d].allowed_cpus", [n.id]), "value": 0, "source": "/proc/self/status (Cpus_allowed_list)"},
		{"fact": sprintf("numa.nodes[%d].cpus", [n.id]), "value": n.cpus, "source": sprintf("/sys/devices/system/node/node%d/cpulist", [n.id])},
	],
	"params": {"node": n.id, "gpus": sort(node_gpus[n.id])},
	"remedies": ["bind-numa", "ignore-cpu-affinity"],
} if {
	some n in surroundings.cpu_nodes
	n.allowed_cpus == 0
	count(node_gpus[n.id]) > 0
	allowed_elsewhere
}

# nodeless are the GPUs of which the firmware names no node, and no text does either.
nodeless := {d.address |
	some d in input.pci.devices
	d.address in used
	d.no_numa_node == true
} - {address | some gpus in node_gpus; some address in gpus}

findings contains {
	"subject": "host",
	"affects": sort(nodeless),
	"message": sprintf("The firmware does not report a NUMA node for GPU %s (numa_node is -1), and the machine has %d nodes: neither the kernel nor NCCL can place threads and memory near it%s", [
		facts.list(nodeless), count(surroundings.cpu_nodes), of_guest,
	]),
	"severity": "low",
	"confidence": "confirmed",
	"remedies": [r | some r in ["update-bios"]; of_guest == ""],
	"evidence": [{"fact": sprintf("pci.devices[%s].no_numa_node", [address]), "value": true, "source": sprintf("/sys/bus/pci/devices/%s/numa_node", [address])} | some address in sort(nodeless)],
} if {
	count(nodeless) > 0
	not single_node
}

default of_guest := ""

of_guest := ". In a virtual machine, the hypervisor sets it" if facts.is_guest == true

# allowed_elsewhere is true where the process may run on some node.
allowed_elsewhere if {
	some n in surroundings.cpu_nodes
	n.allowed_cpus > 0
}

subjects(gpus) := sprintf("GPU %s is", [facts.list(gpus)]) if {
	count(gpus) == 1
} else := sprintf("%d GPUs (%s) are", [count(gpus), facts.list(gpus)])

# distance_remark says how far the nearest node is on which it may run; 10
# means local (ACPI SLIT).
distance_remark(n) := sprintf(" (distance %d, local is 10)", [nearest]) if {
	nearest := min([distance |
		some i, distance in n.distances
		input.numa.nodes[i].allowed_cpus > 0
	])
} else := ""

findings contains {
	"subject": "kernel.numa_balancing",
	"message": sprintf("Automatic NUMA balancing is on (kernel.numa_balancing=%d) with %d NUMA nodes: %s", [input.numa.balancing, count(surroundings.cpu_nodes), opinion]),
	"severity": balancing_severity,
	"remedies": ["disable-numa-balancing"],
	"evidence": [{
		"fact": "numa.balancing",
		"value": input.numa.balancing,
		"source": "/proc/sys/kernel/numa_balancing",
	}],
} if {
	# Bit 0 is the balancing of pages among nodes, bit 1 the tiering of memory.
	input.numa.balancing % 2 == 1
	count(surroundings.cpu_nodes) > 1
	count(surroundings.usable) > 0
}

# RCCL warns of it at each start (src/init.cc); NCCL does not.
default balancing_severity := "low"

balancing_severity := "medium" if count(surroundings.of_vendor.amd) > 1

opinion := "RCCL warns about it at each start, because it makes timings vary" if {
	surroundings.has_amd
} else := "timings of host copies may vary"

# What logs show of the CPUs that ranks keep to.
findings contains object.union({"subject": "affinity", "confidence": "likely"}, found) if {
	some found in cpu_affinity.found
}

# RCCL looks at the setting itself (src/init.cc).
balanced := logs.messages({"rccl-numa-balancing"})

findings contains {
	"subject": "kernel.numa_balancing",
	"message": "RCCL reports that automatic NUMA balancing is on: it makes timings vary",
	"messages": balanced,
	"severity": "low",
	"confidence": "confirmed",
	"remedies": ["disable-numa-balancing"],
} if {
	count(balanced) > 0
	not balancing_read
}

balancing_read if is_number(input.numa.balancing)

told if count(cpu_affinity.spoken | balanced) > 0

missing contains {"fact": "numa", "words": "the NUMA topology was not read"} if {
	not numa_read
	not told
}

numa_read if is_object(input.numa)

missing contains {"fact": "gpus", "words": "it is not known which GPUs are used here"} if {
	not single_node
	not told
	not surroundings.usable
}

missing contains {"fact": "numa.nodes[].allowed_cpus", "words": "the affinity of this process is not known"} if {
	not single_node
	count(surroundings.usable) > 0
	count([n | some n in surroundings.cpu_nodes; is_number(n.allowed_cpus)]) < count(surroundings.cpu_nodes)
}

missing contains {"fact": "pci.devices[].numa_node", "words": "it is not known which NUMA nodes the GPUs belong to"} if {
	not single_node
	count(used) > 0
	count(node_gpus) == 0
}

single_node if count(surroundings.cpu_nodes) < 2

not_applicable contains "one NUMA node" if single_node

not_applicable contains "no GPU is visible here" if count(surroundings.usable) == 0
