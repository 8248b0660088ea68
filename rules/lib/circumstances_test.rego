package gpudoctor.lib.circumstances_test

import data.gpudoctor.lib.circumstances

# with_pair has two GPUs whose path goes through a host bridge.
with_pair := {"links": {"pairs": [{"a": "0000:01:00.0", "b": "0000:02:00.0", "kind": "gpu-gpu", "path": "PHB", "nvlinks": 0}]}}

test_value if {
	circumstances.holds("zero", "off") with input as {}
	circumstances.holds("unset-number", "-1") with input as {}
	not circumstances.holds("zero", "1") with input as {}
	circumstances.holds("level-known", "PIX") with input as {}
	not circumstances.holds("level-known", "pix") with input as {}
	circumstances.holds("protocols-known", "LL,Simple") with input as {}
	not circumstances.holds("algorithms-known", "Rnig") with input as {}
}

test_level_excludes_all if {
	circumstances.holds("level-excludes-all", "PIX") with input as with_pair
	not circumstances.holds("level-excludes-all", "SYS") with input as with_pair
	not circumstances.holds("level-excludes-all", "PIX") with input as {}
}

test_rdma_by_what_a_text_shows if {
	circumstances.holds("rdma", "1") with input as {"nics": {"rdma": [{"device": "mlx5_0", "port": 1, "netdev_up": true}]}}
	circumstances.holds("rdma", "1") with input as {"nics": {"rdma": [{"device": "mlx5_0", "port": 1, "state": "active"}]}}
	not circumstances.holds("rdma", "1") with input as {"nics": {"rdma": [{"device": "mlx5_0", "port": 1, "state": "down"}]}}
}

test_versions_compare if {
	libraries := {"libraries": {"files": [{"kind": "libnccl", "path": "/x/libnccl.so.2", "version": "2.27.3", "found_by": "python"}]}}
	circumstances.holds("nccl>=2.24", "1") with input as libraries
	circumstances.holds("nccl<2.28", "1") with input as libraries
	not circumstances.holds("nccl<2.27", "1") with input as libraries
	not circumstances.holds("nccl>=2.24", "1") with input as {}
}

test_nothing_is_known if {
	every name in ["image", "one-gpu", "p2p-proven", "p2p-refused", "nvlink", "efa", "cxi", "guest", "no-plugin", "cause-said", "over-sockets"] {
		not circumstances.holds(name, "1") with input as {}
	}
}

# pair_of_gpus is a container on a machine with two GPUs, of which it has none.
pair_of_gpus := {
	"profile": "image",
	"container": {"inside": true, "runtime": "docker", "device_nodes": []},
	"gpus": {"nvml": "not-found", "devices": [{"address": "0000:01:00.0", "vendor": "nvidia"}, {"address": "0000:02:00.0", "vendor": "nvidia"}]},
	"pci": {"devices": [{"address": "0000:01:00.0", "kind": "gpu", "vendor": "0x10de"}, {"address": "0000:02:00.0", "kind": "gpu", "vendor": "0x10de"}]},
}

test_image_judged if {
	every name in ["image-judged", "image-configured"] {
		circumstances.holds(name, "0") with input as {"profile": "image", "image": {"form": "oci-layout"}}
		circumstances.holds(name, "0") with input as {"profile": "image"}
		not circumstances.holds(name, "0") with input as {"profile": "training", "image": {"form": "oci-layout"}}
	}
	circumstances.holds("image-judged", "0") with input as pair_of_gpus
	not circumstances.holds("image-configured", "0") with input as pair_of_gpus
	circumstances.holds("launch", "0") with input as {"profile": "launch"}
}
