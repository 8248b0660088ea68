package gpudoctor.rules.pcie_atomics_test

import data.gpudoctor.rules.pcie_atomics

gpu(vendor) := {"gpus": {"devices": [{"address": "0000:03:00.0", "vendor": vendor}]}}

test_unresolvable_without_kernel_log if {
	count(pcie_atomics.missing) == 1 with input as gpu("amd")
	count(pcie_atomics.missing) == 0 with input as object.union(gpu("amd"), {"kernel_log": {"events": []}})
}

test_not_applicable if {
	pcie_atomics.not_applicable == {"no AMD GPU"} with input as gpu("nvidia")
	count(pcie_atomics.not_applicable) == 0 with input as gpu("amd")
}
