package gpudoctor.lib.conditions_platform_test

import data.gpudoctor.lib.conditions_platform

test_platform if {
	"amd_present" in conditions_platform.holds with input as {"gpus": {"devices": [{"vendor": "amd"}]}}
	"guest" in conditions_platform.holds with input as {"host": {"virtualization": {"guest": true}}}
	not "guest" in conditions_platform.holds with input as {"host": {"virtualization": {"guest": false}}}
	["iommu_vendor", "intel"] in conditions_platform.values with input as {"host": {"cpu": {"vendor": "GenuineIntel"}}}
}
