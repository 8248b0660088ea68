package gpudoctor.lib.image_files_test

import data.gpudoctor.lib.image_files

test_layer if image_files.layer({"layer": {"index": 3}}) == " (layer 3)"
test_of_target if image_files.of_target("driver", "550").source == "--target" with input as {"target": {}}
