package gpudoctor.lib.surroundings_test

import data.gpudoctor.lib.surroundings

a := "0000:01:00.0"

b := "0000:02:00.0"

gpu(address, vendor, in_nvml) := {"address": address, "vendor": vendor, "in_pci": true, "in_nvml": in_nvml}

host := {
	"gpus": {"nvml": "ok", "devices": [gpu("0000:01:00.0", "nvidia", true), gpu("0000:02:00.0", "nvidia", false)]},
	"container": {
		"inside": true,
		"device_nodes": [{"path": "/dev/nvidia1", "access": "rw"}, {"path": "/dev/dri/renderD128", "access": "rw"}],
		"driver_devices": [{"address": "0000:01:00.0"}, {"address": "0000:02:00.0"}, {"address": "0000:03:00.0"}],
	},
}

test_no_nvidia if {
	surroundings.no_nvidia with input as {"gpus": {"devices": [gpu(a, "amd", false)]}}
	not surroundings.no_nvidia with input as {"gpus": {"devices": [gpu(a, "amd", false), gpu(b, "nvidia", true)]}}
	not surroundings.no_nvidia with input as {}
}

test_usable_by_the_probe if {
	document := object.union(host, {"transfers": {"devices": [{"address": "0000:02:00.0"}]}})
	surroundings.usable == {"0000:02:00.0"} with input as document
}

test_usable_by_nvml if surroundings.usable == {"0000:01:00.0"} with input as host

test_usable_by_nodes if {
	surroundings.usable == {"/dev/nvidia1"} with input as object.union(host, {"gpus": {"nvml": "not-built"}})
}

test_usable_by_the_tree if {
	document := object.union(host, {"gpus": {"nvml": "not-built"}, "container": {"inside": false}})
	surroundings.usable == {"0000:01:00.0", "0000:02:00.0"} with input as document
}

# Two AMD GPUs of a machine, one of them given to this container.
test_usable_amd if {
	document := object.union(host, {"gpus": {"nvml": "not-found", "devices": [gpu("0000:01:00.0", "amd", false), gpu("0000:02:00.0", "amd", false)]}})
	surroundings.usable_amd == {"/dev/dri/renderD128"} with input as document
	outside := object.union(document, {"container": {"inside": false}})
	surroundings.usable_amd == {"0000:01:00.0", "0000:02:00.0"} with input as outside
}

test_usable_is_unknown if not surroundings.usable with input as {}

test_on_host if surroundings.on_host == 3 with input as host

test_image if {
	surroundings.image with input as {"container": {"inside": true, "device_nodes": []}, "gpus": {"nvml": "not-found", "devices": []}}
	surroundings.image with input as {"container": {"inside": true}}
	not surroundings.image with input as host
	not surroundings.image with input as {"container": {"inside": false}, "gpus": {"nvml": "not-found", "devices": []}}
	not surroundings.image with input as {}
}

test_nvlink if {
	joined := {"links": {"pairs": [{"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 18, "nvswitch": true}]}}
	surroundings.nvlinked with input as joined
	surroundings.all_nvlinked with input as joined
	surroundings.nvswitch with input as joined
	some_only := {"links": {"pairs": [{"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 4}, {"a": a, "b": "0000:03:00.0", "kind": "gpu-gpu", "nvlinks": 0}]}}
	surroundings.nvlinked with input as some_only
	not surroundings.all_nvlinked with input as some_only
	not surroundings.nvswitch with input as some_only
}

test_multicast_needs_hopper if {
	machine := {"gpus": {"nvswitches": 4, "devices": [{"address": a, "vendor": "nvidia", "compute_capability": "9.0"}]}}
	surroundings.multicast with input as machine
	not surroundings.multicast with input as object.union(machine, {"gpus": {"devices": [{"address": a, "vendor": "nvidia", "compute_capability": "8.0"}]}})
}

test_rdma_nics if {
	devices := {"pci": {"devices": [
		{"address": "ib", "class": "0x020700", "kind": "nic", "vendor": "0x15b3", "device": "0x1021"},
		{"address": "roce", "class": "0x020000", "kind": "nic", "vendor": "0x15b3", "device": "0x1021"},
		{"address": "efa", "class": "0x020000", "kind": "nic", "vendor": "0x1d0f", "device": "0xefa2"},
		{"address": "virtio", "class": "0x020000", "kind": "nic", "vendor": "0x1af4", "device": "0x1041"},
	]}}
	surroundings.rdma_nics == {"ib", "roce", "efa"} with input as devices
	surroundings.infiniband_nics == {"ib"} with input as devices
}

test_cpu_nodes if {
	nodes := surroundings.cpu_nodes with input as {"numa": {"nodes": [{"id": 0, "cpus": "0-71"}, {"id": 1, "cpus": ""}]}}
	[n.id | some n in nodes] == [0]
	not surroundings.cpu_nodes with input as {"numa": {}}
}

test_version if {
	surroundings.version("2.28.9+cuda13.0") == [2, 28, 9]
	surroundings.version("580.159.04") == [580, 159, 4]
	surroundings.version("2.10.3") > surroundings.version("2.9.9")
	surroundings.version("535.104.05") < surroundings.version("535.104.12")
	surroundings.version("13.0") >= [13]
	not surroundings.version("unknown")
	not surroundings.version("")
}

libraries(list) := {"libraries": {"files": list}}

nccl(version, found_by, loads) := {"kind": "libnccl", "path": version, "version": version, "found_by": found_by, "loads": loads}

test_nccl_of_python_first if {
	both := libraries([nccl("2.27.3", "python", false), nccl("2.18.5", "ld_cache", true)])
	{l.version | some l in surroundings.nccl} == {"2.27.3"} with input as both
	surroundings.nccl_at_least([2, 24]) with input as both
	not surroundings.nccl_below([2, 24]) with input as both
	{l.version | some l in surroundings.nccl} == {"2.18.5"} with input as libraries([nccl("2.18.5", "ld_cache", true), nccl("2.10.3", "toolkit", false)])
	{l.version | some l in surroundings.nccl} == {"2.10.3"} with input as libraries([nccl("2.10.3", "toolkit", false)])
	not surroundings.nccl_at_least([1]) with input as {}
	not surroundings.nccl_below([9]) with input as {}
}

test_where if {
	surroundings.where({"source": "/etc/nccl.conf", "line": 2}) == "in line 2 of /etc/nccl.conf" with input as {}
	surroundings.where({"source": "/etc/nccl.conf"}) == "in /etc/nccl.conf" with input as {}
	surroundings.where({"source": "environment"}) == "in the environment" with input as {}
	surroundings.where({"source": "environment"}) == "in the image's environment" with input as {"container": {"inside": true}}
	surroundings.variable_evidence({"name": "A", "value": "1", "source": "environment"}) == {"fact": "env.variables[A]", "value": "1", "source": "environment"}
}
