package gpudoctor.rules.gdr_module_missing_test

import data.gpudoctor.rules.gdr_module_missing

said(id, more) := object.union({"id": id, "program": "nccl", "role": "cause", "text": "x", "source": "a.log", "line": 7, "order": 2, "count": 1, "ranks": 1}, more)
log(messages) := {"logs": {"messages": messages}}
modules(names) := {"nics": {"modules": names}}
loaded := modules(["nvidia_peermem", "ib_core"])
absent := modules(["ib_core"])
disabled := said("nccl-gdr-nic-disabled", {"text": "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"})
gone := log([said("peermem-no-clients", {"role": "setting"})])
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
		# No module registered.
		[[gone, channels([false, true])], [["GPUDirect RDMA", "medium", ""]]],
		[[gone, channels([true])], []],
		[[gone, channels([false]), loaded], []],
		[[gone, channels([false]), works], []],
		[
			[tried({"host": ok}, {"dmabuf": no("ibv_reg_dmabuf_mr", "EOPNOTSUPP"), "peermem": no("ibv_reg_mr", "EFAULT")}), log([disabled])],
			[["GPUDirect RDMA", "medium", ""]],
		],
	] {
		found := gdr_module_missing.findings with input as object.union_n(row[0])
		[[f.subject, object.get(f, "severity", ""), object.get(f, "confidence", "")] | some f in found] == row[1]
	}
}

test_what_is_said if {
	some f in gdr_module_missing.findings with input as live("5.4.0-150-generic")
	contains(f.message, "kernel 5.12")
	some g in gdr_module_missing.findings with input as object.union(works, log([disabled]))
	[g.about.nic, g.about.gpu] == [{"mlx5_0"}, {"0000:19:00.0"}]
	off := {"env": {"variables": [{"name": "NCCL_DMABUF_ENABLE", "value": "0", "source": "x", "effective": true}]}}
	some h in gdr_module_missing.findings with input as object.union(off, log([disabled]))
	"env.variables[NCCL_DMABUF_ENABLE]" in {e.fact | some e in h.evidence}
}

states := {"unknown": {}, "ok": ok, "fault": no("ibv_reg_mr", "EFAULT"), "busy": no("ibv_reg_mr", "ENOMEM")}

part(name, value) := {name: value} if {
	value.outcome
} else := {}

# doubt is reported where a refusal is known, and not enough besides.
test_doubtful_registration if {
	every h, _ in states {
		every d, _ in states {
			every p, _ in states {
				lacks := gdr_module_missing.missing with input as tried(part("host", states[h]), object.union(part("dmabuf", states[d]), part("peermem", states[p])))
				count([1 | some m in lacks; m.fact == "gpudirect.nics"]) == count([1 | some o in [{d, p}]; not "ok" in o; o != {"unknown"}; [h, d, p] != ["ok", "fault", "fault"]])
			}
		}
	}
}

test_unresolvable if {
	count(gdr_module_missing.findings) == 0 with input as {}
	"gpus.driver.open" in gdr_module_missing.asks with input as live("6.8.0")
	count(gdr_module_missing.missing) == 0 with input as object.union(works, modules(null))
}
