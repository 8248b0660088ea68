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
		[attempted(machine(2, 1, 1), "ENOSPC"), ["small", "high", "confirmed", ["increase-shm", "share-ipc"]]],
		[attempted(with_container(machine(2, 1, 1), {"shm": {"read_only": true}}), "EROFS"), ["read-only", "high", "confirmed", ["increase-shm", "share-ipc"]]],
		[attempted(machine(2, 2048, 2048), "ENOSPC"), ["refused", "high", "confirmed", ["clear-shm"]]],
		[attempted(machine(2, 2048, 2048), "EMFILE"), ["refused", "high", "confirmed", ["raise-process-limits"]]],
		[attempted(machine(2, 2048, 2048), "ENOMEM"), ["refused", "high", "confirmed", ["free-memory"]]],
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

# What logs and launches tell.
message(id, role, fields) := {"id": id, "program": "nccl", "role": role, "text": id, "fields": fields, "source": "a.log", "line": 4, "order": 2, "count": 1}
category(ids) := {"logs": {"messages": [message(id, "category", {}) | some id in ids]}}
cause(id, fields) := {"logs": {"messages": [message(id, "cause", fields)]}}

run := {"kind": "docker-run", "name": "train", "gpus": -1, "source": "a.txt", "line": 1}
ranks := {"kind": "torchrun", "processes": 4, "source": "a.txt", "line": 2}

started(ls) := {"launches": ls}
shm(size, free) := {"container": {"shm": {"size_bytes": size * mib, "free_bytes": free * mib}}}
grades(document) := {object.get(f, "grade", f.id) | some f in shm_too_small.findings with input as document}

test_told if {
	every row in [
		[[cause("ray-shm-too-small", {"bytes": "67108864"})], {"warned"}],
		[[cause("ray-shm-too-small", {"bytes": "17179869184"})], set()],
		[[category(["nccl-shm-create-failed"])], {"unnamed"}],
		[[cause("nccl-shm-create-failed", {"error": "Permission denied"})], set()],
		[[category(["process-bus-error", "stack-in-nccl"])], {"bus-error"}],
		[[category(["process-bus-error", "no-space-left"])], {"bus-error", "full-alone"}],
		[[category(["no-space-left"]), started([run])], {"full"}],
		[[category(["no-space-left", "python-semaphore-refused"])], {"full"}],
		# A failed call of the system without a word is shared memory where that is known to be
		# small or full, and nothing where another line tells more.
		[[category(["nccl-unhandled-system-error"]), started([run])], {"wordless"}],
		[[category(["nccl-unhandled-system-error"])], set()],
		[[category(["nccl-unhandled-system-error"]), shm(2048, 0)], {"wordless"}],
		[[started([run, ranks]), shm(2048, 2048)], set()],
	] {
		grades(object.union_n(row[0])) == row[1]
	}
}

test_asks if {
	"container.shm" in shm_too_small.asks with input as machine(2, 0, 0)
}
