package gpudoctor.rules.gds_compat_mode_test

import data.gpudoctor.rules.gds_compat_mode

none := {"NVMe": "unsupported", "NFS": "unsupported", "Mellanox PeerDirect": "disabled"}
nvme := object.union(none, {"NVMe": "supported"})
p2pdma := {"properties.use_pci_p2pdma": "true"}

machine(gds) := {
	"gpus": {"driver": {"open": true}, "devices": [{"address": "0000:18:00.0", "vendor": "nvidia"}]},
	"storage": {"gds": object.union({"loaded": false, "properties": {}, "source": "/proc/driver/nvidia-fs", "line": 0}, gds)},
}

text(gds) := {"storage": {"gds": object.union({"source": "gdscheck.txt", "line": 7, "properties": {}}, gds)}}
ids(m) := found if found := {f.id | some f in gds_compat_mode.findings} with input as m

test_fires_impossible if {
	closed := {"gpus": {"driver": {"open": false}}}
	ids(object.union(machine({"properties": p2pdma, "kernel_p2pdma": true}), closed)) == {"impossible"}
	ids(object.union(machine({"loaded": true, "drivers": none, "properties": p2pdma}), closed)) == {"impossible"}
	ids(text({"drivers": object.union(none, {"Userspace RDMA": "supported"})})) == {"impossible"}
}

test_silent if {
	ids({}) == set()
	ids(machine({})) == set()
	ids(machine({"loaded": true, "drivers": none, "properties": p2pdma})) == set()
	ids(object.union(machine({"properties": {"properties.force_compat_mode": "true"}}), {"gpus": {"nvml": "ok", "devices": []}})) == set()
	ids(text({"drivers": {"NVMe": "unsupported"}})) == set()
	ids(text({"drivers": nvme})) == set()
}

test_unresolvable if {
	gds_compat_mode.asks == {"storage.gds.loaded", "storage.gds.properties", "storage.gds.drivers"} with input as {"storage": {"gds": {"source": "x", "line": 0}}}
	gds_compat_mode.asks & {"storage.gds.kernel_p2pdma", "gpus.driver.open"} == set() with input as machine({"loaded": true})
	count(gds_compat_mode.missing) == 1 with input as text({"drivers": {"NVMe": "unsupported"}})
}
