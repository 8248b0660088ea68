package gpudoctor.lib.launches_test

import data.gpudoctor.lib.launches

run := {"kind": "docker-run", "name": "train", "gpus": -1, "source": "a.txt", "line": 3}

with_launch(l) := {"launches": [l]}

changed(more) := with_launch(object.union(run, more))

test_default_is_small if {
	launches.small_shm == {run} with input as with_launch(run)
	launches.containers == {run} with input as with_launch(run)
}

test_small_size if {
	count(launches.small_shm) == 1 with input as changed({"shm_bytes": 67108864})
	count(launches.small_shm) == 0 with input as changed({"shm_bytes": 17179869184})
}

test_shared_is_not_small if {
	count(launches.small_shm) == 0 with input as changed({"ipc": "host"})
	count(launches.small_shm) == 0 with input as changed({"ipc": "container:other"})
	count(launches.small_shm) == 0 with input as changed({"shm_mounted": true})
	count(launches.small_shm) == 0 with input as changed({"kind": "apptainer"})
}

test_several if {
	launches.several with input as changed({"gpus": 2})
	launches.several with input as with_launch({"kind": "command", "tensor_parallel": 2})
	launches.several with input as {"logs": {"communicators": [{"ranks": 8}]}}
	launches.several with input as {"gpus": {"devices": [{"address": "0000:01:00.0"}, {"address": "0000:02:00.0"}]}}
	not launches.several with input as with_launch(run)
	not launches.several with input as {}
}

test_words if {
	launches.title(run) == "the container train"
	launches.title({"kind": "compose", "image": "img"}) == "the service of img"
	launches.title({"kind": "kubernetes"}) == "the pod"
	contains(launches.shm_words(run), "default of 64 MiB")
	contains(launches.shm_words({"shm_bytes": 268435456}), "256 MiB")
	launches.evidence(run) == {"fact": "launches[train].shm_bytes", "value": "the default", "source": "a.txt:3"}
}

test_without_gpus if {
	bare := {"kind": "docker-run", "image": "x", "source": "a.txt", "line": 1}
	launches.without_gpus == {bare} with input as with_launch(bare)
	every more in [{"gpus": -1}, {"runtime": "nvidia"}, {"privileged": true}, {"devices": ["/dev/nvidia0"]}, {"variables": {"NVIDIA_VISIBLE_DEVICES": "all"}}, {"kind": "kubernetes"}] {
		count(launches.without_gpus) == 0 with input as with_launch(object.union(bare, more))
	}
}

test_open_parts if {
	every part in ["shm_bytes", "ipc", "mounts"] {
		count(launches.small_shm) == 0 with input as changed({"unknown": {part: "$X"}})
	}
	count(launches.small_shm) == 0 with input as changed({"shm_bytes": 67108864, "unknown": {"ipc": "$X"}})
	bare := {"kind": "docker-run", "image": "x", "source": "a.txt", "line": 1}
	every part in ["gpus", "runtime", "privileged", "devices", "variables", "variables[NVIDIA_VISIBLE_DEVICES]"] {
		count(launches.without_gpus) == 0 with input as with_launch(object.union(bare, {"unknown": {part: "$X"}}))
	}
	every part in ["privileged", "devices", "mounts"] {
		count(launches.without_rdma | launches.without_imex) == 0 with input as changed({"unknown": {part: "$X"}})
	}
}
