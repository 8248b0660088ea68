package gpudoctor.rules.gdr_module_missing_test

import data.gpudoctor.rules.gdr_module_missing

said(id, text) := {
	"id": id, "program": "nccl", "role": "cause", "text": text,
	"source": "a.log", "line": 7, "order": 2, "count": 1, "ranks": 1,
}

with_fields(m, fields) := object.union(m, {"fields": fields})
log(messages) := {"logs": {"messages": messages}}

loaded := {"nics": {"modules": ["nvidia_peermem", "ib_core"]}}
absent := {"nics": {"modules": ["ib_core"]}}
disabled := said("nccl-gdr-nic-disabled", "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'")

channel(gdr) := {"kind": "net", "network": "IB", "same_host": false, "gdr": gdr, "channels": 4, "source": "a.log", "line": 9}

test_fires_disabled if {
	some g in gdr_module_missing.findings with input as {"logs": {"messages": [disabled], "communicators": [{"nodes": 1, "hosts": ["a"]}]}}
	g.severity == "low"
	some h in gdr_module_missing.findings with input as log([object.union(said("rccl-gdr-no-peer-memory", "GDRDMA not enabled"), {"program": "rccl"})])
	h.severity == "low"
	some i in gdr_module_missing.findings with input as object.union(log([disabled]), loaded)
	contains(i.message, "not registered")
	some j in gdr_module_missing.findings with input as object.union(log([disabled]), {"env": {"variables": [{"name": "NCCL_DMABUF_ENABLE", "value": "0", "source": "x", "effective": true}]}})
	contains(j.message, "NCCL_DMABUF_ENABLE")
	some k in gdr_module_missing.findings with input as log([disabled, said("nccl-dmabuf-available", "DMA-BUF is available on GPU device 0")])
	contains(k.message, "the RDMA stack does not")
}

test_fires_channels_and_no_module if {
	some f in gdr_module_missing.findings with input as object.union(absent, {"logs": {"transports": [channel(false)]}})
	f.severity == "medium"
}

test_silent if {
	count(gdr_module_missing.findings) == 0 with input as object.union(absent, {"logs": {"transports": [channel(true)]}})
	count(gdr_module_missing.findings) == 0 with input as log([with_fields(said("nccl-gdr-nic-disabled", "NET/Socket : GPU Direct RDMA Disabled for HCA 0 'eth0'"), {"network": "Socket"})])
	count(gdr_module_missing.findings) == 0 with input as {"logs": {"messages": [disabled], "transports": [channel(true)]}}
}

test_unresolvable if count(gdr_module_missing.findings) == 0 with input as {}

test_fires_where_no_module_registered if {
	gone := object.union(said("peermem-no-clients", "ls: cannot access '/sys/kernel/mm/memory_peers/nv_mem': No such file or directory"), {"role": "setting"})
	some f in gdr_module_missing.findings with input as {"logs": {"messages": [gone], "transports": [channel(false), channel(true)]}}
	f.severity == "medium"
	contains(f.message, "on another machine")
	some g in gdr_module_missing.findings with input as {"logs": {"messages": [gone], "transports": [channel(false)]}}
	not contains(g.message, "on another machine")
	count(gdr_module_missing.findings) == 0 with input as {"logs": {"messages": [gone], "transports": [channel(true)]}}
	count(gdr_module_missing.findings) == 0 with input as object.union(loaded, {"logs": {"messages": [gone], "transports": [channel(false)]}})
}

test_fires_where_gdrcopy_does_not_load if {
	m := with_fields(said("gdrcopy-symbol", "gdrdrv: disagrees about version of symbol nvidia_p2p_get_pages"), {"symbol": "nvidia_p2p_get_pages"})
	some f in gdr_module_missing.findings with input as log([m])
	[f.subject, f.severity, f.confidence] == ["gdrdrv", "medium", "confirmed"]
	contains(f.message, "another version of the NVIDIA driver")
	some g in gdr_module_missing.findings with input as log([said("gdrcopy-module-missing", "gdr_open error: Is gdrdrv driver installed and loaded?")])
	g.confidence == "likely"
	contains(g.message, "insmod.sh")
}

test_fires_where_ucx_lacks_gdrcopy if {
	count(gdr_module_missing.findings) == 1 with input as log([said("ucx-gdrcopy-unavailable", "x")])
}

live(modules, driver, kernel) := {
	"host": {"kernel": kernel},
	"gpus": {"driver": driver, "devices": [{"address": "0000:19:00.0", "vendor": "nvidia"}]},
	"nics": {"modules": modules, "rdma": [{"device": "mlx5_0", "port": 1, "state": "active", "source": "/sys/class/infiniband/mlx5_0/ports/1", "line": 0}]},
}

test_fires_on_machine if {
	some g in gdr_module_missing.findings with input as live(["mlx5_ib"], {}, "5.4.0-150-generic")
	contains(g.message, "kernel 5.12")
}

test_unresolvable_on_machine if {
	m := live(["mlx5_ib"], {}, "6.8.0")
	count(gdr_module_missing.missing) == 1 with input as m
}

ok := {"outcome": "ok", "bytes": 2097152}

no(call, errno) := {"outcome": "refused", "call": call, "errno": errno}

adapter := {"pci": {"devices": [{"address": "0000:1c:00.0", "kind": "nic", "vendor": "0x15b3", "class": "0x020000"}]}}

# tried is a machine that loads neither module nor driver for GPUDirect RDMA, with what was registered on it.
tried(host, gpu) := object.union_n([live(["mlx5_ib"], {"open": false}, "6.8.0"), adapter, {
	"nics": {"rdma": [{"device": "mlx5_0", "port": 1, "state": "active", "address": "0000:1c:00.0", "source": "/sys/class/infiniband/mlx5_0/ports/1", "line": 0}]},
	"gpudirect": {"nics": [object.union(host, {"device": "mlx5_0", "gpus": [object.union({"address": "0000:19:00.0"}, gpu)]})]},
}])

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

test_registration_words if {
	m := tried({"host": ok}, {"dmabuf": no("ibv_reg_dmabuf_mr", "EOPNOTSUPP"), "peermem": no("ibv_reg_mr", "EFAULT")})
	count(gdr_module_missing.findings) == 1 with input as object.union(m, log([disabled]))
}

test_registration_beside_logs if {
	works := tried({"host": ok}, {"dmabuf": ok})
	some f in gdr_module_missing.findings with input as object.union(works, log([disabled]))
	contains(f.message, "yet mlx5_0 registers memory of 0000:19:00.0 here, as DMA-BUF")
	gone := object.union(said("peermem-no-clients", "ls: cannot access"), {"role": "setting"})
	count(gdr_module_missing.findings) == 0 with input as object.union(works, {"logs": {"messages": [gone], "transports": [channel(false)]}})
	unlisted := object.union(works, {"nics": {"modules": null}})
	count(gdr_module_missing.missing) == 0 with input as unlisted
}
