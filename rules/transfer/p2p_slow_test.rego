package gpudoctor.rules.p2p_slow_test

import data.gpudoctor.rules.p2p_slow

a := "0000:01:00.0"
b := "0000:02:00.0"

transfer(test, source, destination, gbps) := {
	"test": test, "source": source, "destination": destination, "outcome": "slow",
	"gbps": gbps, "expected_gbps": 63.0, "fraction": gbps / 63, "threshold": 0.7,
}

fine(test, source, destination) := object.union(transfer(test, source, destination, 55), {"outcome": "ok"})
staged := object.union(fine("host-staged", a, b), {"gbps": 11.2})
pair(more) := object.union({"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 0, "common_bridge": "0000:00:01.0", "bridges": []}, more)

linked(pairs, transfers) := {
	"gpus": {"devices": [{"address": x, "vendor": "nvidia"} | some x in [a, b]]},
	"links": {"pairs": pairs},
	"transfers": {"outcome": "ok", "transfers": transfers},
}

machine(transfers) := linked([pair({})], transfers)

# hidden is a machine on which nobody could read the ACS of the bridge between the GPUs.
hidden := object.union(linked([pair({"bridges": ["0000:00:02.0"]})], [transfer("copy", a, b, 28)]), {
	"iommu": {"mode": "passthrough"},
	"pci": {"devices": [{"address": "0000:00:02.0", "vendor": "0x1000", "extended": false}]},
})

far := [fine("host-to-device", "node0", a), transfer("host-to-device", "node1", a, 20)]

# A cure of what is known to be sound is no cure, and the way through host memory is slower than most slow paths.
test_advice if {
	every row in [
		[machine([transfer("copy", a, b, 3), staged]), ["nccl-p2p-disable", "update-bios"]],
		[hidden, ["disable-acs", "update-bios"]],
		[object.union(hidden, {"host": {"virtualization": {"guest": true}}}), ["update-bios"]],
		[machine(far), ["bind-numa"]],
	] {
		found := p2p_slow.findings with input as row[0]
		[f.remedies | some f in found] == [row[1]]
	}
	every row in [
		[linked([pair({"nvlinks": 18})], [transfer("all-at-once", a, b, 5)]), "reset-gpu"],
		[linked([pair({"nvlinks": 18})], [transfer("copy", a, b, 20)]), "reset-gpu"],
		[machine([transfer("host-to-device", "node0", a, 28)]), "reseat-or-fix-pcie-link"],
	] {
		some f in p2p_slow.findings with input as row[0]
		f.remedies[0] == row[1]
	}
}

test_what_is_said if {
	every row in [
		[hidden, {"bridges": {"0000:00:02.0"}}],
		[machine([{"test": "handshake", "source": a, "destination": b, "outcome": "slow", "reason": "a round takes 900 us"}]), {"figures": "a round takes 900 us (handshake)"}],
	] {
		some f in p2p_slow.findings with input as row[0]
		object.subset(f.about, row[1])
	}
	some f in p2p_slow.findings with input as object.union(machine(far), {"pci": {"devices": [{"address": a, "vendor": "0x10de", "numa_node": 0}]}})
	[f.severity, f.params.node] == ["low", 0]
	some g in p2p_slow.findings with input as machine([transfer("host-to-device", "node0", a, 28)])
	g.severity == "medium"
}

# Something worse happened, or others used the GPUs, so that a rate proves nothing, however low.
test_silent if {
	every transfers in [
		[transfer("copy", a, b, 10), object.union(transfer("copy", b, a, 10), {"outcome": "corrupt"})],
		[
			object.union(transfer("host-to-device", "node0", a, 3), {"outcome": "unknown", "cause": "busy", "user": {"pid": 7}}),
			fine("copy", a, b),
		],
	] {
		count(p2p_slow.findings) == 0 with input as machine(transfers)
	}
}
