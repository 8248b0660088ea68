package gpudoctor.rules.amd_p2p_off_test

import data.gpudoctor.rules.amd_p2p_off

a := "0000:03:00.0"
b := "0000:06:00.0"
cards := [{"address": address, "vendor": "amd", "name": "AMD Radeon PRO W7900"} | some address in [a, b]]

machine(driver, pair) := {
	"gpus": {"devices": cards, "amd": object.union({"kfd": "ok"}, driver)},
	"links": {"pairs": [object.union({"a": a, "b": b, "kind": "gpu-gpu"}, pair)]},
}

off := {"parameters": {"pcie_p2p": "N"}}
without := {"kernel_config": {"CONFIG_HSA_AMD_P2P": "n", "CONFIG_PCI_P2PDMA": "y", "CONFIG_DMABUF_MOVE_NOTIFY": "n"}}
pcie := {"link_type": "pcie"}

found(document) := {[f.subject, f.confidence] | some f in amd_p2p_off.findings with input as document}

test_fires_on_the_kernel if {
	found(machine(without, pcie)) == {["kernel", "likely"]}
}

refusal := {"messages": [{"id": "hip-peer-access-failed", "program": "hip", "role": "category", "text": "HIP error: peer access is not supported between these two devices", "source": "x", "line": 1, "order": 0, "fields": {}}]}

# What works, and what goes over xGMI, needs no option.
test_silent_where_it_is_not_needed if {
	found(machine(without, object.union(pcie, {"accessible": true}))) == set()
	found(machine(object.union(off, without), {"link_type": "xgmi"})) == set()
	found(machine({"kernel_config": {"CONFIG_HSA_AMD_P2P": "y", "CONFIG_DMABUF_MOVE_NOTIFY": "n"}, "parameters": {"pcie_p2p": "Y"}}, pcie)) == set()
}

# A program that HIP refused, and what a search in the kernel's configuration shows.
test_fires_on_a_refusal_where_the_gpus_are_not_known if {
	refused := {"gpus": {"amd": without}, "logs": refusal}
	found(refused) == {["kernel", "confirmed"]}
	found({"gpus": {"amd": without}}) == set()
}
