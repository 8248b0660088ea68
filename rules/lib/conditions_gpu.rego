# GPU conditions for findings of messages. A row of the message catalog can limit its finding, or its severity, to
# conditions by name (when, unless), and can quote a value of the facts ({@name}). Each name is defined once and holds
# only where the facts show it: what is not known does not hold. These conditions are about GPUs and their drivers.
package gpudoctor.lib.conditions_gpu

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

# LD_LIBRARY_PATH leads to libraries of another driver.
holds contains "compat_in_library_path" if regex.match(`/(?:compat|stubs)\b`, facts.env.LD_LIBRARY_PATH)

shown contains ["compat_in_library_path", surroundings.variable_evidence(facts.variable.LD_LIBRARY_PATH)] if facts.variable.LD_LIBRARY_PATH

# A text describes how the job was started.
holds contains "launch_described" if count(logs.launches) > 0

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

# The driver's version, if the facts have it.
values contains ["driver_here", sprintf(" here (%s)", [input.gpus.driver.version])] if input.gpus.driver.version != ""

# All GPUs, for remedies that treat each.
values contains ["all_gpus", sort(facts.gpus)] if is_set(facts.gpus)

values contains ["all_gpus", []] if not facts.gpus

# The GPUs on which MIG is on.
values contains ["mig_gpus", sort({g.address | some g in facts.named; g.mig == true})]

# HSA_OVERRIDE_GFX_VERSION is set; the architecture of an AMD GPU is known.
holds contains "architecture_faked" if facts.env.HSA_OVERRIDE_GFX_VERSION

holds contains "architecture_known" if {
	some g in amd.gpus
	g.architecture != ""
}

# AMD GPUs reach each other over PCIe; a program was refused to.
holds contains "amd_peer_access" if amd.peer_access

holds contains "amd_peer_access_refused" if count(logs.messages({"hip-no-peer-access", "hip-peer-access-failed"})) > 0
