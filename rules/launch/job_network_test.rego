package gpudoctor.rules.job_network_test

import data.gpudoctor.rules.job_network

found(l) := all if all := {[f.subject, object.get(f, "severity", "high")] | some f in job_network.findings} with input as {"profile": "launch", "launches": [l]}

open(l) := n if n := count(job_network.missing) with input as {"profile": "launch", "launches": [l]}

pod := {"kind": "kubernetes", "name": "train", "gpus": 8, "variables": {"NCCL_SOCKET_IFNAME": "ens3"}, "source": "pod.yaml", "line": 3}

more(m) := object.union(pod, m)

machine(l) := all if all := {f.subject | some f in job_network.findings} with input as {
	"profile": "launch", "launches": [l],
	"nics": {"interfaces": [{"name": "lo", "kind": "loopback"}, {"name": "eno1"}], "rdma": [{"device": "mlx5_0", "port": 1}]},
}

on_host(name, value) := machine({"kind": "docker-run", "network": "host", "variables": {name: value}, "source": "run.sh", "line": 1})

test_fires if {
	found(pod) == {["NCCL_SOCKET_IFNAME", "high"]}
	found(more({"kind": "compose", "variables": {"GLOO_SOCKET_IFNAME": "ib0"}})) == {["NCCL_SOCKET_IFNAME", "high"], ["GLOO_SOCKET_IFNAME", "high"]}
	found({"kind": "docker-run", "gpus": -1, "nodes": 2, "source": "run.sh", "line": 1}) == {["network", "high"]}
}

test_fires_for_a_target if {
	on_host("NCCL_SOCKET_IFNAME", "eth0") == {"NCCL_SOCKET_IFNAME"}
	on_host("NCCL_IB_HCA", "mlx4_0") == {"NCCL_IB_HCA"}
	on_host("NCCL_SOCKET_IFNAME", "eno") == set()
	on_host("NCCL_SOCKET_IFNAME", "^docker") == set()
	on_host("NCCL_IB_HCA", "=mlx5_0:1") == set()
	machine({"kind": "slurm", "command": ["python"], "variables": {"NCCL_SOCKET_IFNAME": "eth0"}, "source": "job.sh", "line": 1}) == {"NCCL_SOCKET_IFNAME"}
}

# A pod's own network is not the host's.
test_silent_for_own_networks if {
	machine(more({"variables": {"NCCL_SOCKET_IFNAME": "eth0"}})) == set()
	machine(more({"variables": {"NCCL_SOCKET_IFNAME": "net1"}, "networks": ["roce"]})) == set()
	found(more({"networks": ["roce"]})) == set()
	found(more({"network": "host"})) == set()
	found(more({"resources": {"rdma/hca": "1"}})) == set()
	found(more({"variables": {"NCCL_SOCKET_IFNAME": "eth0"}})) == set()
}

test_unresolvable if {
	every part in ["network", "networks", "resources"] {
		unknown := more({"unknown": {part: "${X}"}})
		found(unknown) == set()
		open(unknown) == 1
	}
}
