package gpudoctor.rules.job_shm_test

import data.gpudoctor.rules.job_shm

found(more) := all if all := {f.grade | some f in job_shm.findings} with input as {"launches": [pod(more)]}
pod(more) := object.union({"kind": "kubernetes", "gpus": 8, "source": "pod.yaml", "line": 3}, more)

test_fires if found({"shm_mounted": true, "mounts": ["emptyDir:/dev/shm"]}) == {"disk"}
test_silent if found({"variables": {"NCCL_FASTRAK_CTRL_DEV": "eth0"}}) == set()
test_unresolvable if count(job_shm.missing) == 1 with input as {"launches": [pod({"unknown": {"ipc": "${X}"}})]}
