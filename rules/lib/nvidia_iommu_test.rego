package gpudoctor.lib.nvidia_iommu_test

import data.gpudoctor.lib.nvidia_iommu

a := "0000:41:00.0"

b := "0000:61:00.0"

pair := {"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 0, "bridges": []}

machine(groups) := {
	"host": {"virtualization": {"guest": false}},
	"gpus": {"devices": [{"address": x, "vendor": "nvidia"} | some x in [a, b]]},
	"links": {"pairs": [pair]},
	"iommu": {"vendor": "intel", "groups": groups},
}

of_type(kind) := [{"id": 12, "type": kind, "devices": [a]}, {"id": 15, "type": kind, "devices": [b]}]

test_affected if {
	nvidia_iommu.affected == {pair} with input as machine(of_type("DMA"))
	nvidia_iommu.affected == set() with input as machine(of_type("identity"))
	nvidia_iommu.group[a].id == 12 with input as machine(of_type("DMA"))
}

test_judged_on_bare_metal_over_pcie if {
	nvidia_iommu.judged == {pair} with input as machine([])
	every change in [
		{"host": {"virtualization": {"guest": true}}},
		{"iommu": {"vendor": "arm"}},
		{"links": {"pairs": [object.union(pair, {"nvlinks": 4})]}},
		{"links": {"pairs": [object.union(pair, {"p2p": {"read": "gpu-not-supported"}})]}},
		{"gpus": {"devices": [{"address": x, "vendor": "amd"} | some x in [a, b]]}},
	] {
		nvidia_iommu.judged == set() with input as object.union(machine([]), change)
	}
}

test_standing if {
	nvidia_iommu.standing(pair) == "implied" with input as machine([])
	unread := object.remove(pair, ["nvlinks"])
	nvidia_iommu.standing(unread) == "unsure" with input as machine([])
	failed := {"transfers": {"outcome": "ok", "transfers": [{"test": "copy", "source": a, "destination": b, "outcome": "corrupt"}]}}
	nvidia_iommu.standing(pair) == "failed" with input as object.union(machine([]), failed)
}

# Pairs whose groups are of a known type are judged by that.
test_suspects if {
	nvidia_iommu.suspects == {pair} with input as machine([])
	nvidia_iommu.suspects_standing == "implied" with input as machine([])
	nvidia_iommu.suspects == set() with input as machine(of_type("identity"))
	nvidia_iommu.suspects_standing == "unsure" with input as {}
}

event(kind, address, message) := {"kernel_log": {"source": "dmesg.txt", "events": [{"kind": kind, "address": address, "message": message, "count": 4}]}}

test_refused if {
	driver := {"kernel_log": {"events": [{"kind": "amd-vi-fault", "address": a, "message": "fault", "fields": {"driver": "nvidia"}}]}}
	gpus := machine([])
	count(nvidia_iommu.refused) == 1 with input as object.union(gpus, event("dmar-fault", a, "fault"))
	count(nvidia_iommu.refused) == 1 with input as driver
	count(nvidia_iommu.refused) == 0 with input as event("dmar-fault", a, "fault")
	count(nvidia_iommu.refused) == 0 with input as object.union(gpus, event("xid", a, "79"))
	guest := {"host": {"virtualization": {"guest": true}}}
	count(nvidia_iommu.refused) == 0 with input as object.union_n([gpus, guest, event("dmar-fault", a, "fault")])
}
