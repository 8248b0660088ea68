# METADATA
# title: Benchmarks of copies between host memory and GPUs
# description: >-
#   Tables whose values are below what the ways between the GPUs and their processors
#   carry, or below what any slot carries.
package gpudoctor.lib.host_copies

import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.peers

# slow are the tables with their low values and the worst of them.
slow contains {"table": b, "points": ps, "worst": benchmarks.worst(ps)} if {
	some i, ps in benchmarks.low
	b := input.benchmarks[i]
	b.what in {"host-to-gpu", "gpu-to-host"}
}

# hopeless is true of a value that is too low for any slot: its bound is a rate, not a share of
# one.
hopeless(p) if p.threshold == 1

found contains {
	"subject": sprintf("%s, %s", [t.table.tool, t.table.test]),
	"message": sprintf("%s: %s GB/s between host memory and %s, where %s carries %s and at least %s counts as good; %d of %d values are too low. %s.", [
		t.table.test, peers.decimal(t.worst.gbps), end(t.worst), t.worst.basis, peers.decimal(t.worst.expected_gbps),
		peers.decimal(t.worst.expected_gbps * t.worst.threshold), count(t.points), count(t.table.points), remark(t),
	]),
	"evidence": benchmarks.points_evidence(t.table, t.points),
	"severity": grade(t),
	"confidence": "possible",
	"remedies": cures(t),
} if {
	some t in slow
	not hopeless(t.worst)
}

# The GPU's link is not known, and no link of a GPU is so slow.
found contains {
	"subject": sprintf("%s, %s", [t.table.tool, t.table.test]),
	"message": sprintf("%s: %.2f GB/s between host memory and %s, which is less than %s carries (%.2f GB/s); a GPU has at least four lanes, and usually sixteen. %s", [
		t.table.test, t.worst.gbps, end(t.worst), t.worst.basis, t.worst.expected_gbps, suspects,
	]),
	"evidence": benchmarks.points_evidence(t.table, t.points),
	"severity": "medium",
	"confidence": confidence(t.table),
	"remedies": ["reseat-or-fix-pcie-link", "bind-numa", "update-bios"],
} if {
	some t in slow
	hopeless(t.worst)
}

# suspects: what limits the copies of a virtual machine cannot be seen in it.
default suspects := "The first suspects are a riser or slot with one lane, and a link that dropped to its lowest speed or width; run nvidia-smi -q while the copies run to see the link"

suspects := "In a virtual machine, the first suspects are the link on the host and the memory of the guest" if facts.is_guest == true

# Copies from pageable memory depend on the processor as well.
confidence(b) := "likely" if {
	endswith(b.test, ", pinned")
	not facts.is_guest == true
} else := "possible"

end(p) := [e | some e in [p.a, p.b]; e != "CPU"][0]

all_low(t) if count(t.points) == count(t.table.points)

# alike is true of several values that all are low and do not differ: the links of GPUs rarely
# fail together, but the uplinks of the switches above them are alike. These are not known.
alike(t) if {
	all_low(t)
	rates := {p.gbps | some p in t.points}
	count(t.points) > 1
	max(rates) <= min(rates) * 1.1
	count(object.get(object.get(input, "links", {}), "hosts", [])) == 0
}

grade(t) := "low" if {
	alike(t)
} else := "medium"

cures(t) := ["reseat-or-fix-pcie-link", "update-bios"] if {
	all_low(t)
} else := ["reseat-or-fix-pcie-link", "bind-numa", "update-bios"]

remark(t) := "All values agree, so the switches above the GPUs may have narrower uplinks, which is how some machines are built (AWS p5: PCIe 4.0 x8). gpudoctor check on the machine, or lspci -vvv as root, shows them" if {
	alike(t)
} else := "The first suspect is a link that dropped to fewer lanes or a lower speed" if {
	all_low(t)
} else := "Others are good, so their link dropped to fewer lanes or a lower speed, or the memory was on a remote NUMA node"
