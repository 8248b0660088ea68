package gpudoctor.rules.job_network_test

import data.gpudoctor.rules.job_network

pod(more) := object.union({"kind": "kubernetes", "variables": {"NCCL_SOCKET_IFNAME": "ens3"}, "source": "pod.yaml", "line": 3}, more)

found(l) := all if all := {f.subject | some f in job_network.findings} with input as {"launches": [l]}

test_fires if found({"kind": "docker-run", "gpus": -1, "nodes": 2, "source": "run.sh", "line": 1}) == {"network"}

# A pod's own network is not the host's.
test_silent if found(pod({"variables": {"NCCL_SOCKET_IFNAME": "eth0"}})) == set()

test_unresolvable if count(job_network.missing) == 1 with input as {"launches": [pod({"unknown": {"network": "${X}"}})]}
