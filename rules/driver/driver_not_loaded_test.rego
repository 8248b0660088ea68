package gpudoctor.rules.driver_not_loaded_test

import data.gpudoctor.rules.driver_not_loaded

test_unresolvable_without_logs if {
	count(driver_not_loaded.missing) == 1 with input as {"texts": [{"name": "notes.txt"}]}
	count(driver_not_loaded.missing) == 0 with input as {}
	count(driver_not_loaded.missing) == 0 with input as {"logs": {"messages": []}}
}

bare(driver) := {
	"container": {"inside": false},
	"gpus": {"nvml": "error", "nvml_error": "DRIVER_NOT_LOADED", "devices": [{"address": "0000:01:00.0", "vendor": "nvidia"}]},
	"pci": {"devices": [object.union({"address": "0000:01:00.0", "vendor": "0x10de"}, driver)]},
}

test_fires_without_a_driver if {
	some f in driver_not_loaded.findings with input as bare({})
	f.severity == "high"
	contains(f.message, "none is bound")
	some g in driver_not_loaded.findings with input as bare({"driver": "nouveau"})
	contains(g.message, "nouveau")
	two := object.union(bare({}), {"gpus": {"devices": [{"address": x, "vendor": "nvidia"} | some x in ["0000:01:00.0", "0000:02:00.0"]]}, "pci": {"devices": [{"address": x, "vendor": "0x10de"} | some x in ["0000:01:00.0", "0000:02:00.0"]]}})
	some h in driver_not_loaded.findings with input as two
	contains(h.message, "2 GPUs")
}

test_silent_where_no_driver_is_wanted if {
	count(driver_not_loaded.findings) == 0 with input as bare({"driver": "vfio-pci"})
	unasked := object.union(bare({"driver": "nouveau"}), {"gpus": {"nvml": "not-found", "nvml_error": "NOT_FOUND"}})
	count(driver_not_loaded.findings) == 0 with input as unasked
	inside := object.union(bare({}), {"container": {"inside": true}})
	count(driver_not_loaded.findings) == 0 with input as inside
}

test_fires_where_cuda_finds_no_device if {
	probed := object.union(bare({}), {"gpus": {"nvml": "not-found", "nvml_error": ""}, "transfers": {"error_code": 100}})
	count(driver_not_loaded.findings) == 1 with input as probed
}

test_not_applicable_without_a_gpu if {
	count(driver_not_loaded.not_applicable) == 1 with input as {"gpus": {"devices": []}, "pci": {"devices": []}}
	count(driver_not_loaded.not_applicable) == 0 with input as bare({"driver": "nvidia"})
}
