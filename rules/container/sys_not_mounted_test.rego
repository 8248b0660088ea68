package gpudoctor.rules.sys_not_mounted_test

import data.gpudoctor.rules.sys_not_mounted

# machine has two GPUs joined by so many NVLinks, and /sys as it should be.
machine(nvlinks) := {
	"host": {"virtualization": {"kind": "kvm", "guest": true}},
	"gpus": {"nvml": "ok", "devices": [
	{"address": address, "vendor": "nvidia", "in_pci": true, "in_nvml": true} |
		some address in ["0000:01:00.0", "0000:02:00.0"]
	]},
	"links": {"virtual_topology": true, "pairs": [{"a": "0000:01:00.0", "b": "0000:02:00.0", "kind": "gpu-gpu", "nvlinks": nvlinks}]},
	"container": {"inside": true, "sys_mounted": true, "pci_visible": true, "device_nodes": []},
}

nics := {"container": {"device_nodes": [{"path": path, "access": "rw"} | some path in ["/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1"]]}}
one := {"gpus": {"devices": [{"address": "0000:01:00.0", "vendor": "nvidia", "in_pci": false, "in_nvml": true}]}}

test_findings if {
	every row in [
		[[machine(18), {"container": {"pci_visible": false}}], ["absent", "medium"]],
		[[machine(18), one, {"container": {"sys_mounted": false}}], ["absent", "low"]],
		[[machine(18), nics, {"host": {"virtualization": {"guest": false}}}], ["virtual", "info"]],
	] {
		found := sys_not_mounted.findings with input as object.union_n(row[0])
		{[f.grade, object.get(f, "severity", "info")] | some f in found} == {row[1]}
	}
	every document in [
		[machine(18), nics, {"env": {"variables": [{"name": "NCCL_TOPO_FILE", "value": "/etc/topo.xml", "source": "environment", "effective": true}]}}],
		[machine(0), {"gpus": {"devices": []}, "container": {"sys_mounted": false}}],
	] {
		count(sys_not_mounted.findings) == 0 with input as object.union_n(document)
	}
}

test_unresolvable if count(sys_not_mounted.findings) == 0 with input as {}
