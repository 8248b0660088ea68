# METADATA
# title: Kubernetes refuses the pod
# description: The API server refuses a pod whose GPUs have no whole limit equal to the request, or whose mounts lack a volume.
# related_resources:
#   - {ref: https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/apis/core/validation/validation.go, description: The checks}
# custom:
#   severity: high
#   remedies: [correct-launch]
#   since: "0.4"
#   grades:
#     unequal: "{opening} requests {value} of {subject}, and its limit is {limit}: Kubernetes refuses the pod"
#     part: "{opening} has a limit of {value} of {subject}, which is not a whole number: Kubernetes refuses the pod"
#     volume: "{opening} mounts the volume {subject}, which it does not define: Kubernetes refuses the pod"
package gpudoctor.rules.manifest_refused

import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches

refused(l, grade, name, part, about) := job.finding(l, grade, name, [job.fact(l, job.entry(part, name), name)], {"refused": "yes"}, about)

# extended are the resources of a pod that are not Kubernetes' own (IsExtendedResourceName).
extended(l, part) := {name: value |
	l.kind == "kubernetes"
	launches.shows(l, {"requests", "resources"})
	some name, value in l[part]
	contains(name, "/")
	not regex.match(`(^|\.)kubernetes\.io/`, name)
}

findings contains refused(l, "unequal", name, "requests", {"value": value, "limit": limit}) if {
	some l in input.launches
	some name, value in extended(l, "requests")
	launches.shows(l, {job.entry("requests", name), job.entry("resources", name)})
	limit := object.get(l, ["resources", name], "0")
	quantity(limit) != quantity(value)
}

findings contains refused(l, "part", name, "resources", {"value": value}) if {
	some l in input.launches
	some name, value in extended(l, "resources")
	quantity(value) != floor(quantity(value))
}

# Operators complete their daemons and the pods of their own objects.
findings contains refused(l, "volume", name, "mounts", {}) if {
	some l in input.launches
	some name in l.undefined_volumes
	regex.match(`^(Pod|Deployment|StatefulSet|ReplicaSet|Job|CronJob)/|^$`, object.get(l, "object", ""))
}

quantity(text) := units.parse(text) if regex.match(`^[0-9]{1,12}(\.[0-9]{1,9})?([KMGTPE]i?|k|m)?$`, text)

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"resources", "requests"})
