package gpudoctor.lib.conditions_test

import data.gpudoctor.lib.conditions

test_interface_asked if {
	given := {"env": {"variables": [{"name": "NCCL_SOCKET_IFNAME", "value": "eth9", "effective": true}]}}
	"interface_asked" in conditions.holds with input as given
	["asked_interface", "eth9"] in conditions.values with input as given
	some ["interface_asked", fact] in conditions.shown with input as given
	fact.value == "eth9"
	not "interface_asked" in conditions.holds with input as {}
}

test_platform if {
	"amd_present" in conditions.holds with input as {"gpus": {"devices": [{"vendor": "amd"}]}}
	"guest" in conditions.holds with input as {"host": {"virtualization": {"guest": true}}}
	not "guest" in conditions.holds with input as {"host": {"virtualization": {"guest": false}}}
	["iommu_vendor", "intel"] in conditions.values with input as {"host": {"cpu": {"vendor": "GenuineIntel"}}}
}
