package gpudoctor.lib.launches_test

import data.gpudoctor.lib.launches

run := {"kind": "docker-run", "name": "train", "gpus": -1, "source": "a.txt", "line": 3}
bare := {"kind": "docker-run", "image": "x", "source": "a.txt", "line": 1}

changed(l, more) := {"launches": [object.union(l, more)]}

test_small_shm if {
	every more in [
		{"shm_bytes": 17179869184},
		{"ipc": "container:other"},
		{"shm_mounted": true},
		# A part that the description leaves open may be enough.
		{"unknown": {"shm_bytes": "$X"}},
		{"unknown": {"mounts": "$X"}},
		{"shm_bytes": 67108864, "unknown": {"ipc": "$X"}},
	] {
		count(launches.small_shm) == 0 with input as changed(run, more)
	}
}

test_without_gpus if {
	launches.without_gpus == {bare} with input as {"launches": [bare]}
	every more in [
		{"gpus": -1}, {"runtime": "nvidia"}, {"privileged": true}, {"devices": ["/dev/nvidia0"]},
		{"variables": {"NVIDIA_VISIBLE_DEVICES": "all"}}, {"kind": "kubernetes"},
	] {
		count(launches.without_gpus) == 0 with input as changed(bare, more)
	}
	every part in ["gpus", "runtime", "privileged", "devices", "variables", "variables[NVIDIA_VISIBLE_DEVICES]"] {
		count(launches.without_gpus) == 0 with input as changed(bare, {"unknown": {part: "$X"}})
	}
	every part in ["privileged", "devices", "mounts"] {
		count(launches.without_rdma) == 0 with input as changed(run, {"unknown": {part: "$X"}})
	}
}
