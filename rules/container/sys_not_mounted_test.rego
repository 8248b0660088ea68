package gpudoctor.rules.sys_not_mounted_test

import data.gpudoctor.rules.sys_not_mounted

# machine has two GPUs joined by so many NVLinks, and /sys as it should be.
machine(nvlinks) := {
	"host": {"virtualization": {"kind": "kvm", "guest": true}},
	"gpus": {"nvml": "ok", "devices": [
		{"address": "0000:01:00.0", "vendor": "nvidia", "in_pci": true, "in_nvml": true},
		{"address": "0000:02:00.0", "vendor": "nvidia", "in_pci": true, "in_nvml": true},
	]},
	"links": {"virtual_topology": true, "pairs": [{
		"a": "0000:01:00.0",
		"b": "0000:02:00.0",
		"kind": "gpu-gpu",
		"nvlinks": nvlinks,
	}]},
	"container": {"inside": true, "sys_mounted": true, "pci_visible": true, "device_nodes": []},
	"env": {"variables": []},
}

changed(document, changes) := object.union(document, changes)

found(document) := {[f.subject, f.severity] | some f in sys_not_mounted.findings with input as document}

test_fires_without_sys if {
	found(changed(machine(18), {"container": {"sys_mounted": false, "pci_visible": false}})) == {["/sys", "medium"]}
	some f in sys_not_mounted.findings with input as changed(machine(0), {
		"container": {"sys_mounted": false},
		"links": {"virtual_topology": false},
	})
	contains(f.message, "through host memory")
	f.remedies == ["mount-sys"]
}

test_fires_when_masked if {
	found(changed(machine(18), {"container": {"pci_visible": false}})) == {["/sys", "medium"]}
}

test_low_with_one_gpu if {
	one := changed(machine(18), {
		"gpus": {"devices": [{"address": "0000:01:00.0", "vendor": "nvidia", "in_pci": false, "in_nvml": true}]},
		"container": {"sys_mounted": false},
	})
	found(one) == {["/sys", "low"]}
}

# An NVLink machine in a virtual machine is healthy.
test_silent_in_a_virtual_machine_with_nvlink if found(machine(18)) == set()

test_silent_on_bare_metal if found(changed(machine(0), {"links": {"virtual_topology": false}})) == set()

test_virtual_topology_without_nvlink_is_info if found(machine(0)) == {["PCI topology", "info"]}

test_virtual_topology_with_nics_is_low if {
	nics := {"container": {"device_nodes": [
		{"path": "/dev/infiniband/uverbs0", "access": "rw"},
		{"path": "/dev/infiniband/uverbs1", "access": "rw"},
	]}}
	found(changed(machine(18), nics)) == {["PCI topology", "low"]}
	some f in sys_not_mounted.findings with input as changed(machine(18), nics)
	f.remedies == ["nccl-topo-file"]
	contains(f.message, "NIC is near which GPU")

	# A file that tells the topology is set.
	told := changed(changed(machine(18), nics), {"env": {"variables": [{
		"name": "NCCL_TOPO_FILE",
		"value": "/etc/topo.xml",
		"source": "environment",
		"effective": true,
	}]}})
	found(told) == set()
	elsewhere := changed(changed(machine(18), nics), {"host": {"virtualization": {"guest": false}}})
	some g in sys_not_mounted.findings with input as elsewhere
	contains(g.message, "This machine shows")
}

test_silent_without_gpus if {
	none := changed(machine(0), {"gpus": {"devices": []}, "container": {"sys_mounted": false}})
	found(none) == set()
	count(sys_not_mounted.not_applicable) == 1 with input as none
}

test_unresolvable_without_container if {
	count(sys_not_mounted.missing) == 1 with input as {}
	count(sys_not_mounted.findings) == 0 with input as {}
	count(sys_not_mounted.missing) == 1 with input as json.remove(machine(0), ["container/sys_mounted"])
	count(sys_not_mounted.missing) == 1 with input as {"container": {"inside": false, "sys_mounted": true}}
}
