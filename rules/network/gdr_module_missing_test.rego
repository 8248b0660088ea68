package gpudoctor.rules.gdr_module_missing_test

import data.gpudoctor.rules.gdr_module_missing

said(id, more) := object.union({"id": id, "program": "nccl", "role": "cause", "text": "x", "source": "a.log", "line": 7, "order": 2, "count": 1, "ranks": 1}, more)
log(messages) := {"logs": {"messages": messages}}
modules(names) := {"nics": {"modules": names}}
absent := modules(["ib_core"])
disabled := said("nccl-gdr-nic-disabled", {"text": "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"})
channels(gdrs) := {"logs": {"transports": [{"kind": "net", "network": "IB", "same_host": false, "gdr": gdr, "channels": 4, "source": "a.log", "line": 9} |
	some gdr in gdrs
]}}

live(kernel) := {
	"host": {"kernel": kernel},
	"gpus": {"driver": {}, "devices": [{"address": "0000:19:00.0", "vendor": "nvidia"}]},
	"nics": {"modules": ["mlx5_ib"], "rdma": [{
		"device": "mlx5_0", "port": 1, "state": "active", "address": "0000:1c:00.0", "source": "/sys/class/infiniband/mlx5_0/ports/1", "line": 0,
	}]},
}

ok := {"outcome": "ok", "bytes": 2097152}
no(call, errno) := {"outcome": "refused", "call": call, "errno": errno}

# tried is a machine that loads neither module nor driver for GPUDirect RDMA, with what was registered on it.
tried(host, gpu) := object.union_n([live("6.8.0"), {
	"gpus": {"driver": {"open": false}},
	"pci": {"devices": [{"address": "0000:1c:00.0", "kind": "nic", "vendor": "0x15b3", "class": "0x020000"}]},
	"gpudirect": {"nics": [object.union(host, {"device": "mlx5_0", "gpus": [object.union({"address": "0000:19:00.0"}, gpu)]})]},
}])

works := tried({"host": ok}, {"dmabuf": ok})

test_findings if {
	every row in [
		[[log([disabled]), {"logs": {"communicators": [{"nodes": 1, "hosts": ["a"]}]}}], [["GPUDirect RDMA", "low", ""]]],
		[[log([said("rccl-gdr-no-peer-memory", {"program": "rccl"})])], [["GPUDirect RDMA", "low", ""]]],
		[[absent, channels([false])], [["GPUDirect RDMA", "medium", ""]]],
		[[absent, channels([true])], []],
		[[absent, channels([false]), {"nics": {"modules_partial": true}}], []],
		[[log([said("nccl-gdr-nic-disabled", {"fields": {"network": "Socket"}})])], []],
		[[log([disabled]), channels([true])], []],
		[
			[tried({"host": ok}, {"dmabuf": no("ibv_reg_dmabuf_mr", "EOPNOTSUPP"), "peermem": no("ibv_reg_mr", "EFAULT")}), log([disabled])],
			[["GPUDirect RDMA", "low", ""]],
		],
	] {
		found := gdr_module_missing.findings with input as object.union_n(row[0])
		[[f.subject, object.get(f, "severity", ""), object.get(f, "confidence", "")] | some f in found] == row[1]
	}
}

# One host of a job lacks what another one has.
test_one_host if {
	some f in gdr_module_missing.findings with input as log([said("nccl-gdr-nic-enabled", {"host": "a"}), said("nccl-gdr-nic-disabled", {"host": "b"})])
	f.about == {"host": "b", "at": "a.log:7", "others": {"a"}}
}

test_what_is_said if {
	some f in gdr_module_missing.findings with input as live("5.4.0-150-generic")
	f.about.lacks == {"kernel 5.12 (this is 5.4.0-150-generic)"}
}

test_unresolvable if {
	count(gdr_module_missing.findings) == 0 with input as {}
	"gpus.driver.open" in gdr_module_missing.asks with input as live("6.8.0")
	not "nics.modules" in gdr_module_missing.asks with input as object.union(works, modules(null))
}
