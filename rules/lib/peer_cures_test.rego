package gpudoctor.lib.peer_cures_test

import data.gpudoctor.lib.broken_transfers
import data.gpudoctor.lib.peer_cures

a := "0000:01:00.0"

b := "0000:02:00.0"

transfer(test, outcome, extra) := object.union({"test": test, "source": a, "destination": b, "outcome": outcome}, extra)

# advice is what helps where transfers from one GPU to the other failed.
advice(transfers, extra) := remedies if {
	document := object.union({"transfers": {"outcome": "ok", "transfers": transfers}}, extra)
	group := broken_transfers.failures with input as document
	kind := broken_transfers.kind(group[[a, b]]) with input as document
	remedies := peer_cures.remedies(kind, group) with input as document
}

wrong := [transfer("copy", "corrupt", {})]

failing := [transfer("copy", "error", {"error_code": 700})]

guest := {"host": {"virtualization": {"guest": true}}}

radeon := {"gpus": {"devices": [{"address": address, "vendor": "amd", "name": "AMD Radeon AI PRO R9700"} | some address in [a, b]]}}

test_bare_metal if {
	advice(wrong, {}) == ["nccl-p2p-disable", "iommu-pt", "update-bios", "upgrade-driver"]
	advice(failing, {}) == ["nccl-p2p-disable", "upgrade-driver", "update-bios", "iommu-pt"]
}

test_pass_through_that_is_in_force if {
	not "iommu-pt" in advice(wrong, {"iommu": {"mode": "passthrough"}})
}

test_radeon if {
	advice(wrong, radeon) == ["nccl-p2p-disable", "update-bios", "upgrade-driver"]
	"iommu-remap" in advice(wrong, object.union(radeon, {"iommu": {"mode": "passthrough"}}))
}

# Neither firmware nor IOMMU has a part in NVLink, and both are the host's in a
# virtual machine.
test_advice_fits_the_platform if {
	advice(wrong, guest) == ["nccl-p2p-disable", "upgrade-driver"]
	joined := {"links": {"pairs": [{"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 18, "bridges": []}]}}
	advice(wrong, joined) == ["nccl-p2p-disable", "reset-gpu", "reboot-or-reload-driver", "upgrade-driver"]
}

test_memory_at_fault if {
	memory := [transfer("copy", "error", {"error_code": 214, "error_name": "CUDA_ERROR_ECC_UNCORRECTABLE"})]
	advice(memory, {}) == ["reset-gpu", "reboot-or-reload-driver", "replace-hardware"]
}

exported(way, outcome) := transfer("between-processes", outcome, {"way": way})

test_one_way_between_processes if {
	advice([exported("cuMem", "error"), exported("cudaIpc", "ok")], {}) == ["nccl-cumem-disable", "upgrade-driver"]
	advice([exported("cudaIpc", "error"), exported("cuMem", "ok")], {}) == ["upgrade-driver"]
	advice([exported("cudaIpc", "error"), exported("cuMem", "error")], {}) == ["nccl-p2p-disable", "upgrade-driver"]
}

test_cures_by_platform if {
	peer_cures.cures == ["nccl-p2p-disable", "iommu-pt", "iommu-off", "disable-acs", "update-bios", "upgrade-driver"] with input as {}
	peer_cures.cures == ["nccl-p2p-disable", "upgrade-driver"] with input as guest
	peer_cures.cures == ["nccl-p2p-disable", "disable-acs", "iommu-remap", "update-bios", "upgrade-driver"] with input as radeon
}
