package gpudoctor.lib.numa_calls_test

import data.gpudoctor.lib.numa_calls

refused(settings) := {"container": {"get_mempolicy": "EPERM"}, "env": {"variables": [{"name": name, "value": value, "source": "environment", "effective": true} | some name, value in settings]}}

test_forbidden if {
	numa_calls.forbidden with input as refused({})
	not numa_calls.forbidden with input as refused({"NCCL_CUMEM_HOST_ENABLE": "0"})
	not numa_calls.forbidden with input as {"container": {"get_mempolicy": "ok"}}
	not numa_calls.forbidden with input as {}
}
