package gpudoctor.lib.iommu_test

import data.gpudoctor.lib.iommu

test_vendor if {
	iommu.params == {"vendor": "amd"} with input as {"iommu": {"vendor": "amd"}}
	iommu.vendor == "amd" with input as {"host": {"cpu": {"vendor": "AuthenticAMD"}}}
	iommu.vendor == "intel" with input as {"host": {"cpu": {"model": "Intel(R) Xeon(R) Platinum 8480+"}}}
	iommu.vendor == "amd" with input as {"host": {"cpu": {"model": "AMD EPYC 7402P"}}}
}

asked(words) := {"iommu": {"command_line": words}, "host": {"command_line": ["quiet"]}}

test_command_line if {
	iommu.passing == {"iommu=pt"} with input as asked(["iommu=pt"])
	iommu.off == {"intel_iommu=sm_on,off"} with input as asked(["intel_iommu=sm_on,off"])
}
