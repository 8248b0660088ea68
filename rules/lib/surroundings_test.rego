package gpudoctor.lib.surroundings_test

import data.gpudoctor.lib.surroundings

a := "0000:01:00.0"

b := "0000:02:00.0"

gpu(address, vendor, in_nvml) := {"address": address, "vendor": vendor, "in_pci": true, "in_nvml": in_nvml}

host := {
	"gpus": {"nvml": "ok", "devices": [gpu(a, "nvidia", true), gpu(b, "nvidia", false)]},
	"container": {
		"inside": true,
		"device_nodes": [{"path": "/dev/nvidia1", "access": "rw"}, {"path": "/dev/dri/renderD128", "access": "rw"}],
		"driver_devices": [{"address": a}, {"address": b}, {"address": "0000:03:00.0"}],
	},
}

# Usable is what the probe was offered, else what NVML shows, else the nodes of a container, else the PCI tree.
test_usable if {
	amd := object.union(host, {"gpus": {"nvml": "not-found", "devices": [gpu(a, "amd", false), gpu(b, "amd", false)]}})
	every row in [
		[host, {"transfers": {"devices": [{"address": b}]}}, {b}],
		[host, {}, {a}],
		[host, {"gpus": {"nvml": "not-built"}}, {"/dev/nvidia1"}],
		[host, {"gpus": {"nvml": "not-built"}, "container": {"inside": false}}, {a, b}],
		[amd, {}, {"/dev/nvidia1", "/dev/dri/renderD128"}],
		[amd, {"container": {"inside": false}}, {a, b}],
	] {
		surroundings.usable == row[2] with input as object.union(row[0], row[1])
	}
	surroundings.usable_amd == {"/dev/dri/renderD128"} with input as amd
	not surroundings.usable with input as {}
	surroundings.on_host == 3 with input as host
}

test_image if {
	every document in [{"container": {"inside": true, "device_nodes": []}, "gpus": {"nvml": "not-found", "devices": []}}, {"container": {"inside": true}}] {
		surroundings.image with input as document
	}
	every document in [host, {"container": {"inside": false}, "gpus": {"nvml": "not-found", "devices": []}}, {}] {
		not surroundings.image with input as document
	}
}

# Nothing is said of what is not known.
test_unknown if {
	not surroundings.no_nvidia with input as {}
	not surroundings.all_nvlinked with input as {}
	not surroundings.no_rdma_nic with input as {}
	not surroundings.cpu_nodes with input as {"numa": {}}
	not surroundings.nccl_at_least([1]) with input as {}
	not surroundings.nccl_below([9]) with input as {}
}

test_rdma_nics if {
	devices := {"pci": {"devices": [
		{"address": "ib", "class": "0x020700", "kind": "nic", "vendor": "0x15b3", "device": "0x1021"},
		{"address": "roce", "class": "0x020000", "kind": "nic", "vendor": "0x15b3", "device": "0x1021"},
		{"address": "efa", "class": "0x020000", "kind": "nic", "vendor": "0x1d0f", "device": "0xefa2"},
		{"address": "virtio", "class": "0x020000", "kind": "nic", "vendor": "0x1af4", "device": "0x1041"},
	]}}
	surroundings.rdma_nics == {"ib", "roce", "efa"} with input as devices
}

test_version if {
	surroundings.version("2.28.9+cuda13.0") == [2, 28, 9]
	surroundings.version("580.159.04") == [580, 159, 4]
	not surroundings.version("unknown")
	not surroundings.version("")
}

nccl(version, found_by, loads) := {"kind": "libnccl", "path": version, "version": version, "found_by": found_by, "loads": loads}

test_nccl_of_python_first if {
	every row in [
		[[nccl("2.27.3", "python", false), nccl("2.18.5", "ld_cache", true)], "2.27.3"],
		[[nccl("2.18.5", "ld_cache", true), nccl("2.10.3", "toolkit", false)], "2.18.5"],
		[[nccl("2.10.3", "toolkit", false)], "2.10.3"],
	] {
		{l.version | some l in surroundings.nccl} == {row[1]} with input as {"libraries": {"files": row[0]}}
	}
}

test_where if {
	surroundings.where({"source": "/etc/nccl.conf", "line": 2}) == "in line 2 of /etc/nccl.conf" with input as {}
	surroundings.where({"source": "/etc/nccl.conf"}) == "in /etc/nccl.conf" with input as {}
	surroundings.where({"source": "environment"}) == "in the image's environment" with input as {"container": {"inside": true}}
}
