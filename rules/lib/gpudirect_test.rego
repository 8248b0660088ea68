package gpudoctor.lib.gpudirect_test

import data.gpudoctor.lib.gpudirect

ok := {"outcome": "ok", "bytes": 2097152}

no(call, errno) := {"outcome": "refused", "call": call, "errno": errno}

fault := no("ibv_reg_mr", "EFAULT")
unsupported := no("ibv_reg_dmabuf_mr", "EOPNOTSUPP")

way(name, o) := {name: o.x} if {
	o.x
} else := {}

machine(host, dmabuf, peermem) := {
	"pci": {"devices": [{"address": "0000:1c:00.0", "kind": "nic", "vendor": "0x15b3", "class": "0x020000"}]},
	"nics": {"rdma": [{"device": "mlx5_0", "address": "0000:1c:00.0"}]},
	"gpudirect": {"nics": [object.union(
		way("host", host),
		{"device": "mlx5_0", "gpus": [object.union({"address": "0000:1b:00.0"}, object.union(way("dmabuf", dmabuf), way("peermem", peermem)))]},
	)]},
}

test_refused_on_adapters if {
	m := machine({"x": ok}, {"x": unsupported}, {"x": fault})
	count(gpudirect.refused) == 0 with input as object.union(m, {"pci": {"devices": [{"address": "0000:1c:00.0", "kind": "nic", "vendor": "0x1d0f", "device": "0xefa1", "class": "0x020000"}]}})
	count(gpudirect.refused) == 0 with input as object.remove(m, ["pci"])
}
