package gpudoctor.lib.image_files_test

import data.gpudoctor.lib.image_files

layer := {"index": 2, "digest": "sha256:ab", "command": "RUN x"}

test_layer if {
	image_files.layer({"layer": layer}) == " (layer 2: RUN x)"
	image_files.layer({"layer": {"index": 3}}) == " (layer 3)"
	image_files.layer({}) == ""
}

test_place if {
	image_files.place({"path": "/a", "layer": layer}) == "/a, layer 2 sha256:ab"
	image_files.place({"path": "/a", "real_path": "/b"}) == "/b"
}

test_evidence if {
	image_files.evidence({"path": "/a"}) == {"fact": "libraries.files[/a].version", "value": "", "source": "/a"}
	image_files.package_evidence({"name": "torch", "path": "/a", "version": "2"}) == {"fact": "libraries.packages[torch].version", "value": "2", "source": "/a"}
}

document := {"libraries": {"files": [
	{"kind": "libnccl", "path": "/p/libnccl.so.2", "real_path": "/p/libnccl.so.2.18.3", "version": "2.18.3"},
	{"kind": "libnccl", "path": "/l/libnccl.so.2", "real_path": "/p/libnccl.so.2.18.3", "version": "2.18.3", "loads": true},
	{"kind": "libcuda", "path": "/s/libcuda.so", "stub": true},
	{"kind": "libnvidia-ml", "path": "/e/libnvidia-ml.so.1", "empty": true},
	{"kind": "libcudart", "path": "/c/libcudart.so.12", "version": "12.4.127"},
]}}

test_kinds if image_files.kinds == {"libnccl", "libcudart"} with input as document

test_copies if {
	some [_, l] in image_files.copies("libnccl") with input as document
	l.loads
	count(image_files.copies("libnccl")) == 1 with input as document
}

test_runtimes if {
	some r in image_files.runtimes with input as document
	r.release == [12, 4, 127]
}

test_cuda_major if {
	image_files.cuda_major("2.26.2+cuda12.2") == 12
	image_files.cuda_major("torch 2.3.0+cu118") == 11
	image_files.cuda_major("nvidia-nccl-cu12 2.26.2") == 12
	not image_files.cuda_major("2.26.2")
}

test_of_target if {
	image_files.of_target("driver", "550").source == "t.json" with input as {"target": {"source": "t.json"}}
	image_files.of_target("driver", "550").source == "--target" with input as {"target": {}}
}
