package gpudoctor.lib.launch_devices_test

import data.gpudoctor.lib.launch_devices as devices

unreached(l) := all if all := {[f.subject, f.severity] | some f in devices.unreached} with input as {"profile": "launch", "launches": [l]}

given(devices, image) := {"kind": "docker-run", "devices": devices, "image": image, "source": "run.sh", "line": 1}

test_unreached if {
	run := {"kind": "docker-run", "processes": 2, "command": ["torchrun"], "source": "run.sh", "line": 1}
	unreached(run) == {["/dev/nvidia*", "medium"]}
	unreached(object.union(run, {"gpus": 2})) == set()
	launcher := {"kind": "kubernetes", "processes": 16, "command": ["mpirun"], "source": "p.yaml", "line": 1}
	unreached(launcher) == set()
	unreached(object.union(launcher, {"command": ["torchrun"]})) == {["/dev/nvidia*", "medium"]}
	unreached(object.union(launcher, {"command": ["torchrun"], "resources": {"claims": "1"}})) == set()
}

test_amd if {
	unreached(given(["/dev/kfd"], "x")) == {["/dev/dri", "high"]}
	unreached(given(["/dev/dri"], "rocm/pytorch")) == {["/dev/kfd", "high"]}
	unreached(given(["/dev/dri"], "ffmpeg")) == set()
	unreached(given(["/dev/kfd", "/dev/dri"], "rocm/pytorch")) == set()
}
