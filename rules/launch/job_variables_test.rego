package gpudoctor.rules.job_variables_test

import data.gpudoctor.rules.job_variables

found(more) := all if all := {[f.subject, object.get(f, "severity", f.grade)] | some f in job_variables.findings} with input as {"profile": "launch", "launches": [pod(more)]}
pod(more) := object.union({"kind": "kubernetes", "name": "train", "gpus": 8, "source": "pod.yaml", "line": 3}, more)
severities(name, value, more) := {f[1] | some f in found(object.union(more, {"variables": {name: value}})); f[0] == name}

test_fires if {
	found({"nodes": 2, "command": ["torchrun", "--rdzv_endpoint", "127.0.0.1:29500"]}) == {["MASTER_ADDR", "itself"]}
	severities("NCCL_NET", "Socket", {"devices": ["/dev/infiniband"]}) == {"rdma"}
	severities("NCCL_IB_DISABLE", "1", {"resources": {"rdma/hca": "1"}}) == {"rdma"}
	severities("NCCL_SOCKET_IFNAMES", "eth0", {}) == {"unknown"}
	severities("NCCL_IB_DISABLE", "yes", {}) == {"word"}
}

# What concerns a single GPU or a benchmark is nothing.
test_severities if {
	severities("NCCL_P2P_DISABLE", "1", {}) == {"medium"}
	severities("NCCL_P2P_DISABLE", "1", {"gpus": 1}) | severities("NCCL_P2P_DISABLE", "1", {"command": ["all_reduce_perf"]}) == set()
	severities("NVIDIA_DRIVER_CAPABILITIES", "video", {"kind": "dockerfile"}) == set()
	severities("NCCL_PROTO", "LL128", {}) == {"low"}
}

script(exports, more) := all if all := {f.evidence[0].source | some f in job_variables.findings} with input as {
	"profile": "launch",
	"env": {"variables": [{"name": "NCCL_P2P_DISABLE", "value": value, "source": "job.sh", "line": 4, "effective": true} | some value in exports]},
	"launches": [{"kind": "slurm", "gpus": 8, "nodes": 2, "source": "job.sh", "line": 2}, object.union({"kind": "slurm", "command": ["python"], "source": "job.sh", "line": 6}, more)],
}

# What a script exports is said once, and what one command sets is of that command alone.
test_fires_for_scripts if {
	script(["1"], {}) == {"job.sh:4"}
	script(["1"], {"variables": {"NCCL_P2P_DISABLE": "1"}}) == {"job.sh:6"}
	script(["1", "0"], {}) | script(["1"], {"kind": "shell", "unknown": {"variables[NCCL_P2P_DISABLE]": "$X"}}) == set()
}

# What a provider documents is no misconfiguration.
test_silent if {
	severities("NCCL_PROTO", "simple", {"resources": {"vpc.amazonaws.com/efa": "4"}}) == set()
	found({"nodes": 2, "command": ["torchrun", "--master-addr=train-0.train"], "variables": {"NCCL_DEBUG": "WARN"}}) == set()
}

test_unresolvable if count(job_variables.missing) == 1 with input as {"launches": [pod({"unknown": {"variables[NCCL_P2P_DISABLE]": "${X}"}})]}
