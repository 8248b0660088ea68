package gpudoctor.rules.cuda_driver_too_old_test

import data.gpudoctor.rules.cuda_driver_too_old

runtime(version) := {
	"kind": "libcudart",
	"path": "/venv/nvidia/cuda_runtime/lib/libcudart.so",
	"version": version,
	"found_by": "python",
}

# machine has a driver that serves a version of CUDA, and these libraries.
machine(served, libraries) := {
	"gpus": {
		"nvml": "ok",
		"driver": {"cuda_version": served},
		"devices": [{"address": "0000:01:00.0", "vendor": "nvidia", "in_pci": true, "in_nvml": true}],
	},
	"libraries": {"files": libraries},
}

severities(document) := {object.get(f, "severity", "high") |
	some f in cuda_driver_too_old.findings with input as document
}

# A toolkit that lies beside is used by nobody.
test_silent_on_a_toolkit_that_is_not_loaded if {
	severities(machine("12.4", [object.union(runtime("13.0.88"), {"found_by": "toolkit"})])) == set()
}

compat := {"kind": "libcuda", "path": "/usr/local/cuda/compat/libcuda.so.1", "version": "580.65.06", "compat": true}

test_compat_serves if {
	severities(machine("12.4", [runtime("13.0.88"), object.union(compat, {"loads": true})])) == set()
	some f in cuda_driver_too_old.findings with input as machine("12.4", [runtime("13.0.88"), compat])
	contains(f.message, "the loader does not use it")
}

test_probe_decides if {
	document := object.union(machine("12.4", [runtime("13.0.88")]), {"transfers": {"driver_version": "13.0"}})
	severities(document) == set()
}

test_fires_on_nccl_for_a_newer_cuda if {
	nccl := {"kind": "libnccl", "path": "/x/libnccl.so.2", "version": "2.28.9+cuda13.0", "found_by": "python"}
	some f in cuda_driver_too_old.findings with input as machine("12.4", [nccl])
	contains(f.message, "built for CUDA 13")
}

test_unresolvable if count(cuda_driver_too_old.missing) == 1 with input as {}

said(id, text, fields) := {"logs": {"messages": [{"id": id, "program": "x", "role": "cause", "text": text, "fields": fields, "source": "app.log", "line": 1, "order": 2}]}}

test_a_log_says_it if {
	text := "CUDA error: CUDA driver version is insufficient for CUDA runtime version"
	document := object.union(said("cuda-insufficient-driver", text, {}), {
		"gpus": {"driver": {"cuda_version": "11.4"}},
		"software": [{"name": "torch", "version": "2.7.0+cu128"}, {"name": "cuda-runtime", "version": "12.8.57"}],
	})
	some f in cuda_driver_too_old.findings with input as document
	[f.severity, f.confidence] == ["critical", "confirmed"]
	f.params == {"cuda": 12, "driver": 525}
	contains(f.message, "supports CUDA 11.4")
	some g in cuda_driver_too_old.findings with input as said("nccl-cuda-driver-too-old", text, {"error": "35"})
	g.params == {}
	some h in cuda_driver_too_old.findings with input as said("container-cuda-requirement", "unsatisfied condition: cuda>=12.4", {"wanted": "12.4"})
	h.params.cuda == 12
}

test_804_in_a_log if {
	some f in cuda_driver_too_old.findings with input as said("cuda-compat-unsupported", "Error 804: forward compatibility was attempted on non supported HW", {})
	[f.confidence, f.remedies[0]] == ["likely", "upgrade-driver"]
}

bare := {"kind": "docker-run", "source": "a.txt", "line": 1}

test_possible_in_a_container_without_gpus if {
	document := object.union(said("cuda-insufficient-driver", "CUDA driver version is insufficient for CUDA runtime version", {}), {"launches": [bare]})
	some f in cuda_driver_too_old.findings with input as document
	f.confidence == "possible"
}

packages(list) := {
	"gpus": {"driver": {"cuda_version": "12.8"}},
	"software": [{"name": name, "version": version, "manager": "pip", "source": "a.txt", "line": 1} | some name, version in list],
}

test_packages_tell_it if {
	every list in [{"torch": "2.9.0+cu130"}, {"nvidia-cuda-runtime": "13.0.96", "nvidia-nccl-cu13": "2.28.9"}] {
		some f in cuda_driver_too_old.findings with input as packages(list)
		[f.severity, f.confidence] == ["critical", "likely"]
		f.params.cuda == 13
	}
	every list in [{"torch": "2.6.0+cu124"}, {"nvidia-nccl-cu12": "2.21.5", "nvidia-nccl-cu13": "2.28.9"}] {
		count(cuda_driver_too_old.findings) == 0 with input as packages(list)
	}
}

test_graphs_need_a_driver if {
	refused := said("nccl-cuda-graphs-unsupported", "NCCL cannot be captured in a graph", {})
	some f in cuda_driver_too_old.findings with input as object.union(refused, {"gpus": {"driver": {"version": "450.80.02"}}})
	[f.subject, f.confidence] == ["driver", "confirmed"]
	count(cuda_driver_too_old.findings) == 0 with input as object.union(refused, {"gpus": {"driver": {"version": "510.47.03"}}})
}

# built_with is a package of NCCL for a CUDA, beside a driver.
built_with(version, driver) := {
	"gpus": {"driver": {"version": driver}},
	"software": [{"name": "libnccl2", "version": version, "manager": "dpkg", "source": "a.txt", "line": 1}],
}

test_nccl_for_a_newer_cuda_than_the_driver_serves if {
	failed := {"logs": {"messages": [{
		"id": "nccl-unhandled-cuda-error", "program": "nccl", "role": "category", "text": "unhandled cuda error", "source": "a", "line": 1, "order": 0,
		"count": 1, "ranks": 1,
	}]}}
	every pair in [["2.1.2-1+cuda9.0", "375.66"], ["2.21.5-1+cuda12.4", "470.82.01"]] {
		some f in cuda_driver_too_old.findings with input as object.union(built_with(pair[0], pair[1]), failed)
		[f.severity, f.confidence, f.remedies[0]] == ["critical", "likely", "upgrade-driver"]
		some g in cuda_driver_too_old.findings with input as built_with(pair[0], pair[1])
		g.severity == "low"
	}
	every pair in [["2.9.8-1+cuda10.2", "440.33.01"]] {
		count(cuda_driver_too_old.findings) == 0 with input as object.union(built_with(pair[0], pair[1]), failed)
	}
}
