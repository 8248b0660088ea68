# GPU conditions for findings of messages. A row of the message catalog can limit its finding, or its severity, to
# conditions by name (when, unless), and can quote a value of the facts ({@name}). Each name is defined once and holds
# only where the facts show it: what is not known does not hold. These conditions are about GPUs and their drivers.
package gpudoctor.lib.conditions_gpu

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.iommu
import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.thresholds

holds contains "guest" if facts.is_guest == true
holds contains "texts_given" if count(input.texts) > 0
holds contains "gpu_pairs_known" if count(facts.pairs) > 0
holds contains "launch_described" if count(logs.launches) > 0
holds contains "process_crashed" if count(logs.messages({"process-segmentation-fault", "heap-corrupted"})) > 0
holds contains "process_crashed" if input.logs.deaths[_].class in {"SIGSEGV", "SIGFPE", "SIGILL"}

holds contains "p2p_off" if facts.env.NCCL_P2P_DISABLE == "1"

# A signal handler tells the number of its own process, which two have only in two PID namespaces.
holds contains "pid_twice" if {
	some d in input.logs.deaths
	d.reporter == "handler"
	d.pid > 0
	d.count > 1
}

values contains ["iommu_vendor", iommu.vendor]

# LD_LIBRARY_PATH leads to libraries of another driver.
holds contains "compat_in_library_path" if regex.match(`/(?:compat|stubs)\b`, facts.env.LD_LIBRARY_PATH)

shown contains ["compat_in_library_path", surroundings.variable_evidence(facts.variable.LD_LIBRARY_PATH)]

# The versions in messages on a driver mismatch, and what they belong to.
values contains ["driver_versions", sprintf(" They are %s.", [facts.list(parts)])] if {
	parts := {sprintf("%s (%s)", [concat(", ", sort(versions)), owner]) | some owner, versions in driver_versions}
	count(parts) > 0
}

driver_versions[owner] contains version if {
	some m in logs.messages({"nvml-library-version", "nvrm-api-mismatch", "nvrm-api-mismatch-kernel", "xla-dso-mismatch"})
	some owner in ["library", "kernel"]
	version := m.fields[owner]
}

values contains ["driver_here", sprintf(" here (%s)", [input.gpus.driver.version])] if input.gpus.driver.version != ""

# NCCL's collectives can be captured in CUDA graphs from a branch of the driver on.
holds contains "driver_with_graphs" if driver_branch >= thresholds.cuda_graphs_driver

driver_branch := surroundings.version(input.gpus.driver.version)[0]

# What is known of NCCL: its version, its packages, which write to one directory, so that the last one counts, and the
# folders in which the loader looks for it.
holds contains "nccl_version_known" if library_versions.version_known.nccl
holds contains "nccl_packages" if count(nccl_packages) > 0
holds contains "library_path" if count(library_path) > 0

values contains ["nccl_version", sprintf(" %s", [concat(", ", sort(versions))])] if {
	versions := {u.version | some u in library_versions.used.nccl}
	count(versions) > 0
}

shown contains ["nccl_packages", library_versions.package_evidence(p)] if some p in nccl_packages
shown contains ["library_path", surroundings.variable_evidence(v)] if some v in library_path

nccl_packages := {p | some p in input.software; startswith(p.name, "nvidia-nccl-cu")}

library_path := {v | some name in ["LD_LIBRARY_PATH", "LD_PRELOAD", "VLLM_NCCL_SO_PATH"]; v := facts.variable[name]}

# For remedies that treat each GPU.
values contains ["all_gpus", sort({g | some g in facts.gpus})]
values contains ["mig_gpus", sort({g.address | some g in facts.named; g.mig == true})]

# AMD's GPUs. RCCL answers to NCCL's names.
holds contains "amd_present" if amd.present
holds contains "on_amd" if library_versions.on_amd
holds contains "architecture_faked" if count(amd.overrides) > 0
holds contains "amd_peer_access" if amd.peer_access
holds contains "amd_peer_access_refused" if count(logs.messages({"hip-no-peer-access", "hip-peer-access-failed"})) > 0

# No NVLink is active, where nvidia-smi topo -m or the state of each link tells.
holds contains "nvlinks_none" if max(nvlinks) == 0
holds contains "nvlinks_none" if count(logs.by_id["nvlink-all-inactive"]) > 0

nvlinks contains p.nvlinks if some p in facts.gpu_pairs

nvlinks contains count([l | some l in g.nvlinks; l.active == true]) if {
	some g in input.gpus.devices
	count(g.nvlinks) > 0
}

# Modules for NVLink boards (SXM). A card without a bridge also has no active link, and is healthy.
holds contains "nvlink_modules" if {
	count({g.address | some g in facts.named; regex.match(`SXM|HBM3|\bH[12]00$|\bB[23]00\b`, object.get(g, "name", ""))}) > 1
}
