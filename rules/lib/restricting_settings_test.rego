package gpudoctor.lib.restricting_settings_test

import data.gpudoctor.lib.restricting_settings

set(name, value) := {"env": {"variables": [{"name": name, "value": value, "source": "environment", "effective": true}]}}

test_in_force if {
	restricting_settings.in_force == {"NCCL_P2P_DISABLE"} with input as set("NCCL_P2P_DISABLE", "1")
	restricting_settings.in_force == set() with input as set("NCCL_P2P_DISABLE", "0")
	restricting_settings.in_force == set() with input as set("NCCL_DEBUG", "INFO")
	restricting_settings.in_force == set() with input as {}
}

test_kind if {
	restricting_settings.kind("NCCL_P2P_DISABLE", {}) == {"id": "restricts"} with input as set("NCCL_P2P_DISABLE", "1")
	restricting_settings.kind("NCCL_P2P_DISABLE", {"inert": true}) == {} with input as set("NCCL_P2P_DISABLE", "1")
	restricting_settings.kind("NCCL_DEBUG", {}) == {} with input as set("NCCL_P2P_DISABLE", "1")
}
