package gpudoctor.lib.launch_network_test

import data.gpudoctor.lib.launch_network as network

pod := {"kind": "kubernetes", "name": "train", "gpus": 8, "source": "pod.yaml", "line": 3}

run := {"kind": "docker-run", "gpus": -1, "source": "run.sh", "line": 1}

job(ls) := {"profile": "launch", "launches": ls}

setting(name, value) := object.union(pod, {"variables": {name: value}})

interfaces(l) := all if all := {f.subject | some f in network.interfaces} with input as job([l])

test_interfaces if {
	interfaces(setting("NCCL_SOCKET_IFNAME", "ens3")) == {"NCCL_SOCKET_IFNAME"}
	interfaces(setting("GLOO_SOCKET_IFNAME", "=ib0,bond0")) == {"GLOO_SOCKET_IFNAME"}
	interfaces(setting("NCCL_SOCKET_IFNAME", "eth0")) == set()
	interfaces(setting("NCCL_SOCKET_IFNAME", "^docker0,lo")) == set()
	interfaces(setting("NCCL_SOCKET_IFNAME", "$IFNAME")) == set()
	interfaces(object.union(setting("NCCL_SOCKET_IFNAME", "ens3"), {"network": "host"})) == set()
	interfaces(object.union(setting("NCCL_SOCKET_IFNAME", "ib0"), {"resources": {"nvidia.com/hostdev_rdma": "1"}})) == set()
	interfaces(object.union(setting("NCCL_SOCKET_IFNAME", "ib0"), {"kind": "docker-run", "network": "container:x"})) == set()
}

test_bridge if {
	interfaces(object.union(run, {"nodes": 2})) == {"network"}
	interfaces(object.union(run, {"nodes": 2, "network": "host"})) == set()
	interfaces(object.union(run, {"nodes": 2, "network": "overlay-net"})) == set()
	interfaces(object.union(pod, {"nodes": 2})) == set()
}

test_rendezvous if {
	ranks(["torchrun", "--master-addr=127.0.0.1"]) == {"MASTER_ADDR"}
	ranks(["torchrun", "--rdzv_endpoint", "localhost:29500"]) == {"MASTER_ADDR"}
	ranks(["torchrun", "--master-addr=10.0.0.1"]) == set()
	count(network.rendezvous) == 0 with input as job([object.union(run, {"nodes": 1, "command": ["torchrun", "--master-addr=127.0.0.1"]})])
}

test_disabled if {
	off("NCCL_IB_DISABLE", "1") == {"NCCL_IB_DISABLE"}
	off("NCCL_IB_DISABLE", "0") == set()
	off("NCCL_NET", "Socket") == {"NCCL_NET"}
	count(network.disabled) == 0 with input as job([setting("NCCL_IB_DISABLE", "1")])
}

test_nodes if {
	batch := {"kind": "slurm", "nodes": 2, "source": "job.sh", "line": 2}
	count(network.nodes) == 1 with input as job([batch, launcher(4)])
	count(network.nodes) == 0 with input as job([batch, launcher(2)])
	count(network.nodes) == 0 with input as job([batch, object.union(launcher(4), {"command": ["python"]})])
}

test_image if {
	image := {"kind": "dockerfile", "packages": ["libnvidia-compute-550", "libnccl2"], "variables": {"LD_LIBRARY_PATH": "/usr/local/cuda/lib64:/usr/local/cuda/lib64/stubs"}, "source": "Dockerfile", "line": 1}
	{f.subject | some f in network.packages} == {"libnvidia-compute-550"} with input as job([image])
	{f.subject | some f in network.stubs} == {"/usr/local/cuda/lib64/stubs"} with input as job([image])
	count(network.packages | network.stubs) == 0 with input as {"launches": [image]}
}

ranks(command) := all if all := {f.subject | some f in network.rendezvous} with input as job([object.union(run, {"nodes": 2, "command": command})])

off(name, value) := all if all := {f.subject | some f in network.disabled} with input as job([object.union(setting(name, value), {"resources": {"rdma/hca": "1"}})])

launcher(n) := {"kind": "slurm", "nodes": n, "command": ["torchrun", sprintf("--nnodes=%d", [n])], "source": "job.sh", "line": 9}
