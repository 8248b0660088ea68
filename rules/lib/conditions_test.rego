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
