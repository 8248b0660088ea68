package gpudoctor.rules.transfer_failed_test

import data.gpudoctor.rules.transfer_failed

a := "0000:01:00.0"
b := "0000:02:00.0"

machine(transfers) := {
	"gpus": {"devices": [{"address": x, "vendor": "nvidia"} | some x in [a, b]]},
	"transfers": object.union({"outcome": "ok", "devices": [], "transfers": []}, transfers),
}

transfer(test, source, destination, outcome) := {"test": test, "source": source, "destination": destination, "outcome": outcome}

test_host_memory if {
	some f in transfer_failed.findings with input as machine({"transfers": [transfer("host-to-device", "node0", a, "corrupt")]})
	f.affects == [a]
	f.remedies[0] == "reset-gpu"
}

test_device if {
	some g in transfer_failed.findings with input as machine({"devices": [{"address": a, "outcome": "hang"}]})
	g.about.became == "hung"
}

test_probe if {
	stopped := {"outcome": "error", "stage": "cuInit"}
	some f in transfer_failed.findings with input as machine(object.union(stopped, {"exit_code": 0, "cause": "exited"}))
	[f.about.stage, f.about.exit] == ["cuInit", [0]]
	not "nccl-p2p-disable" in f.remedies
	some g in transfer_failed.findings with input as machine(object.union(stopped, {"signal": "SIGSEGV"}))
	g.about.signal == "SIGSEGV"
	some i in transfer_failed.findings with input as machine({"outcome": "hang", "stage": ""})
	i.about.became == "hung"
}

test_no_gpu_is_no_failure if {
	none := {"gpus": {"devices": []}, "transfers": {"outcome": "error", "error_code": 100}}
	count(transfer_failed.findings) == 0 with input as none
}
