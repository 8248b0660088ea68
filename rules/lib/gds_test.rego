package gpudoctor.lib.gds_test

import data.gpudoctor.lib.gds

told(more) := {"storage": {"gds": object.union({"source": "gdscheck.txt", "line": 7}, more)}}

machine(more) := {"storage": {"gds": object.union({"source": "/proc/driver/nvidia-fs", "line": 0, "loaded": false, "properties": {}}, more)}}

test_source if {
	gds.source == "gdscheck.txt:7" with input as told({})
	gds.source == "/proc/driver/nvidia-fs" with input as machine({})
	gds.drivers_source == "gdscheck.txt:7" with input as told({})
	gds.drivers_source == "/proc/driver/nvidia-fs/modules" with input as machine({})
	gds.properties_source == "/etc/cufile.json" with input as machine({"config": "/etc/cufile.json"})
	gds.properties_source == "gdscheck.txt:7" with input as told({})
}

test_settings if {
	gds.asked == false with input as machine({})
	gds.asked == true with input as machine({"properties": {"properties.use_pci_p2pdma": "true"}})
	gds.forced == false with input as {}
	not gds.asked with input as {}
	gds.set_by("X") == "" with input as machine({})
}

test_drivers if {
	m := told({"drivers": {"NVMe": "supported", "NFS": "unsupported", "rdma library": "not loaded", "Userspace RDMA": "unsupported"}})
	gds.supported == {"NVMe"} with input as m
	gds.unsupported == {"NFS"} with input as m
	gds.for_nvme with input as m
	not gds.for_nvme with input as object.union(m, {"gpus": {"devices": [{"address": "0000:18:00.0", "vendor": "amd"}]}})
}

test_not_set_up if {
	gds.not_set_up with input as machine({})
	not gds.not_set_up with input as machine({"loaded": true})
	not gds.not_set_up with input as told({})
	not gds.not_set_up with input as {}
}

test_mounts_known if {
	known := [{"path": "/a", "network": true}, {"path": "/b", "device": "md0", "drives": []}, {"path": "/c"}]
	gds.mounts_known with input as {"storage": {"mounts": known}}
	not gds.mounts_known with input as {"storage": {"mounts": array.concat(known, [{"path": "/d", "device": "md1"}])}}
	not gds.mounts_known with input as {"storage": {}}
}

test_iommu_known if {
	gds.iommu_known with input as {"iommu": {"mode": "off", "groups": []}}
	gds.iommu_known with input as {"iommu": {"groups": [{"id": 1, "type": "identity"}]}}
	not gds.iommu_known with input as {"iommu": {"groups": [{"id": 1}]}}
	not gds.iommu_known with input as {}
}

test_data_mounts if {
	mounts := [{"path": path, "type": type, "drives": ["nvme0"]} | some [path, type] in [["/", "xfs"], ["/var/lib/x", "xfs"], ["/raid", "xfs"], ["/scratch", "btrfs"]]]
	{m.path | some m in gds.data_mounts with input as {"storage": {"mounts": mounts}}} == {"/raid", "/scratch"}
	{m.path | some m in gds.fit_mounts with input as {"storage": {"mounts": mounts}}} == {"/raid"}
	gds.kind({"type": "ext4", "data": "journal"}) == "ext4 with data=journal"
	gds.kind({"type": "btrfs"}) == "btrfs"
}

test_known if {
	m := object.union(machine({"drivers": {}, "kernel_p2pdma": true}), {"gpus": {"driver": {"open": true}}})
	gds.loaded_known with input as m
	gds.properties_known with input as m
	gds.drivers_known with input as m
	gds.kernel_known with input as m
	gds.driver_known with input as m
	not gds.loaded_known with input as {}
	not gds.properties_known with input as {}
	not gds.drivers_known with input as {}
	not gds.kernel_known with input as {}
	not gds.driver_known with input as {}
}

test_known_machine if {
	m := {
		"host": {"arch": "amd64", "virtualization": {"guest": false, "passthrough_host": false}},
		"pci": {"devices": [{"address": "0000:17:02.0", "extended": true}]},
		"links": {"pairs": [{"kind": "gpu-nvme", "a": "0000:18:00.0", "b": "0000:1a:00.0", "bridges": ["0000:17:02.0", "0000:17:03.0"], "common_bridge": "0000:16:00.0"}]},
	}
	gds.guest_known with input as m
	gds.arch_known with input as m
	gds.tree_known with input as m
	gds.links_known with input as m
	gds.passthrough_known with input as m
	gds.hidden == {"0000:17:03.0"} with input as m
	not gds.guest_known with input as {}
	not gds.arch_known with input as {}
	not gds.tree_known with input as {}
	not gds.links_known with input as {}
	not gds.passthrough_known with input as {}
	gds.hidden == set() with input as {}
}
