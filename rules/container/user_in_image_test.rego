package gpudoctor.rules.user_in_image_test

import data.gpudoctor.rules.user_in_image as r

image(user) := {
	"profile": "image", "image": {"form": "oci-layout", "environment": "configuration", "user": user},
	"libraries": {"files": [{"kind": "libibverbs", "path": "/usr/lib/libibverbs.so.1", "found_by": "ld_cache"}]},
}

test_silent if {
	count(r.findings) == 0 with input as image("0:0")
	count(r.findings) == 0 with input as object.union(image("1000"), {"libraries": {"files": []}})
}

test_unresolvable if {
	count(r.missing) == 1 with input as {"image": {"form": "oci-layout", "environment": "configuration"}}
}
