package gpudoctor.lib.conditions_gpu_test

import data.gpudoctor.lib.conditions_gpu

# holds_with is true where a condition holds with these facts, and not with none.
holds_with(name, given) if {
	name in conditions_gpu.holds with input as given
	not name in conditions_gpu.holds with input as {}
}

test_driver_versions if {
	message := {"id": "xla-dso-mismatch", "fields": {"kernel": "535.161.8", "library": "535.183.1"}}
	["driver_versions", " They are 535.161.8 (kernel) and 535.183.1 (library)."] in conditions_gpu.values with input as {"logs": {"messages": [message]}}
}

test_architectures if {
	holds_with("architecture_faked", {"env": {"variables": [{"name": "HSA_OVERRIDE_GFX_VERSION", "value": "10.3.0", "source": "a.txt", "effective": true}]}})
	holds_with("architecture_faked", {"env": {"variables": [{"name": "HSA_OVERRIDE_GFX_VERSION_1", "value": "10.3.0", "source": "a.txt", "effective": true}]}})
}

died(more) := {"logs": {"messages": [], "deaths": [object.union({"reporter": "handler", "pid": 1, "count": 2}, more)]}}

test_pid_twice if {
	holds_with("pid_twice", died({}))
	every more in [{"count": 1}, {"pid": 0}, {"reporter": "python"}] {
		not "pid_twice" in conditions_gpu.holds with input as died(more)
	}
}

test_nvlinks if {
	dark := {"gpus": {"devices": [{"address": "0000:03:00.0", "nvlinks": [{"link": 0, "active": false}]}]}}
	pair := {"a": "0000:03:00.0", "b": "0000:06:00.0", "kind": "gpu-gpu", "nvlinks": 4}
	holds_with("nvlinks_none", dark)
	holds_with("nvlinks_none", {"logs": {"messages": [{"id": "nvlink-all-inactive"}]}})
	not "nvlinks_none" in conditions_gpu.holds with input as object.union(dark, {"links": {"pairs": [pair]}})
	lit := {"gpus": {"devices": [{"address": "0000:03:00.0", "nvlinks": [{"link": 0, "active": true}, {"link": 1, "active": false}]}]}}
	not "nvlinks_none" in conditions_gpu.holds with input as object.union(lit, {"links": {"pairs": [pair]}})
}

test_modules if {
	holds_with("nvlink_modules", {"gpus": {"devices": [{"address": x, "name": "NVIDIA H100 80GB HBM3"} | some x in ["GPU0", "GPU1"]]}})
	not "nvlink_modules" in conditions_gpu.holds with input as {"gpus": {"devices": [{"address": x, "name": "NVIDIA GeForce RTX 3090"} | some x in ["GPU0", "GPU1"]]}}
}

test_amd_peer_access if {
	pair := {"a": "0000:03:00.0", "b": "0000:06:00.0", "kind": "gpu-gpu", "link_type": "pcie", "accessible": true}
	gpus := {"devices": [{"address": a, "vendor": "amd"} | some a in [pair.a, pair.b]]}
	"amd_peer_access" in conditions_gpu.holds with input as {"gpus": gpus, "links": {"pairs": [pair]}}
	not "amd_peer_access" in conditions_gpu.holds with input as {"gpus": gpus, "links": {"pairs": [object.union(pair, {"accessible": false})]}}
	not "amd_peer_access_refused" in conditions_gpu.holds with input as {"gpus": gpus}
	"amd_peer_access_refused" in conditions_gpu.holds with input as {"logs": {"messages": [{"id": "hip-no-peer-access", "role": "cause", "text": "x", "order": 0}]}}
}
