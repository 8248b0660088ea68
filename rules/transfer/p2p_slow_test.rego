package gpudoctor.rules.p2p_slow_test

import data.gpudoctor.rules.p2p_slow

a := "0000:01:00.0"
b := "0000:02:00.0"

transfer(test, source, destination, gbps) := {
	"test": test, "source": source, "destination": destination, "outcome": "slow",
	"gbps": gbps, "expected_gbps": 63.0, "fraction": gbps / 63, "threshold": 0.7,
}

fine(test, source, destination) := object.union(transfer(test, source, destination, 55), {"outcome": "ok"})

machine(transfers) := {
	"gpus": {"devices": [{"address": x, "vendor": "nvidia"} | some x in [a, b]]},
	"links": {"pairs": [{"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 0, "common_bridge": "0000:00:01.0", "bridges": []}]},
	"transfers": {"outcome": "ok", "transfers": transfers},
}

staged(gbps) := {"test": "host-staged", "source": a, "destination": b, "outcome": "ok", "gbps": gbps}

# A cure of what is known to be sound is no cure, and the way through host memory is slower than most slow paths.
test_advice_fits_the_path if {
	slow := machine([transfer("copy", a, b, 28)])
	advice(machine([transfer("copy", a, b, 3), staged(11.2)])) == ["iommu-pt", "nccl-p2p-disable", "update-bios"]
	hidden := object.union(slow, {
		"iommu": {"mode": "passthrough"},
		"links": {"pairs": [object.union(slow.links.pairs[0], {"bridges": ["0000:00:02.0"]})]},
		"pci": {"devices": [{"address": "0000:00:02.0", "vendor": "0x1000", "extended": false}]},
	})
	advice(hidden) == ["disable-acs", "update-bios"]
	some f in p2p_slow.findings with input as hidden
	contains(f.message, "reading ACS needs root")
	advice(object.union(hidden, {"host": {"virtualization": {"guest": true}}})) == ["update-bios"]
}

# Slow beyond the switches and fast below them: a level leaves those out alone.
test_level_keeps_fast_pairs if {
	c := "0000:81:00.0"
	base := machine([])
	document := object.union(base, {
		"iommu": {"mode": "off"},
		"links": {"pairs": array.concat(base.links.pairs, [{"a": a, "b": c, "kind": "gpu-gpu", "nvlinks": 0, "path": "SYS", "bridges": []}])},
		"transfers": {"transfers": [fine("copy", a, b), transfer("copy", a, c, 3), staged(11.2)]},
	})
	advice(document) == ["nccl-p2p-level", "nccl-p2p-disable", "update-bios"]
}

advice(document) := f.remedies if {
	found := p2p_slow.findings with input as document
	count(found) == 1
	some f in found
}

test_together_over_nvlink if {
	joined := object.union(machine([transfer("all-at-once", a, b, 5)]), {"links": {"pairs": [{"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 18}]}})
	some f in p2p_slow.findings with input as joined
	f.remedies[0] == "reset-gpu"
	contains(f.message, "switches of the fabric")
}

test_nvlink if {
	joined := object.union(machine([transfer("copy", a, b, 20)]), {"links": {"pairs": [{"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 18}]}})
	some f in p2p_slow.findings with input as joined
	f.remedies[0] == "reset-gpu"
}

test_without_figures if {
	some f in p2p_slow.findings with input as machine([{"test": "handshake", "source": a, "destination": b, "outcome": "slow", "reason": "a round takes 900 us"}])
	contains(f.message, "900 us")
}

test_host_copies if {
	far := [
		object.union(fine("host-to-device", "node0", a), {"outcome": "ok"}),
		transfer("host-to-device", "node1", a, 20),
	]
	some f in p2p_slow.findings with input as machine(far)
	f.severity == "low"
	f.remedies == ["bind-numa"]
	some g in p2p_slow.findings with input as machine([transfer("host-to-device", "node0", a, 28)])
	g.severity == "medium"
	g.remedies[0] == "reseat-or-fix-pcie-link"
	placed := object.union(machine(far), {"pci": {"devices": [{"address": a, "vendor": "0x10de", "numa_node": 0}]}})
	some h in p2p_slow.findings with input as placed
	h.params.node == 0
}

test_silent_where_something_worse_happened if {
	worse := object.union(transfer("copy", b, a, 10), {"outcome": "corrupt"})
	count(p2p_slow.findings) == 0 with input as machine([transfer("copy", a, b, 10), worse])
}

test_unresolvable if count(p2p_slow.missing) == 1 with input as {}

# A rate that was measured while others used the GPUs proves nothing, however low.
test_silent_under_load if {
	loaded := {"outcome": "unknown", "cause": "busy", "user": {"pid": 7}}
	host := object.union(transfer("host-to-device", "node0", a, 3), loaded)
	count(p2p_slow.findings) == 0 with input as machine([host, fine("copy", a, b)])
}
