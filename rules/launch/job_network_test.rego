package gpudoctor.rules.job_network_test

import data.gpudoctor.rules.job_network

pod(more) := object.union({"kind": "kubernetes", "variables": {"NCCL_SOCKET_IFNAME": "ens3"}, "source": "pod.yaml", "line": 3}, more)

machine(l) := all if all := {f.subject | some f in job_network.findings} with input as {
	"launches": [l],
	"nics": {"interfaces": [{"name": "lo", "kind": "loopback"}, {"name": "eno1"}], "rdma": [{"device": "mlx5_0", "port": 1}]},
}

on_host(name, value) := machine({"kind": "docker-run", "network": "host", "variables": {name: value}, "source": "run.sh", "line": 1})

test_fires if {
	machine({"kind": "docker-run", "gpus": -1, "nodes": 2, "source": "run.sh", "line": 1}) == {"network"}
	on_host("NCCL_IB_HCA", "mlx4_0") == {"NCCL_IB_HCA"}
	machine({"kind": "slurm", "variables": {"GLOO_SOCKET_IFNAME": "eth0"}, "source": "job.sh", "line": 1}) == {"GLOO_SOCKET_IFNAME"}
}

# A pod's own network is not the host's.
test_silent if {
	machine(pod({"variables": {"NCCL_SOCKET_IFNAME": "eth0"}})) == set()
	on_host("NCCL_SOCKET_IFNAME", "eno") | on_host("NCCL_SOCKET_IFNAME", "^docker") == set()
	on_host("NCCL_IB_HCA", "=mlx5_0:1") == set()
}

test_unresolvable if count(job_network.missing) == 1 with input as {"launches": [pod({"unknown": {"network": "${X}"}})]}
