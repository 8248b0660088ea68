package gpudoctor.rules.mig_mode_test

import data.gpudoctor.rules.mig_mode

a := "0000:01:00.0"
b := "0000:02:00.0"

gpu(address, on) := {"address": address, "vendor": "nvidia", "mig": on}
machine(devices) := {"gpus": {"nvml": "ok", "devices": devices}}

test_not_applicable if {
	"no GPU" in mig_mode.not_applicable with input as machine([])
	mig_mode.not_applicable == {"no GPU here supports MIG"} with input as machine([{"address": a}])
}

test_a_job_that_is_given_instances if {
	named := {"env": {"variables": [{"name": "CUDA_VISIBLE_DEVICES", "value": "MIG-a,MIG-b", "source": "environment", "effective": true}]}}
	{f.severity | some f in mig_mode.findings} == {"medium"} with input as named
}

split_gpu := {"gpus": {"devices": [{"address": "0000:07:00.0", "vendor": "nvidia", "name": "A100", "mig": true}]}}

said(id, text) := {"logs": {"messages": [{"id": id, "program": "cuda", "role": "cause", "text": text, "source": "a", "line": 1, "order": 4}]}}

test_a_program_that_finds_no_gpu_beside_instances if {
	some f in mig_mode.findings with input as object.union(split_gpu, said("cuda-invalid-device", "CUDA error: invalid device ordinal"))
	f.severity == "critical"
	count(mig_mode.findings) == 0 with input as said("cuda-invalid-device", "CUDA error: invalid device ordinal")
}

test_a_name_of_an_instance_taken_for_a_number if {
	some f in mig_mode.findings with input as said("mig-name-refused", "ValueError: invalid literal for int() with base 10: 'MIG-2e782cfd'")
	f.severity == "critical"
}

test_invalid_usage_with_instances if {
	m := {"id": "nccl-invalid-usage", "program": "nccl", "role": "category", "text": "invalid usage", "source": "a.log", "line": 3, "order": 2, "count": 1}
	some f in mig_mode.findings with input as object.union(machine([gpu(a, true)]), {"logs": {"messages": [m]}})
	f.severity == "critical"
}
