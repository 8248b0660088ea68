package gpudoctor.lib.conditions_network_test

import data.gpudoctor.lib.conditions_network

given(rows) := {"logs": {"messages": [object.union({"program": "nccl", "role": "cause", "source": "a.log", "count": 1, "ranks": 1, "order": i, "line": i + 1, "text": row.id}, row) | some i, row in rows]}}
holds(condition, document) if condition in conditions_network.holds with input as document

value(key, document) := known[0] if {
	known := [pair[1] | some pair in conditions_network.values with input as document; pair[0] == key]
}

set_to(variable, setting) := {"env": {"variables": [{"name": variable, "value": setting, "effective": true}]}}

test_interface_taken_before if {
	family := {"id": "nccl-address-family-unknown", "host": "a"}
	using := {"id": "nccl-bootstrap-interface", "fields": {"interfaces": "ens7:10.64.0.14<0>"}}
	holds("interface_taken_before", given([family, object.union(using, {"host": "a"})]))
	not holds("interface_taken_before", given([family, object.union(using, {"host": "b"})]))
}

test_bind_to_foreign_address if {
	holds("bind_to_foreign_address", given([{"id": "nccl-bind-failed", "fields": {"error": "Cannot assign requested address"}}]))
	not holds("bind_to_foreign_address", given([{"id": "nccl-bind-failed", "fields": {"error": "Address already in use"}}]))
}

test_ucx_tls_without_gpus if {
	holds("ucx_tls_without_gpus", set_to("UCX_TLS", "tcp,self,sm"))
	every setting in ["tcp,cuda_copy", "^tcp", "all", "rc,gdr_copy", "rocm"] {
		not holds("ucx_tls_without_gpus", set_to("UCX_TLS", setting))
	}
}

test_ucx_tls_in_a_log if {
	holds("ucx_tls_without_gpus", given([{"id": "trtllm-ucx-settings", "fields": {"tls": "tcp"}}]))
}

test_launcher_lost_host if {
	every id in ["openmpi-daemon-lost", "mpi-agent-failed"] {
		holds("launcher_lost_host", given([{"id": id}]))
	}
	not holds("launcher_lost_host", given([{"id": "ssh-login-failed"}]))
}

test_gloo if {
	other := {"id": "gloo-connect-failed", "fields": {"remote": "10.0.0.7", "error": "Connection refused"}}
	holds("gloo_peer_named", given([other]))
	not holds("gloo_peer_named", given([{"id": "gloo-connect-failed"}]))
	holds("gloo_reason_told", given([other]))
	not holds("gloo_reason_told", given([other, {"id": "gloo-loopback-fallback"}]))
}

test_ranks_cut_off if {
	holds("ranks_cut_off", given([{"id": "torch-store-closed"}]))
	not holds("ranks_cut_off", given([{"id": "torch-cuda-oom"}, {"id": "torch-store-closed"}]))
}

test_failed_before_efa if {
	oom := {"id": "torch-cuda-oom"}
	silent := {"id": "ofi-peer-unreachable"}
	holds("failed_before_efa_was_silent", given([oom, silent]))
	not holds("failed_before_efa_was_silent", given([silent, oom]))
	holds("failed_before_efa", given([oom, {"id": "ofi-request-failed"}]))
	not holds("failed_before_efa", given([{"id": "ofi-request-failed"}, oom]))
}

chosen(provider) := given([{"id": "ofi-provider", "fields": {"provider": provider}}])

test_ofi_without_efa if {
	holds("ofi_without_efa", chosen("cxi"))
	not holds("ofi_without_efa", chosen("efa"))
	not holds("ofi_without_efa", {})
}

test_efa if {
	holds("efa_expected", set_to("FI_PROVIDER", "efa"))
	some ["efa_expected", fact] in conditions_network.shown with input as set_to("FI_PROVIDER", "efa")
	fact.value == "efa"
	not holds("efa_expected", {})
	holds("failed_beside_ofi", given([{"id": "nccl-x"}]))
	value("then_tcp", {"logs": {"communicators": [{"nodes": 2}]}})
}

test_rdma if {
	holds("infiniband", {"nics": {"rdma": [{"link_layer": "InfiniBand"}]}})
	not holds("infiniband", {})
	holds("peermem_loaded", {"nics": {"modules": ["nvidia_peermem"]}})
	holds("peermem_absent", {"nics": {"modules": ["ib_core"]}})
	some ["peermem_absent", fact] in conditions_network.shown with input as {"nics": {"modules": ["ib_core"]}}
	fact.value == ["ib_core"]
	some ["peermem_loaded", other] in conditions_network.shown with input as {"nics": {"modules": ["nvidia_peermem"]}}
	other.fact == "nics.modules"
}
