package gpudoctor.lib.conditions_test

import data.gpudoctor.lib.conditions

test_interface_asked if {
	given := {"env": {"variables": [{"name": "NCCL_SOCKET_IFNAME", "value": "eth9", "effective": true}]}}
	"interface_asked" in conditions.holds with input as given
	["asked_interface", "eth9"] in conditions.values with input as given
	some ["interface_asked", fact] in conditions.shown with input as given
	fact.value == "eth9"
	not "interface_asked" in conditions.holds with input as {}
}

# Containers.

test_container_told if {
	"container_told" in conditions.holds with input as {"container": {"inside": true}}
	"container_told" in conditions.holds with input as {"launches": [{"kind": "docker-run"}]}
	not "container_told" in conditions.holds with input as {"launches": [{"kind": "slurm"}]}
}

# given are the conditions that hold for a launch of a container.
given(launch) := names if {
	names := conditions.holds with input as {"launches": [object.union({"kind": "docker-run", "name": "ds", "source": "run.txt", "line": 1}, launch)]}
}

test_container_without_rdma if {
	"container_without_rdma" in given({})
	every launch in [{"devices": ["/dev/infiniband"]}, {"privileged": true}, {"resources": {"rdma/hca_shared": "1"}}, {"mounts": ["/dev/infiniband:/dev/infiniband"]}, {"kind": "torchrun"}] {
		not "container_without_rdma" in given(launch)
	}
	"container_without_rdma" in given({"kind": "slurm", "image": "nvcr.io/x"})
	some ["container_without_rdma", fact] in conditions.shown with input as {"launches": [{"kind": "docker-run", "source": "run.txt", "line": 1}]}
	fact == {"fact": "launches[docker-run].devices", "value": "none", "source": "run.txt:1"}
}

test_container_without_imex if {
	"container_without_imex" in given({"gpus": 4})
	not "container_without_imex" in given({"privileged": true})
	not "container_without_imex" in given({"devices": ["/dev/nvidia-caps-imex-channels/channel0"]})
	pod := {"launches": [{"kind": "kubernetes", "name": "w", "source": "pod.yaml", "line": 1}]}
	["container_without_imex", "the pod w"] in conditions.values with input as pod
	some ["container_without_imex", fact] in conditions.shown with input as pod
	fact.source == "pod.yaml:1"
}

# Which GPUs a program may use.

# setting is a variable in force.
setting(name, value) := {"env": {"variables": [{"name": name, "value": value, "source": "environment", "effective": true}]}}

test_container_gpus_chosen if {
	"container_gpus_chosen" in conditions.holds with input as setting("NVIDIA_VISIBLE_DEVICES", "4")
	some ["container_gpus_chosen", fact] in conditions.shown with input as setting("NVIDIA_VISIBLE_DEVICES", "4")
	fact.value == "4"
	not "container_gpus_chosen" in conditions.holds with input as setting("CUDA_VISIBLE_DEVICES", "4")
}
