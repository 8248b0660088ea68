package gpudoctor.rules.env_misconfig_test

import data.gpudoctor.rules.env_misconfig

setting(name, value) := {"name": name, "value": value, "source": "environment", "effective": true}

gpu(address) := {
	"address": address,
	"vendor": "nvidia",
	"compute_capability": "9.0",
	"in_pci": true,
	"in_nvml": true,
}

# machine has two GPUs on two root ports, without NVLink.
machine(name, value) := {
	"gpus": {"nvml": "ok", "nvswitches": 0, "devices": [gpu("0000:01:00.0"), gpu("0000:02:00.0")]},
	"links": {"virtual_topology": false, "pairs": [{
		"a": "0000:01:00.0",
		"b": "0000:02:00.0",
		"kind": "gpu-gpu",
		"path": "PHB",
		"nvlinks": 0,
	}]},
	"container": {"inside": false, "device_nodes": []},
	"env": {"variables": [setting(name, value)]},
	"libraries": {"files": [{"kind": "libnccl", "path": "/x/libnccl.so.2", "version": "2.27.3", "found_by": "python"}]},
}

# hgx is the same with NVLink through switches.
hgx(name, value) := object.union(machine(name, value), {
	"gpus": {"nvswitches": 4},
	"links": {"pairs": [{
		"a": "0000:01:00.0",
		"b": "0000:02:00.0",
		"kind": "gpu-gpu",
		"path": "SYS",
		"nvlinks": 18,
		"nvswitch": true,
	}]},
})

devices := [{"address": "0000:01:00.0"}, {"address": "0000:02:00.0"}]

# probed adds what the probe measured of the copies.
probed(document, outcome, gbps, staged) := object.union(document, {"transfers": {
	"outcome": "ok",
	"devices": devices,
	"transfers": [
		{"test": "copy", "source": "0000:01:00.0", "destination": "0000:02:00.0", "outcome": outcome, "gbps": gbps},
		{"test": "copy", "source": "0000:02:00.0", "destination": "0000:01:00.0", "outcome": outcome, "gbps": gbps},
		{"test": "host-staged", "source": "0000:01:00.0", "destination": "0000:02:00.0", "outcome": "ok", "gbps": staged},
	],
}})

refused(document) := object.union(document, {"transfers": {
	"outcome": "ok",
	"devices": devices,
	"peers": [{"source": "0000:01:00.0", "destination": "0000:02:00.0", "access": false}],
	"transfers": [],
}})

with_rdma(document) := object.union(document, {"pci": {"devices": [{
	"address": "0000:81:00.0",
	"class": "0x020700",
	"kind": "nic",
	"vendor": "0x15b3",
	"device": "0x1021",
}]}})

with_efa(document) := object.union(document, {"pci": {"devices": [{
	"address": "0000:81:00.0",
	"class": "0x020000",
	"kind": "nic",
	"vendor": "0x1d0f",
	"device": "0xefa1",
}]}})

image(name, value) := {
	"container": {"inside": true, "device_nodes": []},
	"gpus": {"nvml": "not-found", "devices": []},
	"env": {"variables": [{"name": name, "value": value, "source": "/etc/nccl.conf", "line": 3, "effective": true}]},
}

found(document) := {[f.severity, f.confidence] | some f in env_misconfig.findings with input as document}

only(document) := f if {
	fs := env_misconfig.findings with input as document
	count(fs) == 1
	some f in fs
}

severity(document) := only(document).severity

test_fires_where_p2p_is_proven if {
	f := only(probed(hgx("NCCL_P2P_DISABLE", "1"), "ok", 395.5, 11.2))
	f.severity == "high"
	f.confidence == "confirmed"
	f.subject == "NCCL_P2P_DISABLE"
	contains(f.message, "2 of 2 paths between GPUs carried verified data at 396 GB/s, and 11.2 GB/s through host memory")
	f.params.variable == "NCCL_P2P_DISABLE"
	count(f.evidence) == 2
}

# Over PCIe host memory may be nearly as fast.
test_medium_where_little_is_lost if {
	severity(probed(machine("NCCL_P2P_DISABLE", "1"), "ok", 53, 43)) == "medium"
	severity(probed(machine("NCCL_P2P_LEVEL", "LOC"), "ok", 53, 11)) == "high"
	severity(probed(machine("NCCL_P2P_LEVEL", "0"), "ok", 53, 11)) == "high"
}

# Where peer access fails, the variable is the cure.
test_silent_where_p2p_is_broken if {
	every outcome in ["corrupt", "hang", "error"] {
		found(probed(machine("NCCL_P2P_DISABLE", "1"), outcome, 50, 11)) == set()
		found(probed(machine("NCCL_P2P_LEVEL", "LOC"), outcome, 50, 11)) == set()
		found(probed(machine("NCCL_P2P_LEVEL", "PIX"), outcome, 50, 11)) == set()
	}
}

test_unproven_is_possible if {
	only(machine("NCCL_P2P_DISABLE", "1")).confidence == "possible"
	severity(machine("NCCL_P2P_DISABLE", "1")) == "low"
	severity(machine("NCCL_P2P_LEVEL", "LOC")) == "low"
	severity(hgx("NCCL_P2P_DISABLE", "1")) == "medium"
	severity(hgx("NCCL_P2P_LEVEL", "LOC")) == "medium"
	severity(probed(hgx("NCCL_P2P_DISABLE", "1"), "slow", 30, 11)) == "low"
	contains(only(probed(hgx("NCCL_P2P_DISABLE", "1"), "slow", 30, 11)).message, "still faster")
	found(probed(machine("NCCL_P2P_DISABLE", "1"), "slow", 3, 11)) == set()
	severity(refused(machine("NCCL_P2P_DISABLE", "1"))) == "info"
}

test_silent_with_one_gpu if {
	one := object.union(machine("NCCL_P2P_DISABLE", "1"), {"gpus": {"devices": [gpu("0000:01:00.0")]}})
	found(one) == set()
}

test_levels if {
	# Nearer than any pair, with peer access that works.
	f := only(probed(machine("NCCL_P2P_LEVEL", "PIX"), "ok", 53, 11))
	f.severity == "high"
	f.remedies[0] == "nccl-p2p-level"
	f.params.level == "SYS"
	severity(machine("NCCL_P2P_LEVEL", "NVL")) == "low"
	severity(machine("NCCL_P2P_LEVEL", "2")) == "low"
	found(machine("NCCL_P2P_LEVEL", "SYS")) == set()
	found(machine("NCCL_P2P_LEVEL", "9")) == set()
	found(probed(hgx("NCCL_P2P_LEVEL", "NVL"), "ok", 395, 11)) == set()

	# NCCL compares the words as they are.
	contains(only(machine("NCCL_P2P_LEVEL", "sys")).message, "silently ignores it")
}

test_shared_memory if {
	severity(machine("NCCL_SHM_DISABLE", "1")) == "low"
	severity(refused(machine("NCCL_SHM_DISABLE", "1"))) == "high"
	severity(probed(machine("NCCL_SHM_DISABLE", "1"), "ok", 53, 11)) == "low"
	found(machine("NCCL_SHM_DISABLE", "0")) == set()
	both := object.union(probed(machine("", ""), "error", 0, 11), {"env": {"variables": [setting("NCCL_P2P_DISABLE", "1"), setting("NCCL_SHM_DISABLE", "1")]}})
	f := only(both)
	f.subject == "NCCL_SHM_DISABLE"
	f.severity == "high"
	level := object.union(probed(machine("", ""), "error", 0, 11), {"env": {"variables": [setting("NCCL_P2P_LEVEL", "LOC"), setting("NCCL_SHM_DISABLE", "1")]}})
	severity(level) == "high"
}

# The recorded virtual machines with NVSwitch have this set on purpose.
test_nvls_is_low if {
	severity(hgx("NCCL_NVLS_ENABLE", "0")) == "low"
	found(hgx("NCCL_NVLS_ENABLE", "1")) == set()
	found(machine("NCCL_NVLS_ENABLE", "0")) == set()
	severity(hgx("NCCL_CUMEM_ENABLE", "0")) == "low"
	severity(hgx("NVSHMEM_DISABLE_NVLS", "1")) == "info"
}

# NCCL reads numbers: a word counts as 0.
test_words if {
	contains(only(hgx("NCCL_NVLS_ENABLE", "true")).message, "treats a word as 0")
	contains(only(machine("NCCL_P2P_DISABLE", "true")).message, "counts as 0")
	contains(only(machine("NCCL_IB_DISABLE", "yes")).message, "counts as 0")
	found(machine("NCCL_IB_DISABLE", "false")) == set()
	found(machine("NCCL_SOCKET_IFNAME", "on")) == set()
}

test_networks if {
	severity(with_rdma(machine("NCCL_IB_DISABLE", "1"))) == "medium"
	found(machine("NCCL_IB_DISABLE", "1")) == set()
	severity(with_rdma(machine("NCCL_NET", "Socket"))) == "medium"
	severity(machine("NCCL_SOCKET_IFNAME", "lo")) == "low"
	severity(with_rdma(machine("NCCL_SOCKET_IFNAME", "=lo"))) == "medium"
	severity(machine("NCCL_SOCKET_IFNAME", "docker0")) == "medium"
	found(machine("NCCL_SOCKET_IFNAME", "^docker,lo")) == set()
	found(machine("NCCL_SOCKET_IFNAME", "eth0")) == set()
	severity(with_rdma(machine("NCCL_NET_GDR_LEVEL", "LOC"))) == "medium"
	severity(with_rdma(machine("NCCL_IB_GID_INDEX", "3"))) == "low"
	old := {"libraries": {"files": [{"kind": "libnccl", "path": "/x/libnccl.so.2", "version": "2.18.5", "found_by": "python"}]}}
	found(object.union(with_rdma(machine("NCCL_IB_GID_INDEX", "3")), old)) == set()
	severity(with_rdma(machine("NCCL_IB_TIMEOUT", "10"))) == "low"
	found(with_rdma(machine("NCCL_IB_TIMEOUT", "22"))) == set()
	severity(with_efa(machine("FI_PROVIDER", "tcp"))) == "high"
	found(with_efa(machine("FI_PROVIDER", "efa"))) == set()
	severity(with_efa(machine("NCCL_NET_PLUGIN", "none"))) == "high"
	severity(machine("NCCL_NET_PLUGIN", "aws-ofi")) == "low"
	severity(object.union(with_rdma(machine("NCCL_IB_PCI_RELAXED_ORDERING", "0")), {"host": {"virtualization": {"guest": true}}})) == "low"
	uverbs := {"container": {"device_nodes": [{"path": "/dev/infiniband/uverbs0", "access": "rw"}]}}
	severity(object.union(machine("NCCL_NET", "socket"), uverbs)) == "medium"
}

many(value) := object.union(machine("NCCL_IB_HCA", value), {"pci": {"devices": [d |
	some i in numbers.range(0, 11)
	d := {"address": sprintf("0000:%02x:00.0", [i + 32]), "class": "0x020700", "kind": "nic", "vendor": "0x15b3", "device": "0x1021"}
]}})

# With more than ten adapters mlx5_1 means mlx5_10 as well.
test_prefixes_of_adapters if {
	severity(many("mlx5_1,mlx5_2")) == "low"
	found(many("=mlx5_1,mlx5_2")) == set()
	found(many("mlx5_10")) == set()
	found(many("mlx5")) == set()
}

test_tuning if {
	severity(machine("NCCL_PROTO", "LL128")) == "medium"
	severity(hgx("NCCL_PROTO", "LL128")) == "low"
	severity(machine("NCCL_PROTO", "LL")) == "medium"
	severity(machine("NCCL_PROTO", "^LL128")) == "low"
	severity(machine("NCCL_PROTO", "fast")) == "high"
	severity(machine("NCCL_ALGO", "Ring")) == "low"
	severity(machine("NCCL_ALGO", "allreduce:ring,tree;broadcast:ring")) == "low"
	severity(machine("NCCL_ALGO", "Rnig")) == "high"
	severity(hgx("NCCL_MAX_NCHANNELS", "2")) == "medium"
	found(hgx("NCCL_MAX_NCHANNELS", "32")) == set()
	found(machine("NCCL_MAX_NCHANNELS", "0")) == set()
	severity(machine("CUDA_LAUNCH_BLOCKING", "1")) == "medium"
	found(machine("CUDA_LAUNCH_BLOCKING", "0")) == set()
	severity(machine("NCCL_DEBUG", "TRACE")) == "info"
	found(machine("NCCL_DEBUG", "INFO")) == set()
	contains(only(machine("NCCL_DEBUG", "DEBUG")).message, "not a level that NCCL knows")
}

test_frameworks if {
	severity(machine("UCX_TLS", "rc,sm,self")) == "low"
	found(machine("UCX_TLS", "rc,sm,self,cuda_copy")) == set()
	found(machine("UCX_TLS", "^ud")) == set()
	severity(machine("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")) == "low"
	amd := object.union(machine("UCX_TLS", "rc,sm"), {"gpus": {"nvml": "not-found", "devices": [
		{"address": "0000:01:00.0", "vendor": "amd", "in_pci": true},
		{"address": "0000:02:00.0", "vendor": "amd", "in_pci": true},
	]}})
	severity(amd) == "low"
	severity(probed(hgx("NVSHMEM_DISABLE_P2P", "1"), "ok", 395, 11)) == "medium"
}

test_dead_names if {
	f := only(machine("NCCL_IB_CUDA_SUPPORT", "1"))
	f.severity == "info"
	contains(f.message, "since NCCL 2.4 (see NCCL_NET_GDR_LEVEL)")
	contains(only(machine("NCCL_SHARED_BUFF_COUNT", "1")).message, "since NCCL 2.9")
	old := {"libraries": {"files": [{"kind": "libnccl", "path": "/x/libnccl.so.2", "version": "2.20.5", "found_by": "python"}]}}
	found(object.union(machine("NCCL_WORK_FIFO_DEPTH", "1"), old)) == set()
}

test_misspelt_names if {
	f := only(machine("NCCL_DISABLE_P2P", "1"))
	[f.params.meant, f.params.effect] == ["NCCL_P2P_DISABLE", "none"]
	found(machine("NCCL_HOME", "/opt/nccl")) == set()
}

test_silent_on_good_settings if {
	every name, value in {"NCCL_DEBUG": "WARN", "NCCL_P2P_DISABLE": "0", "NCCL_IB_HCA": "=mlx5_0", "CUDA_HOME": "/usr/local/cuda"} {
		found(machine(name, value)) == set()
	}
	count(env_misconfig.not_applicable) == 1 with input as {"env": {"variables": []}}
}

# A setting that another one overrides does nothing.
test_silent_when_not_effective if {
	document := object.union(machine("", ""), {"env": {"variables": [object.union(setting("NCCL_P2P_DISABLE", "1"), {"effective": false})]}})
	found(document) == set()
}

test_image if {
	f := only(image("NCCL_P2P_DISABLE", "1"))
	f.severity == "medium"
	contains(f.message, "in line 3 of the image's /etc/nccl.conf")
	f.evidence[0].source == "/etc/nccl.conf:3"
	severity(image("NCCL_P2P_LEVEL", "LOC")) == "medium"
	severity(image("NCCL_HOSTID", "a")) == "medium"
	severity(image("NCCL_SOCKET_IFNAME", "eth0")) == "low"
	found(image("NCCL_DEBUG", "INFO")) == set()
}

test_topology_file if {
	severity(machine("NCCL_TOPO_FILE", "/etc/topo.xml")) == "info"
	found(object.union(machine("NCCL_TOPO_FILE", "/etc/topo.xml"), {"links": {"virtual_topology": true}})) == set()
}

test_long_values_are_cut if {
	long := concat("", [repeated | some repeated in ["/a/long/folder/of/", "topologies/that/goes/on/", "and/on/until/the/end.xml"]])
	contains(only(machine("NCCL_TOPO_FILE", long)).message, "...")
}

test_unresolvable if {
	count(env_misconfig.missing) == 1 with input as {}
	count(env_misconfig.findings) == 0 with input as {}
}

message_said(id, fields) := {"logs": {"messages": [{
	"id": id,
	"program": "nccl",
	"role": "category",
	"text": "said",
	"fields": fields,
	"source": "a.log",
	"line": 3,
	"order": 2,
	"count": 1,
	"ranks": 1,
}]}}

set(name, value) := {"env": {"variables": [setting(name, value)]}}

# A log that shows what a setting made fail.
test_a_setting_by_which_the_job_failed if {
	some f in env_misconfig.findings with input as object.union(set("NCCL_GRAPH_FILE", "/opt/graph.xml"), message_said("nccl-topo-file-invalid", {}))
	f.severity == "critical"
	f.confidence == "confirmed"
	f.order == 2
	count(f.evidence) == 2
	some g in env_misconfig.findings with input as object.union(set("NCCL_GRAPH_FILE", "/opt/graph.xml"), message_said("nccl-unhandled-system-error", {}))
	g.severity == "high"
	some h in env_misconfig.findings with input as object.union(set("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"), message_said("vllm-custom-all-reduce-failed", {"error": "invalid argument"}))
	h.severity == "critical"
	h.remedies == ["unset-env", "disable-custom-all-reduce"]
	some i in env_misconfig.findings with input as object.union(set("NCCL_NET", "IBext"), message_said("nccl-network-not-found", {}))
	i.confidence == "confirmed"
}

# Without the message it is a setting among others.
test_the_same_setting_without_a_failure if {
	some f in env_misconfig.findings with input as set("NCCL_GRAPH_FILE", "/opt/graph.xml")
	f.severity == "info"
	not f.order
	count(env_misconfig.findings) == 0 with input as set("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
	cause := message_said("nccl-unhandled-system-error", {})
	both := object.union(cause, {"logs": {"messages": array.concat(cause.logs.messages, [object.union(cause.logs.messages[0], {"id": "nccl-shm-no-space", "role": "cause"})])}})
	some g in env_misconfig.findings with input as object.union(set("NCCL_GRAPH_FILE", "/opt/graph.xml"), both)
	g.severity == "info"
}

test_expandable_segments_may_be_set if {
	some f in env_misconfig.findings with input as message_said("vllm-custom-all-reduce-failed", {"error": "invalid argument"})
	f.confidence == "possible"
	count(env_misconfig.findings) == 0 with input as message_said("vllm-custom-all-reduce-failed", {"error": "an illegal memory access was encountered"})
}

# What somebody chose for a run that went well is worth knowing and no more.
test_a_setting_of_a_run_that_went_well if {
	shown := {"texts": [{"name": "run.log"}], "env": {"variables": [object.union(setting("NCCL_PROTO", "LL"), {"source": "run.log", "line": 3})]}}
	some f in env_misconfig.findings with input as shown
	f.severity == "low"
	some g in env_misconfig.findings with input as object.union(shown, message_said("nccl-unhandled-system-error", {}))
	g.severity == "medium"
	slow := {"benchmarks": [{"points": [{"gbps": 20, "expected_gbps": 450, "threshold": 0.35}]}]}
	some h in env_misconfig.findings with input as object.union(shown, slow)
	h.severity == "medium"
}

test_a_topology_file_that_is_not_there if {
	some f in env_misconfig.findings with input as object.union(set("NCCL_TOPO_FILE", "/opt/topo.xml"), message_said("nccl-topo-file-missing", {}))
	f.severity == "low"
}

judge(document) := {f.severity | some f in env_misconfig.findings with input as document}

test_rdma_switched_off_under_tcp if {
	off := {"env": {"variables": [{"name": "NCCL_IB_DISABLE", "value": "1", "source": "a.log", "effective": true}]}}
	tcp := {"logs": {"messages": [], "transports": [{"kind": "net", "network": "Socket", "channels": 1, "a": 0, "b": 1, "source": "a.log", "line": 4}]}}

	judge(object.union(off, tcp)) == {"low"}
	judge(object.union_n([off, tcp, {"nics": {"rdma": [{"device": "mlx5_0", "port": 1, "netdev_up": true}]}}])) == {"medium"}
	judge(object.union_n([off, tcp, {"nics": {"rdma": [{"device": "mlx5_0", "port": 1, "state": "active"}]}}])) == {"medium"}
}

test_fires_unequal_variables if {
	some f in env_misconfig.findings with input as message_said("nccl-diag-environment", {"variable": "NCCL_PROTO", "count": "8"})
	f.subject == "NCCL_PROTO"
}

test_silent_unequal_files if {
	count(env_misconfig.findings) == 0 with input as message_said("nccl-diag-environment", {"variable": "NCCL_DEBUG_FILE", "count": "8"})
}

unreached(fields) := {
	"launches": [{"kind": "torchrun", "nodes": 1, "processes": 4, "source": "run.sh", "line": 1}],
	"logs": {"messages": [{"id": "torch-store-connect-failed", "program": "pytorch", "role": "category", "text": "said", "fields": fields, "source": "a.log", "line": 2, "order": 4, "count": 1, "ranks": 1}]},
}

test_master_address_of_no_machine if {
	document := unreached({"any_host": "192.0.2.1", "any_port": "29500"})
	some f in env_misconfig.findings with input as document
	f.subject == "MASTER_ADDR"
	f.severity == "critical"

	# Itself on one machine, and a peer of several, are other matters.
	every host in ["localhost", "127.0.0.1", "::1", "::ffff:127.0.0.1"] {
		count(env_misconfig.findings) == 0 with input as unreached({"host": host})
	}
	count(env_misconfig.findings) == 0 with input as object.union(document, {"launches": [{"kind": "torchrun", "nodes": 2, "source": "run.sh", "line": 1}]})
}

refusal(id, text) := {"id": id, "program": "ucx", "role": "cause", "text": text, "source": "a.log", "line": 3, "order": 0, "count": 1, "ranks": 1}

set_to(name, value) := {"env": {"variables": [setting(name, value)]}}

subjects(document) := {[f.subject, f.severity, f.confidence] | some f in env_misconfig.findings with input as document; f.severity == "high"}

test_ucx_without_a_transport if {
	unreachable := {"logs": {"messages": [object.union(refusal("ucx-unreachable", "said"), {"fields": {"level": "ERROR"}})]}}
	subjects(object.union(unreachable, set_to("UCX_NET_DEVICES", "mlx5_0:1"))) == {["UCX_NET_DEVICES", "high", "likely"]}
	subjects(object.union(unreachable, set_to("UCX_TLS", "all"))) == set()
	subjects(unreachable) == set()
}

ports(layer) := {"nics": {"rdma": [{"device": "mlx5_0", "port": 1, "link_layer": layer, "source": "ib.txt", "line": 1}]}}

test_settings_of_roce_on_infiniband if {
	failed := {"logs": {"messages": [refusal("rdma-modify-qp-failed", "Error in mlx5dv_devx_obj_modify for INIT2RTR_QP with syndrome 764216")]}}

	document := object.union(failed, set_to("NVSHMEM_IB_TRAFFIC_CLASS", "160"))
	subjects(object.union(document, ports("InfiniBand"))) == {["NVSHMEM_IB_TRAFFIC_CLASS", "high", "possible"]}
	subjects(object.union(document, ports("Ethernet"))) == set()
	subjects(object.union(failed, ports("InfiniBand"))) == set()
}

test_an_address_that_is_not_of_this_host if {
	failed := {"logs": {"messages": [refusal("nccl-bind-failed", "NCCL WARN Call to bind failed : Cannot assign requested address")]}}
	some f in env_misconfig.findings with input as object.union(failed, set_to("NCCL_COMM_ID", "192.168.0.91:27030"))
	[f.subject, f.severity, f.confidence] == ["NCCL_COMM_ID", "critical", "confirmed"]
	count(env_misconfig.findings) == 0 with input as failed
}

# What HIP's copies show says less of RCCL's transport.
test_p2p_off_on_amd_is_weighed_less if {
	cards := [{"address": address, "vendor": "amd"} | some address in ["0000:03:00.0", "0000:06:00.0"]]
	document := {
		"gpus": {"devices": cards},
		"env": {"variables": [{"name": "NCCL_P2P_DISABLE", "value": "1", "source": "environment", "effective": true}]},
		"transfers": {"outcome": "ok", "api": "hip", "transfers": [
			{"test": "copy", "source": "0000:03:00.0", "destination": "0000:06:00.0", "outcome": "ok", "gbps": 26.1},
			{"test": "copy", "source": "0000:06:00.0", "destination": "0000:03:00.0", "outcome": "ok", "gbps": 26.1},
		]},
	}
	some f in env_misconfig.findings with input as document
	[f.severity, f.confidence] == ["low", "possible"]
	contains(f.message, "RCCL's own transport")
}

test_a_network_of_nccl_itself if {
	some f in env_misconfig.findings with input as object.union(set_to("NCCL_NET", "IB"), message_said("nccl-network-not-found", {}))
	[f.severity, f.confidence, f.remedies[1]] == ["critical", "likely", "pass-rdma-devices"]
}

test_memory_hooks_over_slingshot if {
	chosen := object.union(machine("FI_MR_CACHE_MONITOR", "memhooks"), {"nics": {"providers": ["cxi"]}})
	severity(chosen) == "low"
	severity(object.union(chosen, message_said("torch-watchdog-timeout", {}))) == "critical"
	severity(object.union(machine("FI_MR_CACHE_MONITOR", "memhooks"), message_said("ofi-provider", {"provider": "cxi"}))) == "low"
	found(machine("FI_MR_CACHE_MONITOR", "memhooks")) == set()
	found(object.union(machine("FI_MR_CACHE_MONITOR", "userfaultfd"), {"nics": {"providers": ["cxi"]}})) == set()
}

loopback_store := {
	"id": "torch-store-connect-failed", "program": "pytorch", "role": "category", "host": "b", "text": "The client socket has failed to connect",
	"fields": {"host": "127.0.1.1", "error": "Connection refused"}, "source": "job.log", "line": 3, "order": 1, "count": 1, "ranks": 1,
}

# Ranks of two machines that meet at an address which each machine has for itself.
test_ranks_that_meet_at_loopback if {
	both := {"logs": {"messages": [loopback_store], "networks": [{"host": "a"}, {"host": "b"}]}}
	some f in env_misconfig.findings with input as both
	[f.subject, f.severity, f.confidence, f.remedies] == ["MASTER_ADDR", "critical", "possible", ["unset-env"]]
	contains(f.message, "127.0.1.1, which on each machine is the machine itself")
	alone := json.patch(both, [{"op": "remove", "path": "/logs/networks/1"}])
	count(env_misconfig.findings) == 0 with input as alone
}

ran(name, unset, gbps) := {
	"name": name, "outcome": "ok", "unset": unset,
	"operations": [{"name": "all-reduce", "bytes": 67108864, "outcome": "ok", "bus_gbps": gbps}],
}

collectives(unset, without) := {"collectives": {
	"outcome": "ok", "gpus": ["0000:01:00.0", "0000:02:00.0"],
	"arms": [ran("as-configured", [], 100), ran("cleaned", unset, without)],
}}

# A variable that the probe found to make collectives slower is high by what is lost, whatever the table says.
test_measured_in_collectives if {
	every name, value in {"NCCL_PROTO": "LL", "NCCL_CHUNK_SIZE": "1024", "NCCL_NTHREADS": "64"} {
		every without, severity in {"300": "high", "150": "medium"} {
			doc := object.union(machine(name, value), collectives([name], to_number(without)))
			fs := env_misconfig.findings with input as doc
			count(fs) == 1
			some f in fs
			f.severity == severity
			f.confidence == "confirmed"
			f.params.variables == [name]
			contains(f.message, "100 GB/s")
		}
		same := object.union(machine(name, value), collectives([name], 110))
		fs := env_misconfig.findings with input as same
		not "confirmed" in {f.confidence | some f in fs}
	}
}

# What transfers measured weighs peer access already.
test_measured_twice if {
	doc := object.union(
		machine("NCCL_P2P_DISABLE", "1"),
		object.union(collectives(["NCCL_P2P_DISABLE"], 300), {"transfers": {"outcome": "ok", "transfers": [{
			"test": "copy", "source": "0000:01:00.0", "destination": "0000:02:00.0", "outcome": "ok", "gbps": 50,
		}]}}),
	)
	fs := env_misconfig.findings with input as doc
	count(fs) == 1
	some f in fs
	f.params.variable == "NCCL_P2P_DISABLE"
	f.severity == "high"
}

# Where peer access is broken, doing without it is the cure, whatever it costs.
test_measured_cure if {
	doc := object.union(
		machine("NCCL_P2P_DISABLE", "1"),
		object.union(collectives(["NCCL_P2P_DISABLE"], 300), {"transfers": {"outcome": "ok", "transfers": [{
			"test": "copy", "source": "0000:01:00.0", "destination": "0000:02:00.0", "outcome": "corrupt",
		}]}}),
	)
	count(env_misconfig.findings) == 0 with input as doc
}
