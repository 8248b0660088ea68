package gpudoctor.rules.pcie_atomics_test

import data.gpudoctor.rules.pcie_atomics

gpu(vendor) := {"gpus": {"devices": [{"address": "0000:03:00.0", "vendor": vendor}]}}

test_not_applicable if {
	pcie_atomics.not_applicable == {"no AMD GPU"} with input as gpu("nvidia")
	count(pcie_atomics.not_applicable) == 0 with input as gpu("amd")
}
