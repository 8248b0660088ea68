package gpudoctor.rules.nic_driver_missing_test

import data.gpudoctor.rules.nic_driver_missing

nic(address, more) := object.union({"address": address, "kind": "nic", "class": "0x020000", "vendor": "0x15b3", "device": "0x1021"}, more)
machine(devices, rdma, modules) := bare(array.concat(devices, [{"address": "0000:00:1f.0", "kind": "other", "driver": "ahci"}]), rdma, modules)
bare(devices, rdma, modules) := {"pci": {"devices": devices}, "nics": {"rdma": rdma, "modules": modules}}

port := {"device": "mlx5_0", "port": 1, "source": "/sys/class/infiniband/mlx5_0/ports/1", "line": 0}
good := nic("0000:18:00.0", {"driver": "mlx5_core"})

test_fires_without_driver if {
	some g in nic_driver_missing.findings with input as machine([nic("0000:18:00.0", {}), nic("0000:3b:00.0", {})], [], [])
	g.subject == "network"
	host := {"host": {"virtualization": {"guest": false, "passthrough_host": true}}}
	some h in nic_driver_missing.findings with input as object.union(machine([nic("0000:18:00.0", {})], [], []), host)
	h.severity == "low"
}

test_fires_without_rdma if {
	some f in nic_driver_missing.findings with input as machine([good], [], ["mlx5_core"])
	[f.id, f.severity] == ["no-driver", "medium"]
}

test_silent if {
	count(nic_driver_missing.findings) == 0 with input as machine([good, nic("0000:18:00.1", {"virtual": true})], [port], [])
	count(nic_driver_missing.findings) == 0 with input as machine([nic("0000:18:00.0", {"vendor": "0x8086"})], [], [])
}

test_unresolvable if {
	text := {"pci": {"devices": [nic("0000:3b:00.0", {})]}}
	count(nic_driver_missing.findings) == 0 with input as text
	undriven := bare([nic("0000:3b:00.0", {})], [port], ["mlx5_ib"])
	count(nic_driver_missing.findings) == 0 with input as undriven
	"pci.devices[].driver" in nic_driver_missing.asks with input as undriven
	count(nic_driver_missing.findings) == 0 with input as {"pci": {"devices": [good]}, "nics": {"rdma": []}}
}
