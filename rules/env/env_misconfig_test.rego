package gpudoctor.rules.env_misconfig_test

import data.gpudoctor.rules.env_misconfig

set(name, value) := {"env": {"variables": [{"name": name, "value": value, "source": "environment", "effective": true}]}}
nccl(version) := {"libraries": {"files": [{"kind": "libnccl", "path": "/x/libnccl.so.2", "version": version, "found_by": "python"}]}}

# machine has two GPUs on two root ports, without NVLink.
machine(name, value) := object.union_n([set(name, value), nccl("2.27.3"), {
	"gpus": {"nvml": "ok", "nvswitches": 0, "devices": [
	{"address": address, "vendor": "nvidia", "compute_capability": "9.0", "in_pci": true, "in_nvml": true} |
		some address in ["0000:01:00.0", "0000:02:00.0"]
	]},
	"links": {"virtual_topology": false, "pairs": [{"a": "0000:01:00.0", "b": "0000:02:00.0", "kind": "gpu-gpu", "path": "PHB", "nvlinks": 0}]},
	"container": {"inside": false, "device_nodes": []},
}])

# hgx is the same with NVLink through switches.
hgx(name, value) := object.union(machine(name, value), {
	"gpus": {"nvswitches": 4},
	"links": {"pairs": [{"a": "0000:01:00.0", "b": "0000:02:00.0", "kind": "gpu-gpu", "path": "SYS", "nvlinks": 18, "nvswitch": true}]},
})

# probed adds what the probe measured of the copies.
probed(document, outcome, gbps) := object.union(document, {"transfers": {
	"outcome": "ok",
	"devices": [{"address": "0000:01:00.0"}, {"address": "0000:02:00.0"}],
	"transfers": [
		{"test": "copy", "source": "0000:01:00.0", "destination": "0000:02:00.0", "outcome": outcome, "gbps": gbps},
		{"test": "copy", "source": "0000:02:00.0", "destination": "0000:01:00.0", "outcome": outcome, "gbps": gbps},
		{"test": "host-staged", "source": "0000:01:00.0", "destination": "0000:02:00.0", "outcome": "ok", "gbps": 11},
	],
}})

refused(document) := object.union(document, {"transfers": {
	"outcome": "ok",
	"devices": [{"address": "0000:01:00.0"}, {"address": "0000:02:00.0"}],
	"peers": [{"source": "0000:01:00.0", "destination": "0000:02:00.0", "access": false}],
	"transfers": [],
}})

adapters(n, name, value) := object.union(machine(name, value), {"pci": {"devices": [
{"address": sprintf("0000:%02x:00.0", [i + 32]), "class": "0x020700", "kind": "nic", "vendor": "0x15b3", "device": "0x1021"} |
	some i in numbers.range(1, n)
]}})

with_efa(name, value) := object.union(machine(name, value), {"pci": {"devices": [
	{"address": "0000:81:00.0", "class": "0x020000", "kind": "nic", "vendor": "0x1d0f", "device": "0xefa1"},
]}})

said(id, fields) := {"logs": {"messages": [{
	"id": id, "program": "nccl", "role": "category", "text": "said", "fields": fields, "source": "a.log", "line": 3, "order": 2, "count": 1, "ranks": 1,
}]}}

severities(document) := {f.severity | some f in env_misconfig.findings with input as document}
grades(document) := {f.grade | some f in env_misconfig.findings with input as document}

only(document) := f if {
	fs := env_misconfig.findings with input as document
	count(fs) == 1
	some f in fs
}

image(name, value) := {
	"container": {"inside": true, "device_nodes": []},
	"gpus": {"nvml": "not-found", "devices": []},
	"env": {"variables": [{"name": name, "value": value, "source": "/etc/nccl.conf", "line": 3, "effective": true}]},
}

cxi := {"nics": {"providers": ["cxi"]}}

test_severities if {
	every row in [
		# Peer access switched off: by what is lost, unless it does not work.
		[probed(machine("NCCL_P2P_DISABLE", "1"), "ok", 13), "medium"],
		[probed(machine("NCCL_P2P_LEVEL", "0"), "ok", 53), "high"],
		[probed(machine("NCCL_P2P_LEVEL", "PIX"), "hang", 50), ""],
		[hgx("NCCL_P2P_LEVEL", "LOC"), "medium"],
		[probed(hgx("NCCL_P2P_DISABLE", "1"), "slow", 30), "low"],
		[probed(machine("NCCL_P2P_DISABLE", "1"), "slow", 3), ""],
		[refused(machine("NCCL_P2P_DISABLE", "1")), "info"],
		[json.patch(machine("NCCL_P2P_DISABLE", "1"), [{"op": "remove", "path": "/gpus/devices/1"}]), ""],
		# Levels, as words and as numbers.
		[probed(machine("NCCL_P2P_LEVEL", "PIX"), "ok", 53), "high"],
		[machine("NCCL_P2P_LEVEL", "9"), ""],
		[machine("NCCL_SHM_DISABLE", "1"), "low"],
		[refused(machine("NCCL_SHM_DISABLE", "1")), "high"],
		# Networks.
		[adapters(1, "NCCL_IB_DISABLE", "1"), "medium"],
		[machine("NCCL_IB_DISABLE", "1"), ""],
		[adapters(1, "NCCL_SOCKET_IFNAME", "=lo"), "medium"],
		[adapters(1, "NCCL_NET_GDR_LEVEL", "LOC"), "medium"],
		[adapters(1, "NCCL_IB_GID_INDEX", "3"), "low"],
		[adapters(1, "NCCL_IB_TIMEOUT", "0"), "low"],
		[adapters(12, "NCCL_IB_HCA", "mlx5_1,mlx5_2"), "low"],
		[adapters(12, "NCCL_IB_HCA", "=mlx5_1"), ""],
		[with_efa("FI_PROVIDER", "tcp"), "high"],
		[with_efa("NCCL_NET_PLUGIN", "none"), "high"],
		[machine("NCCL_NET_PLUGIN", "aws-ofi"), "low"],
		[object.union(adapters(1, "NCCL_IB_PCI_RELAXED_ORDERING", "0"), {"host": {"virtualization": {"guest": true}}}), "low"],
		[object.union_n([machine("FI_MR_CACHE_MONITOR", "memhooks"), cxi, said("torch-watchdog-timeout", {})]), "critical"],
		[object.union(machine("FI_MR_CACHE_MONITOR", "memhooks"), said("ofi-provider", {"provider": "cxi"})), "low"],
		[object.union(machine("FI_MR_CACHE_MONITOR", "userfaultfd"), cxi), ""],
		# Lists of words.
		[hgx("NCCL_PROTO", "LL128"), "low"],
		[machine("NCCL_PROTO", "fast"), "high"],
		[machine("NCCL_ALGO", "allreduce:ring,tree;broadcast:ring"), "low"],
		[machine("NCCL_ALGO", "Rnig"), "high"],
		[machine("UCX_TLS", "rc, sm,self"), "low"],
		[machine("UCX_TLS", "^ud"), ""],
		# Numbers.
		[hgx("NCCL_MAX_NCHANNELS", "+02"), "medium"],
		[hgx("NCCL_MAX_NCHANNELS", "0x2"), ""],
		[machine("NCCL_MAX_NCHANNELS", "0"), ""],
		[machine("NCCL_WORK_FIFO_DEPTH", "1"), "info"],
		[object.union(machine("NCCL_WORK_FIFO_DEPTH", "1"), nccl("2.20.5")), ""],
		# An image.
		[image("NCCL_SOCKET_IFNAME", "eth0"), "low"],
		[object.union(machine("NCCL_TOPO_FILE", "/etc/topo.xml"), {"links": {"virtual_topology": true}}), ""],
	] {
		severities(row[0]) == {s | some s in [row[1]]; s != ""}
	}
}

test_what_is_said if {
	only(probed(machine("NCCL_P2P_LEVEL", "PIX"), "ok", 53)).params.level == "SYS"
	only(hgx("NCCL_NVLS_ENABLE", "true")).about.word == ["true"]
	count(only(machine("NCCL_TOPO_FILE", concat("", [c | some _ in numbers.range(1, 100); c := "x"]))).about.value) == 63
}

# NCCL reads numbers, and names by their words.
test_grades if {
	grades(machine("NCCL_SOCKET_IFNAME", "on")) == set()
	every name, meant in {
		"NCCL_P2P_DISABLED": "NCCL_P2P_DISABLE",
		"NCCL_P2P_ENABLE": "NCCL_P2P_DISABLE",
		"NCCL_SOCKET_IFNAM": "NCCL_SOCKET_IFNAME",
	} {
		f := only(machine(name, "1"))
		[f.grade, f.params.meant, f.params.effect] == ["misspelt", meant, "none"]
	}
	differs := {"unequal": [{"name": "NCCL_PROTO", "values": [{"rank": 0, "set": true, "value": "LL", "source": "a.log", "line": 2}, {"rank": 1, "set": false}]}]}
	job := said("nccl-internal-error", {})
	grades({"logs": object.union(job.logs, differs)}) == {"differs"}
	grades({"logs": object.union(job.logs, object.union(differs, {"job": {"first": {"what": "exit"}}}))}) == set()
	ucx := said("ucx-unreachable", {"level": "ERROR"})
	grades(object.union(ucx, set("UCX_NET_DEVICES", "mlx5_0:1"))) == {"setting"}
	grades(object.union(ucx, set("UCX_TLS", "all"))) == set()
}

# A log that shows what a setting made fail.
test_a_setting_by_which_the_job_failed if {
	every row in [
		["NCCL_GRAPH_FILE", "/opt/graph.xml", "nccl-unhandled-system-error", {}, ["high", "likely"]],
		["PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", "vllm-custom-all-reduce-failed", {"error": "invalid argument"}, ["critical", "likely"]],
		["NCCL_NET", "IB", "nccl-network-not-found", {}, ["critical", "likely"]],
		["NCCL_COMM_ID", "192.168.0.91:27030", "nccl-bind-failed", {}, ["critical", "confirmed"]],
	] {
		f := only(object.union(set(row[0], row[1]), said(row[2], row[3])))
		[f.subject, count(f.messages), count(f.evidence), [f.severity, f.confidence]] == [row[0], 1, 1, row[4]]
	}
}

# What somebody chose for a run that went well is worth knowing and no more.
test_a_setting_of_a_run_that_went_well if {
	run := json.patch(set("NCCL_PROTO", "LL"), [
		{"op": "add", "path": "/texts", "value": [{"name": "run.log"}]},
		{"op": "replace", "path": "/env/variables/0/source", "value": "run.log"},
	])
	severities(object.union(run, said("nccl-unhandled-system-error", {}))) == {"medium"}
	severities(object.union(run, {"benchmarks": [{"points": [{"gbps": 20, "expected_gbps": 450, "threshold": 0.35}]}]})) == {"medium"}
}

ports(layer) := {"nics": {"rdma": [{"device": "mlx5_0", "port": 1, "link_layer": layer, "netdev_up": true, "source": "ib.txt", "line": 1}]}}

test_ports_of_texts if {
	tcp := {"logs": {"messages": [], "transports": [{"kind": "net", "network": "Socket", "channels": 1, "a": 0, "b": 1, "source": "a.log", "line": 4}]}}
	severities(object.union(set("NCCL_IB_DISABLE", "1"), tcp)) == {"low"}
	severities(object.union_n([set("NCCL_IB_DISABLE", "1"), tcp, ports("Ethernet")])) == {"medium"}
}

refusing(host) := object.union(
	said("torch-store-connect-failed", {"host": host, "error": "Connection refused"}),
	{"launches": [{"kind": "torchrun", "nodes": 1, "source": "run.sh", "line": 1}]},
)

test_rendezvous if {
	grades(refusing("192.0.2.1")) == {"unmet"}
	grades(refusing("::ffff:127.0.0.1")) == set()
	alone := json.patch(said("torch-store-connect-failed", {"host": "127.0.1.1", "error": "Connection refused"}), [
		{"op": "replace", "path": "/logs/messages/0/program", "value": "pytorch"},
		{"op": "add", "path": "/logs/messages/0/host", "value": "b"},
		{"op": "add", "path": "/logs/networks", "value": [{"host": "b"}]},
	])
	f := only(json.patch(alone, [{"op": "add", "path": "/logs/networks/0", "value": {"host": "a"}}]))
	[f.subject, f.grade, f.about.address] == ["MASTER_ADDR", "loopback", "127.0.1.1"]
}

collectives(name, without) := {"collectives": {"outcome": "ok", "gpus": ["0000:01:00.0", "0000:02:00.0"], "arms": [
{"name": arm, "outcome": "ok", "unset": unset, "operations": [{"name": "all-reduce", "bytes": 67108864, "outcome": "ok", "bus_gbps": gbps}]} |
	some [arm, unset, gbps] in [["as-configured", [], 100], ["cleaned", [name], without]]
]}}

# A variable that the probe found to make collectives slower counts by what is lost, except where it is a cure.
test_measured_in_collectives if {
	every without, severity in {"300": "high", "150": "medium"} {
		f := only(object.union(machine("NCCL_PROTO", "LL"), collectives("NCCL_PROTO", to_number(without))))
		[f.grade, f.severity, f.about.gbps, f.params.variables] == ["measured", severity, "100", ["NCCL_PROTO"]]
	}
	grades(object.union(machine("NCCL_PROTO", "LL"), collectives("NCCL_PROTO", 110))) == {"setting"}
	off := object.union(machine("NCCL_P2P_DISABLE", "1"), collectives("NCCL_P2P_DISABLE", 300))
	grades(probed(off, "ok", 50)) == {"setting"}
	grades(probed(off, "corrupt", 50)) == set()
}

test_unresolvable if {
	count(env_misconfig.asks) == 1 with input as set("NCCL_NVLS_ENABLE", "0")
}
