package gpudoctor.lib.setting_rows_test

import data.gpudoctor.lib.setting_rows

test_nothing_is_known if {
	every name in ["efa", "cxi", "guest", "no-plugin", "cause-said"] {
		not setting_rows.holds(name, "1") with input as {}
	}
}

# gpus_of_the_host is a container on a machine with two GPUs, of which it has none.
gpus_of_the_host := {
	"profile": "image",
	"container": {"inside": true, "runtime": "docker", "device_nodes": []},
	"gpus": {"nvml": "not-found", "devices": [{"address": "0000:01:00.0", "vendor": "nvidia"}, {"address": "0000:02:00.0", "vendor": "nvidia"}]},
	"pci": {"devices": []},
}

test_image if {
	every name in ["image-judged"] {
		setting_rows.holds(name, "0") with input as {"profile": "image", "image": {"form": "oci-layout"}}
		setting_rows.holds(name, "0") with input as {"profile": "image"}
		setting_rows.holds(name, "0") with input as {"profile": "launch", "launches": [{"kind": "dockerfile"}]}
		not setting_rows.holds(name, "0") with input as {"profile": "training", "image": {"form": "oci-layout"}}
	}
	not setting_rows.holds("image-judged", "0") with input as gpus_of_the_host
}
