package gpudoctor.rules.shm_too_small_test

import data.gpudoctor.rules.shm_too_small

mib := 1024 * 1024

# machine has so many GPUs, and a /dev/shm of a size with some of it free.
machine(gpus, size, free) := {
	"gpus": {"nvml": "ok", "devices": [
	{"address": sprintf("0000:%02x:00.0", [i]), "vendor": "nvidia", "in_pci": true, "in_nvml": true} |
		some i in numbers.range(1, gpus)
	]},
	"container": {"inside": true, "shm_mounted": true, "shm": {"path": "/dev/shm", "size_bytes": size * mib, "free_bytes": free * mib}},
}

with_container(document, changes) := object.union(document, {"container": changes})
joined(document) := object.union(document, {"links": {"pairs": [{"a": "0000:01:00.0", "b": "0000:02:00.0", "kind": "gpu-gpu", "nvlinks": 18}]}})
attempted(document, errno) := with_container(document, {"attempts": {"shared_memory": {"outcome": "refused", "call": "open", "errno": errno}}})

only(document) := f if {
	found := shm_too_small.findings with input as document
	count(found) == 1
	some f in found
}

test_sizes if {
	every row in [
		[machine(8, 512, 512), ["small", "low", "likely", ["increase-shm", "share-ipc"]]],
		[machine(8, 900, 900), ["small", "low", "likely", ["increase-shm", "share-ipc"]]],
		[with_container(machine(2, 64, 64), {"runtime": "apptainer"}), ["small", "high", "likely", ["remount-shm"]]],
		[with_container(joined(machine(2, 1, 1)), {"shm": {"read_only": true}}), ["read-only", "medium", "likely", ["increase-shm", "share-ipc", "nccl-shm-disable"]]],
		[with_container(machine(1, 1, 1), {"shm": {"read_only": true}}), ["read-only", "low", "likely", ["increase-shm", "share-ipc"]]],
		# What was really tried.
		[attempted(machine(2, 1, 1), "ENOSPC"), ["small", "high", "likely", ["increase-shm", "share-ipc"]]],
		[attempted(with_container(machine(2, 1, 1), {"shm": {"read_only": true}}), "EROFS"), ["read-only", "high", "likely", ["increase-shm", "share-ipc"]]],
		[attempted(machine(2, 2048, 2048), "ENOSPC"), ["refused", "high", "likely", ["clear-shm", "free-memory", "raise-process-limits"]]],
	] {
		f := only(row[0])
		[f.grade, f.severity, object.get(f, "confidence", "likely"), f.remedies] == row[1]
	}
	every document in [
		machine(8, 1024, 1024),
		with_container(machine(8, 2048, 2048), {"attempts": {"shared_memory": {"outcome": "ok", "bytes": 9637888}}}),
	] {
		count(shm_too_small.findings) == 0 with input as document
	}
}

run := {"kind": "docker-run", "name": "train", "gpus": -1, "source": "a.txt", "line": 1}
ranks := {"kind": "torchrun", "processes": 4, "source": "a.txt", "line": 2}

test_launch if {
	only({"launches": [run, ranks]}).id == "launch"
	count(shm_too_small.findings) == 0 with input as {"launches": [run, ranks], "container": {"shm": {"size_bytes": 2048 * mib}}}
}

test_asks if {
	"container.shm" in shm_too_small.asks with input as machine(2, 0, 0)
}
