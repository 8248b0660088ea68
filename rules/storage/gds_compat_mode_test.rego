package gpudoctor.rules.gds_compat_mode_test

import data.gpudoctor.rules.gds_compat_mode

none := {"NVMe": "unsupported", "NFS": "unsupported", "Mellanox PeerDirect": "disabled"}
nvme := object.union(none, {"NVMe": "supported"})
p2pdma := {"properties.use_pci_p2pdma": "true"}

machine(gds) := {
	"host": {"arch": "amd64", "virtualization": {"guest": false, "passthrough_host": false, "kind": "none", "source": "x"}},
	"gpus": {"driver": {"open": true}, "devices": [{"address": "0000:18:00.0", "vendor": "nvidia"}]},
	"iommu": {"mode": "off", "groups": []},
	"pci": {"devices": [{"address": "0000:1a:00.0", "kind": "nvme"}]},
	"links": {"pairs": []},
	"storage": {"gds": object.union({"loaded": false, "properties": {}, "source": "/proc/driver/nvidia-fs", "line": 0}, gds), "mounts": []},
}

mounted(type, journal) := [{"path": "/raid", "type": type, "data": journal, "device": "md0", "drives": ["nvme0"]}]
over(mounts) := object.union(machine({"loaded": true, "drivers": nvme}), {"storage": {"mounts": mounts}})
ids(m) := found if found := {f.id | some f in gds_compat_mode.findings} with input as m
lacks(m) := found if found := {x.fact | some x in gds_compat_mode.missing} with input as m

test_fires_impossible if {
	ids(object.union(machine({"properties": p2pdma, "kernel_p2pdma": true}), {"gpus": {"driver": {"open": false}}})) == {"impossible"}
}

test_fires_text if {
	m := {"storage": {"gds": {"drivers": none, "iommu": "enabled", "source": "gdscheck.txt", "line": 3}}}
	ids(m) == {"unregistered", "iommu"}
	part := {"storage": {"gds": {"drivers": {"NVMe": "unsupported"}, "source": "gdscheck.txt", "line": 3}}}
	ids(part) == set()
	lacks(part) == {"storage.gds.drivers"}
	lacks({"storage": {"gds": {"drivers": nvme, "source": "gdscheck.txt", "line": 3}}}) == set()
}

test_fires_acs if {
	bridge := {"address": "0000:17:02.0", "vendor": "0x1000", "acs": {"control": ["ReqRedir"]}}
	path := {"kind": "gpu-nvme", "a": "0000:18:00.0", "b": "0000:1a:00.0", "bridges": ["0000:17:02.0"], "common_bridge": "0000:16:00.0"}
	m := object.union(over(mounted("xfs", "")), {"pci": {"devices": [bridge]}, "links": {"pairs": [path]}})
	ids(object.union(m, {"host": {"virtualization": {"passthrough_host": true}}})) == set()
	ids(object.union(m, {"host": {"virtualization": {"guest": true}}})) == set()
}

test_silent if {
	ids(machine({"loaded": true, "drivers": none, "properties": p2pdma})) == set()
	ids(over(mounted("ext4", "ordered"))) == set()
	ids(over([{"path": "/home", "type": "btrfs", "drives": ["nvme0"]}])) == set()
	ids({"storage": {"gds": {"drivers": nvme, "iommu": "disabled", "source": "x", "line": 1}}}) == set()
}

test_unresolvable if {
	ids({}) == set()
	gds_compat_mode.asks == {"storage.gds.loaded", "storage.gds.properties"} with input as {"storage": {"gds": {"source": "x", "line": 0}}}
	gds_compat_mode.asks & {"storage.gds.kernel_p2pdma", "gpus.driver.open"} == set() with input as machine({"loaded": true})
	m := machine({"loaded": true, "drivers": nvme})
	lacks(object.remove(m, ["iommu"])) == {"iommu.groups"}
	path := {"kind": "gpu-nvme", "a": "0000:18:00.0", "b": "0000:1a:00.0", "bridges": ["0000:17:02.0"], "common_bridge": "0000:16:00.0"}
	lacks(object.union(m, {"links": {"pairs": [path]}})) == {"pci.devices[].acs"}
	lacks(object.union(m, {"storage": {"mounts": [{"path": "/a", "network": true}, {"path": "/b", "device": "md0", "drives": []}, {"path": "/c"}]}})) == set()
	lacks(object.union(m, {"storage": {"mounts": [{"path": "/d", "device": "md1"}]}})) == {"storage.mounts"}
}

told(more) := {"storage": {"gds": object.union({"source": "gdscheck.txt", "line": 7}, more)}}

test_drivers if {
	m := told({"drivers": {"NVMe": "supported", "NFS": "unsupported", "rdma library": "not loaded", "Userspace RDMA": "unsupported"}})
	gds_compat_mode.unsupported == {"NFS"} with input as m
	not gds_compat_mode.for_nvme with input as object.union(m, {"gpus": {"devices": [{"address": "0000:18:00.0", "vendor": "amd"}]}})
}

test_iommu_known if not gds_compat_mode.iommu_known with input as {"iommu": {"groups": [{"id": 1}]}}

test_data_mounts if {
	mounts := [{"path": path, "type": type, "drives": ["nvme0"]} | some [path, type] in [["/", "xfs"], ["/var/lib/x", "xfs"], ["/raid", "xfs"], ["/scratch", "btrfs"]]]
	{m.path | some m in gds_compat_mode.fit_mounts with input as {"storage": {"mounts": mounts}}} == {"/raid"}
}
