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
		"free_bytes": free,
	}},
}

severities(document) := {f.severity | some f in shm_too_small.findings with input as document}

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
	contains(f.message, "NVLink connects all GPUs")
	absent := object.union(object.union(machine(2, 1, 1), pairs), {"container": {"shm_mounted": false}})
	severities(object.remove(absent, ["x"])) == {"medium"}
}

# What logs and launches tell.
message(id, role, fields) := {"id": id, "program": "x", "role": role, "text": id, "fields": fields, "source": "a.log", "line": 4, "order": 2, "count": 1}

run := {"kind": "docker-run", "name": "train", "gpus": -1, "source": "a.txt", "line": 1}

ranks := {"kind": "torchrun", "processes": 4, "source": "a.txt", "line": 2}

told(messages, started) := {"logs": {"messages": messages}, "launches": started}

# judged are the findings of the kind that is told first, as first_of has it.
judged(document) := {[f.severity, f.confidence] | some f in found; object.get(f, "id", "") in {"", first}} if {
	found := shm_too_small.findings with input as document
	first := [kind | some kind in ["stated", "hinted", "implied", "full", "launch", ""]; kind in ({f.id | some f in found} | {""})][0]
}

test_fires_as_the_program_says if {
	document := told([message("nccl-shm-no-space", "cause", {})], [run])
	judged(document) == {["critical", "confirmed"]}
	some f in shm_too_small.findings with input as document
	f.remedies == ["increase-shm", "share-ipc", "clear-shm"]
	count(f.messages) + count(f.evidence) == 2
}

test_fires_as_ray_warns if {
	judged(told([message("ray-shm-too-small", "cause", {"bytes": "67108864"})], [])) == {["high", "confirmed"]}
	judged(told([message("ray-shm-too-small", "cause", {"bytes": "17179869184"})], [])) == set()
}

test_fires_without_an_error if {
	judged(told([message("nccl-shm-create-failed", "category", {"segment": "/dev/shm/nccl-x"})], [])) == {["critical", "likely"]}
	judged(told([message("nccl-shm-create-failed", "category", {"error": "Permission denied"})], [])) == set()
}

test_fires_for_a_bus_error_with_more if {
	died := message("process-bus-error", "category", {})
	judged(told([died], [run])) == {["critical", "likely"]}
	judged(told([died, message("bus-error-in-nccl", "category", {})], [])) == {["critical", "likely"]}
	judged(told([died, message("no-space-left", "category", {})], [])) == {["critical", "likely"]}
	judged(object.union(told([died], []), {"container": {"shm": {"size_bytes": 64 * mib, "free_bytes": 0}}})) == {["critical", "likely"]}
}

# A bus error, or a full device, alone is not enough.
test_possible_alone if {
	judged(told([message("process-bus-error", "category", {})], [])) == {["medium", "possible"]}
	judged(told([message("no-space-left", "category", {})], [])) == {["low", "possible"]}
	judged(told([message("no-space-left", "category", {})], [run])) == {["critical", "likely"]}
}

test_launch_by_itself if {
	judged({"launches": [run, ranks]}) == {["low", "possible"]}
	judged(told([message("nccl-unhandled-system-error", "category", {})], [run, ranks])) == {["high", "possible"]}
	judged(told([message("nccl-invalid-usage", "category", {})], [run, ranks])) == {["medium", "possible"]}
	judged(told([message("torch-out-of-memory", "cause", {})], [run, ranks])) == {["low", "possible"]}
	judged({"launches": [object.union(run, {"shm_bytes": 64 * mib}), ranks]}) == {["low", "possible"]}
}

test_silent_for_launches if {
	judged({"launches": [run]}) == set()
	judged({"launches": [object.union(run, {"ipc": "host"}), ranks]}) == set()
	judged({"launches": [object.union(run, {"shm_bytes": 1024 * mib}), ranks]}) == set()
	judged(object.union({"launches": [run, ranks]}, {"container": {"shm": {"size_bytes": 2048 * mib, "free_bytes": 2048 * mib}}})) == set()
}

test_size_alone if {
	document := {"launches": [ranks], "container": {"shm": {"size_bytes": 64 * mib, "free_bytes": 64 * mib}}}
	judged(document) == {["medium", "likely"]}
}

test_advice_for_what_is_told if {
	stated := [message("nccl-shm-no-space", "cause", {})]
	remedies(object.union(told(stated, []), {"container": {"inside": false}})) == ["remount-shm", "clear-shm", "increase-shm"]
	remedies(object.union(told(stated, []), {"container": {"shm": {"size_bytes": 2048 * mib, "free_bytes": 0}}})) == ["clear-shm", "increase-shm", "share-ipc"]
}

# A failed call of the system without a word is shared memory where that is known
# to be small or full, and nothing where another line tells more.
test_wordless_system_error if {
	failed := message("nccl-unhandled-system-error", "category", {})
	judged(told([failed], [run])) == {["high", "possible"]}
	judged(told([failed], [])) == set()
	judged(told([failed, object.union(message("nccl-socket-failed", "category", {}), {"program": "nccl"})], [run])) == set()
	judged(object.union(told([failed], []), {"container": {"shm": {"size_bytes": 2048 * mib, "free_bytes": 0}}})) == {["high", "likely"]}
}

# NVIDIA's images say at their start that the default is in force.
test_default_that_the_image_names if {
	note := message("ngc-shm-default", "setting", {})
	judged(told([note], [])) == set()
	judged(told([note, object.union(message("nccl-unhandled-system-error", "category", {}), {"order": 1, "line": 2})], [])) == {["high", "possible"]}
}

attempted(document, attempt) := object.union(document, {"container": {"attempts": {"shared_memory": attempt}}})

refused(errno) := {"outcome": "refused", "call": "open", "errno": errno}

test_a_refused_file if {
	some f in shm_too_small.findings with input as attempted(machine(2, 2048 * mib, 2048 * mib), refused("EACCES"))
	f.severity == "high"
	f.confidence == "confirmed"
	contains(f.message, "open gives EACCES")
	contains(f.message, "may not write")
}

test_a_refused_file_without_space_in_a_large_one if {
	some f in shm_too_small.findings with input as attempted(machine(2, 2048 * mib, 2048 * mib), refused("ENOSPC"))
	f.remedies == ["clear-shm"]
}

test_refused_for_its_size if {
	document := attempted(machine(2, mib, mib), {"outcome": "refused", "call": "fallocate", "errno": "ENOSPC", "bytes": 9637888})
	findings := shm_too_small.findings with input as document
	{[f.severity, f.confidence] | some f in findings} == {["high", "confirmed"]}
	count(findings) == 1
}

test_refused_by_a_limit if {
	{f.remedies | some f in shm_too_small.findings with input as attempted(machine(2, 2048 * mib, 2048 * mib), refused("EMFILE"))} == {["raise-process-limits"]}
	{f.remedies | some f in shm_too_small.findings with input as attempted(machine(2, 2048 * mib, 2048 * mib), refused("ENOMEM"))} == {["free-memory"]}
}

test_read_only_is_told_once if {
	document := object.union(machine(2, mib, mib), {"container": {"shm": {"read_only": true}}})
	count(shm_too_small.findings) == 1 with input as attempted(document, refused("EROFS"))
}

test_an_attempt_that_worked if {
	count(shm_too_small.findings) == 0 with input as attempted(machine(8, 2048 * mib, 2048 * mib), {"outcome": "ok", "bytes": 9637888})
}

test_unresolvable_when_tried_without_an_outcome if {
	document := object.union(machine(2, 2048 * mib, 2048 * mib), {"container": {"attempts": {"mbind": {"outcome": "ok"}}}})
	some m in shm_too_small.missing with input as document
	m.fact == "container.attempts.shared_memory"
	count(shm_too_small.missing) == 0 with input as machine(2, 2048 * mib, 2048 * mib)
}

test_refused_with_an_unknown_error if {
	document := attempted(machine(2, 2048 * mib, 2048 * mib), {"outcome": "refused"})
	some f in shm_too_small.findings with input as document
	contains(f.message, "a call gives an error")
}
