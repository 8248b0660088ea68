package gpudoctor.lib.numa_calls_test

import data.gpudoctor.lib.numa_calls

refused(settings) := {"container": {"get_mempolicy": "EPERM"}, "env": {"variables": [{"name": name, "value": value, "source": "environment", "effective": true} | some name, value in settings]}}

test_forbidden if {
	numa_calls.forbidden with input as refused({})
	not numa_calls.forbidden with input as refused({"NCCL_CUMEM_HOST_ENABLE": "0"})
	not numa_calls.forbidden with input as {"container": {"get_mempolicy": "ok"}}
	not numa_calls.forbidden with input as {}
}

# tried is a container whose seccomp filter denies each call, with so many GPUs.
tried(gpus, errno) := {
	"gpus": {"nvml": "ok", "devices": [{"address": sprintf("0000:%02x:00.0", [i]), "vendor": "nvidia", "in_nvml": true} | some i in [1, 2]; i <= gpus]},
	"container": {
		"get_mempolicy": errno,
		"attempts": {name: {"outcome": "refused", "call": name, "errno": errno} | some name in ["set_mempolicy", "mbind", "move_pages"]},
	},
}

test_tried_is_told_with_one_gpu if {
	some f in numa_calls.found with input as tried(1, "EPERM")
	f.severity == "info"
	f.confidence == "confirmed"
	f.remedies == ["add-sys-nice"]
	contains(f.message, "get_mempolicy, mbind and set_mempolicy: EPERM")
	count(f.evidence) == 5
}

test_a_filter_that_kills if {
	some f in numa_calls.found with input as tried(2, "SIGSYS")
	contains(f.message, "SIGSYS")
}

test_a_kernel_without_numa if count(numa_calls.found) == 0 with input as tried(2, "ENOSYS")

test_silent_without_gpus if count(numa_calls.found) == 0 with input as tried(0, "EPERM")

# Docker's filter denies move_pages whatever the capabilities: NCCL does not call it.
test_only_move_pages if {
	machine := object.union(tried(2, "EPERM"), {"container": {"get_mempolicy": "ok", "attempts": {"set_mempolicy": {"outcome": "ok"}, "mbind": {"outcome": "ok"}}}})
	count(numa_calls.found) == 0 with input as machine
}

test_another_filter if {
	machine := object.union(tried(2, "EPERM"), {"container": {"capabilities": ["SYS_NICE"]}})
	some f in numa_calls.found with input as machine
	f.remedies == ["other"]
}
