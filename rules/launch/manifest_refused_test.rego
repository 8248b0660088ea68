package gpudoctor.rules.manifest_refused_test

import data.gpudoctor.rules.manifest_refused

found(more) := all if all := {f.subject | some f in manifest_refused.findings} with input as {"launches": [pod(more)]}
pod(more) := object.union({"kind": "kubernetes", "source": "pod.yaml", "line": 3}, more)

gpu := "nvidia.com/gpu"

test_fires if {
	found({"requests": {gpu: "1"}, "resources": {gpu: "2"}}) == {gpu}
}

test_silent if {
	every more in [{"undefined_volumes": ["data"], "object": "JobSet/train/workers/main"}] {
		found(more) == set()
	}
}

test_unresolvable if count(manifest_refused.missing) == 1 with input as {"launches": [pod({"unknown": {"resources": "${X}"}})]}
