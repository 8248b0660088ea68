package gpudoctor.lib.fabric_test

import data.gpudoctor.lib.fabric

mismatch(packages) if {
	fabric.mismatch with input as {"gpus": {"driver": {"kernel_version": "580.159.04"}}, "software": packages}
}

test_a_package_tells_the_version if {
	mismatch([{"name": "nvidia-fabricmanager-570", "version": "570.86.15-1"}])
	not mismatch([{"name": "nvidia-fabricmanager-580", "version": "580.159.04-1"}])
	not mismatch([])
}

test_switches if {
	fabric.switches with input as {"pci": {"devices": [{"address": "0000:07:00.0", "kind": "nvswitch"}]}}
	fabric.switches with input as {"gpus": {"devices": [{"address": sprintf("GPU%d", [i]), "name": "NVIDIA H200"} | some i in numbers.range(0, 7)]}}
	not fabric.switches with input as {"gpus": {"devices": []}}
}
