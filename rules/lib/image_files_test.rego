package gpudoctor.lib.image_files_test

import data.gpudoctor.lib.image_files

layer := {"index": 2, "digest": "sha256:ab", "command": "RUN x"}

test_layer if {
	image_files.layer({"layer": layer}) == " (layer 2: RUN x)"
	image_files.layer({"layer": {"index": 3}}) == " (layer 3)"
	image_files.layer({}) == ""
}

test_of_target if {
	image_files.of_target("driver", "550").source == "t.json" with input as {"target": {"source": "t.json"}}
	image_files.of_target("driver", "550").source == "--target" with input as {"target": {}}
}
