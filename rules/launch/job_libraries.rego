# METADATA
# title: An image's libraries stand in the way of the host's
# description: Packages of the driver, CUDA's stubs and its compatibility libraries take the place of the host's driver libraries.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
# custom:
#   severity: high
#   areas: [libraries]
#   remedies: [remove-driver-libraries, remove-from-image-path, remove-from-library-path, same-nccl-everywhere]
#   cause: driver-library-mismatch
#   since: "0.4"
#   grades:
#     driver: {remedies: [remove-driver-libraries], text: "{opening} installs {subject}: the driver's libraries must come from the host"}
#     folder: "{opening} puts {what} on LD_LIBRARY_PATH ({subject}): {why}"
#     nccl: {severity: medium, confidence: possible, remedies: [same-nccl-everywhere], text: "{opening} installs {system} and {python}"}
package gpudoctor.rules.job_libraries

import data.gpudoctor.lib.job
import data.tables.launch_files as words

findings contains job.finding(l, "driver", name, [job.fact(l, job.entry("packages", name), name)], {"library": name}, {}) if {
	some l in job.parts
	some name in l.packages
	job.matches(words.driver_packages, name)
}

# The host's own libraries, mounted there by the device plugins of some providers, come first where their folder does.
# In some images, the folder is empty.
findings contains object.union(job.finding(l, "folder", folder, [job.setting_fact(l, "LD_LIBRARY_PATH")], {"folder": folder}, kind), {
	"remedies": [object.get({"dockerfile": "remove-from-image-path"}, l.kind, "remove-from-library-path")],
	"severity": kind.severity,
}) if {
	some l, all in job.judged
	folders := split(all.LD_LIBRARY_PATH.value, ":")
	some i, folder in folders
	some kind in words.misplaced_folders
	job.matches(kind.folders, folder)
	count({f | some f in array.slice(folders, 0, i); job.matches(words.host_folders, f)}) == 0
	not job.matches(kind.empty_in, object.get(l, "image", ""))
}

# PyTorch's own NCCL beside that of a base image does no harm: both are installed by name here.
findings contains job.finding(l, "nccl", "NCCL", [installed], {}, {"system": system, "python": python}) if {
	some l in job.parts
	system := min({p | some p in l.packages; regex.match(`^libnccl(2|-dev)$`, p)})
	installed := job.fact(l, job.entry("packages", system), system)
	python := min({p | some p in l.python_packages; regex.match(`^nvidia[-_]nccl`, p)})
}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"variables[LD_LIBRARY_PATH]"})
