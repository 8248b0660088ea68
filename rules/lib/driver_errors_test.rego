package gpudoctor.lib.driver_errors_test

import data.gpudoctor.lib.driver_errors

test_classes if {
	driver_errors.code.SYSTEM_NOT_READY == 802
	driver_errors.class(802).name == "fabric"
	driver_errors.class(999).name == "other"
}

test_sets if {
	driver_errors.hardware == {214, 220, 226}
	driver_errors.in_gpu == {214, 226}
	driver_errors.untried == {2, 46, 200, 209, 217, 218, 221, 222, 801}
	driver_errors.judged == {34, 35, 100, 101, 304, 802, 803, 804}
	driver_errors.nvml.GPU_IS_LOST.remedies[0] == "reboot"
}
