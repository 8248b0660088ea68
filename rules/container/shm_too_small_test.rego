package gpudoctor.rules.shm_too_small_test

import data.gpudoctor.rules.shm_too_small

mib := 1024 * 1024

# machine has so many GPUs, and a /dev/shm of a size with some of it free.
machine(gpus, size, free) := {
	"gpus": {"nvml": "ok", "devices": [g |
		some i in numbers.range(1, gpus)
		g := {"address": sprintf("0000:%02x:00.0", [i]), "vendor": "nvidia", "in_pci": true, "in_nvml": true}
	]},
	"container": {"inside": true, "shm_mounted": true, "shm": {
		"path": "/dev/shm",
		"size_bytes": size,
		"used_bytes": size - free,
		"free_bytes": free,
	}},
}

severities(document) := {f.severity | some f in shm_too_small.findings with input as document}

# NCCL's own message in public reports names this size: 9637888 bytes.
test_connection_bytes if shm_too_small.connection_bytes == 9637888

test_fires_on_the_default_of_runtimes if {
	some f in shm_too_small.findings with input as machine(2, 64 * mib, 64 * mib)
	f.severity == "high"
	f.subject == "/dev/shm"
	contains(f.message, "64 MiB (the default of container runtimes)")
}

test_grades_by_need if {
	severities(machine(8, 256 * mib, 256 * mib)) == {"high"}
	severities(machine(8, 512 * mib, 512 * mib)) == {"medium"}
	severities(machine(8, 900 * mib, 900 * mib)) == {"low"}
	severities(machine(2, 512 * mib, 512 * mib)) == {"low"}
}

test_fires_when_full if {
	some f in shm_too_small.findings with input as machine(8, (512 * 1024) * mib, 10 * mib)
	f.severity == "high"
	contains(f.message, "files of earlier jobs")
}

test_fires_when_absent if {
	document := object.union(machine(2, 0, 0), {"container": {"shm_mounted": false}})
	some f in shm_too_small.findings with input as json.remove(document, ["container/shm"])
	f.severity == "high"
	contains(f.message, "not mounted")
}

test_fires_when_read_only if {
	document := object.union(machine(1, mib, mib), {"container": {"shm": {"read_only": true}}})
	severities(document) == {"low"}
}

test_one_gpu_is_low if severities(machine(1, 64 * mib, 64 * mib)) == {"low"}

test_silent_with_a_gibibyte if severities(machine(8, 1024 * mib, 1024 * mib)) == set()

test_silent_without_gpus if {
	document := machine(2, 64 * mib, 64 * mib)
	laptop := object.union(document, {"gpus": {"nvml": "not-found", "devices": []}, "container": {"inside": false}})
	severities(laptop) == set()
	shm_too_small.not_applicable with input as laptop
	count(shm_too_small.missing) == 0 with input as laptop
}

# Of eight GPUs that /sys shows, one was given to this container.
test_counts_what_was_given if {
	document := object.union(machine(8, 64 * mib, 64 * mib), {
		"gpus": {"nvml": "not-built"},
		"container": {"device_nodes": [{"path": "/dev/nvidia0", "access": "rw"}, {"path": "/dev/nvidiactl", "access": "rw"}]},
	})
	severities(document) == {"low"}
}

test_unresolvable_without_container if {
	document := json.remove(machine(2, 0, 0), ["container"])
	count(shm_too_small.missing) == 1 with input as document
	count(shm_too_small.missing) == 2 with input as {}
	count(shm_too_small.findings) == 0 with input as {}
}

test_unresolvable_without_size if {
	document := json.remove(machine(2, 0, 0), ["container/shm"])
	count(shm_too_small.missing) == 1 with input as document
}

remedies(document) := f.remedies if some f in shm_too_small.findings with input as document

# A container gets its size from its runtime, the machine's own /dev/shm is
# mounted, and one that is large and full holds what ended jobs left.
test_advice_fits_the_place if {
	remedies(machine(2, 64 * mib, 64 * mib)) == ["increase-shm", "share-ipc"]
	remedies(object.union(machine(2, 64 * mib, 64 * mib), {"container": {"inside": false}})) == ["remount-shm"]
	remedies(object.union(machine(2, 64 * mib, 64 * mib), {"container": {"runtime": "apptainer"}})) == ["remount-shm"]
	remedies(machine(8, (512 * 1024) * mib, 10 * mib)) == ["clear-shm"]
}

# NVLinked GPUs exchange nothing through shared memory.
test_nvlink_needs_less if {
	pairs := {"links": {"pairs": [{"a": "0000:01:00.0", "b": "0000:02:00.0", "kind": "gpu-gpu", "nvlinks": 18}]}}
	joined := object.union(machine(2, 64 * mib, 64 * mib), pairs)
	severities(joined) == {"medium"}
	remedies(joined) == ["increase-shm", "share-ipc", "nccl-shm-disable"]
	severities(object.union(machine(2, 512 * mib, 512 * mib), pairs)) == {"low"}
	some f in shm_too_small.findings with input as joined
	contains(f.message, "NVLink joins all GPUs")
	absent := object.union(object.union(machine(2, 1, 1), pairs), {"container": {"shm_mounted": false}})
	severities(object.remove(absent, ["x"])) == {"medium"}
}
