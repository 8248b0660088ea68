package gpudoctor.rules.network_libraries_missing_test

import data.gpudoctor.rules.network_libraries_missing as r

lib(kind, path) := {"kind": kind, "path": path, "found_by": "ld_cache"}

nccl := lib("libnccl", "/usr/lib/libnccl.so.2")
plugin := object.union(lib("nccl-net", "/opt/amazon/ofi-nccl/lib/libnccl-net.so"), {"version": "1.9.1"})

image(files, rdma) := {"profile": "image", "libraries": {"files": files}, "target": {"source": "t", "rdma": rdma}}
subjects(document) := {f.subject | some f in r.findings with input as document}

test_fires if subjects({"libraries": {"files": [nccl, plugin]}}) == {"libfabric"}
test_fires_efa if subjects(image([nccl], ["efa"])) == {"aws-ofi-nccl"}
test_fires_provider if subjects(image([nccl, lib("libibverbs", "/usr/lib/libibverbs.so.1")], ["mlx5"])) == {"libmlx5-rdmav*.so"}

test_silent if {
	subjects(image([nccl, plugin, lib("libfabric", "/usr/lib/libfabric.so.1")], ["efa"])) == set()
	subjects(image([], ["mlx5"])) == set()
}

test_silent_other_plugin if subjects({"libraries": {"files": [nccl, lib("nccl-net", "/opt/hpcx/lib/libnccl-net.so")]}}) == set()
