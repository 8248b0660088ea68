package gpudoctor.rules.driver_not_loaded_test

import data.gpudoctor.rules.driver_not_loaded

bare(driver) := {
	"container": {"inside": false},
	"gpus": {"nvml": "error", "nvml_error": "DRIVER_NOT_LOADED", "devices": [{"address": "0000:01:00.0", "vendor": "nvidia"}]},
	"pci": {"devices": [object.union({"address": "0000:01:00.0", "vendor": "0x10de"}, driver)]},
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
