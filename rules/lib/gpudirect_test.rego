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

read(parts) := {"gpudirect": {"reads": [object.union({"mount": "/data", "gpu": "0000:1b:00.0"}, parts)]}}
refused_by(error) := {"outcome": "refused", "call": "cuFileHandleRegister", "error": error}

test_reads if {
	gpudirect.direct == {"/data"} with input as read({"direct": {"outcome": "ok"}})
	gpudirect.direct == set() with input as read({"configured": {"outcome": "ok"}})
	unstarted := {"outcome": "refused", "call": "cuFileDriverOpen", "error": "CU_FILE_DRIVER_NOT_INITIALIZED"}
	count(gpudirect.staged) == 1 with input as read({"direct": unstarted, "configured": {"outcome": "ok"}})
	count(gpudirect.staged) == 0 with input as read({"direct": refused_by("CU_FILE_IO_NOT_SUPPORTED")})
	count(gpudirect.unclear) == 1 with input as read({"direct": refused_by("CU_FILE_IO_NOT_SUPPORTED")})
	count(gpudirect.unclear) == 1 with input as read({"direct": {"outcome": "refused"}, "configured": {"outcome": "ok"}})
	every parts in [{"direct": {"outcome": "ok"}}, {"direct": refused_by("CU_FILE_INVALID_FILE_TYPE"), "configured": {"outcome": "ok"}}] {
		count(gpudirect.unclear) == 0 with input as read(parts)
	}
}
