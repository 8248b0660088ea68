package gpudoctor.rules.job_variables_test

import data.gpudoctor.rules.job_variables

found(l) := all if all := {[f.subject, object.get(f, "severity", "low")] | some f in job_variables.findings} with input as {"profile": "launch", "launches": [l]}

open(l) := n if n := count(job_variables.missing) with input as {"profile": "launch", "launches": [l]}

pod := {"kind": "kubernetes", "name": "train", "gpus": 8, "source": "pod.yaml", "line": 3}

more(m) := object.union(pod, m)

setting(name, value) := more({"variables": {name: value}})

script(exports, ls) := all if all := {[f.subject, f.evidence[0].source] | some f in job_variables.findings} with input as {
	"profile": "launch",
	"env": {"variables": [{"name": name, "value": value, "source": "job.sh", "line": 4, "effective": true} | some [name, value] in exports]},
	"launches": ls,
}

header := {"kind": "slurm", "gpus": 8, "nodes": 2, "source": "job.sh", "line": 2}

run := {"kind": "slurm", "command": ["python"], "source": "job.sh", "line": 6}

test_fires if {
	found(setting("NCCL_P2P_DISABLE", "1")) == {["NCCL_P2P_DISABLE", "medium"]}
	found(setting("NCCL_PROTO", "fast")) == {["NCCL_PROTO", "high"]}
	found(setting("NCCL_BUFFSIZE", "true")) == {["NCCL_BUFFSIZE", "low"]}
	found(setting("NCCL_SOCKET_IFNAMES", "eth0")) == {["NCCL_SOCKET_IFNAMES", "low"]}
	found(more({"nodes": 2, "command": ["torchrun", "--master-addr=localhost"]})) == {["MASTER_ADDR", "high"]}
	found(more({"nodes": 2, "command": ["torchrun", "--rdzv_endpoint", "127.0.0.1:29500"]})) == {["MASTER_ADDR", "high"]}
	found(more({"nodes": 2, "variables": {"MASTER_ADDR": "localhost"}})) == {["MASTER_ADDR", "high"]}
	found(object.union(setting("NCCL_IB_DISABLE", "1"), {"resources": {"rdma/hca": "1"}})) == {["NCCL_IB_DISABLE", "medium"]}
	found(object.union(setting("NCCL_NET", "Socket"), {"devices": ["/dev/infiniband"]})) == {["NCCL_NET", "medium"]}
	found(object.union(setting("CUDA_VISIBLE_DEVICES", "0"), {"kind": "dockerfile"})) == {["CUDA_VISIBLE_DEVICES", "high"]}
}

# What a script exports is said once, and what one command sets is of that command alone.
test_fires_for_scripts if {
	script([["NCCL_P2P_DISABLE", "1"]], [header, run, object.union(run, {"line": 7})]) == {["NCCL_P2P_DISABLE", "job.sh:4"]}
	script([["NCCL_P2P_DISABLE", "1"]], [header, object.union(run, {"variables": {"NCCL_P2P_DISABLE": "1"}})]) == {["NCCL_P2P_DISABLE", "job.sh:6"]}
	script([["NCCL_P2P_DISABLE", "1"], ["NCCL_P2P_DISABLE", "0"]], [header, run]) == set()
	script([["NCCL_P2P_DISABLE", "1"]], [header, run, {"kind": "shell", "unknown": {"variables[NCCL_P2P_DISABLE]": "$X"}, "source": "job.sh", "line": 3}]) == set()
}

# What is only possible on an unknown machine is low, and so is what concerns a single GPU.
test_fires_mildly if {
	found(setting("NCCL_PROTO", "^Simple,LL128")) != {["NCCL_PROTO", "medium"]}
	found(setting("NCCL_PROTO", "LL128")) == {["NCCL_PROTO", "low"]}
	found(object.union(setting("NCCL_P2P_DISABLE", "1"), {"gpus": 1})) == {["NCCL_P2P_DISABLE", "low"]}
	found(object.union(setting("NCCL_P2P_DISABLE", "1"), {"command": ["bash", "-c", "echo test && all_reduce_perf -b 8"]})) == {["NCCL_P2P_DISABLE", "low"]}
	found(object.union(setting("NVIDIA_DRIVER_CAPABILITIES", "video"), {"kind": "dockerfile"})) == {["NVIDIA_DRIVER_CAPABILITIES", "low"]}
}

# What a provider documents is no misconfiguration.
test_silent_for_providers if {
	every how in [
		{"image": "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/nccl-plugin-gpudirecttcpx-dev:v1.0.8"},
		{"mounts": ["/home/kubernetes/bin/nvidia/lib64:/usr/local/nvidia/lib64"]},
		{"variables": {"NCCL_FASTRAK_CTRL_DEV": "eth0"}},
	] {
		found(object.union(setting("NCCL_PROTO", "Simple,LL128"), how)) == set()
	}
	found(object.union(setting("NCCL_PROTO", "simple"), {"resources": {"vpc.amazonaws.com/efa": "4"}})) == set()
	found(object.union(setting("NCCL_TOPO_FILE", "/opt/microsoft/ndv5-topo.xml"), {"variables": {"NCCL_IB_PCI_RELAXED_ORDERING": "1"}})) == set()
	found(setting("NCCL_PROTO", "Simple,LL128")) == {["NCCL_PROTO", "low"]}
}

test_silent if {
	found(pod) == set()
	found(setting("NCCL_DEBUG", "WARN")) == set()
	found(object.union(setting("NCCL_P2P_DISABLE", "1"), {"cpu_only": true})) == set()
	found(more({"nodes": 2, "command": ["torchrun", "--master-addr=train-0.train"]})) == set()
}

test_unresolvable if {
	unknown := more({"unknown": {"variables[NCCL_P2P_DISABLE]": "${X}"}})
	found(unknown) == set()
	open(unknown) == 1
}
