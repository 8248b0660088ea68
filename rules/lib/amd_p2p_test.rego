package gpudoctor.lib.amd_p2p_test

import data.gpudoctor.lib.amd_p2p

radeon(mode) := {"gpus": {"devices": [{"address": "0000:03:00.0", "vendor": "amd", "name": "AMD Radeon AI PRO R9700"}]}, "iommu": {"mode": mode}}

test_the_iommu_of_radeon_cards if {
	"the IOMMU" in amd_p2p.speaks with input as radeon("passthrough")
	"the IOMMU" in amd_p2p.cleared with input as radeon("translated")
	amd_p2p.remedies[1] == "iommu-remap" with input as radeon("passthrough")
	not "iommu-remap" in amd_p2p.remedies with input as radeon("translated")
}
