# METADATA
# title: Kubernetes refuses the pod
# description: The API server refuses a pod whose extended resources have no limit, or one that is not a whole number or not equal
#   to the request, and one whose mounts lack a volume. The pods of a controller are then missing.
# related_resources:
#   - ref: https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/apis/core/validation/validation.go
#     description: ValidateResourceRequirements, validateContainerResourceName, ValidateVolumeMounts
# custom:
#   severity: high
#   remedies: [correct-launch]
#   since: "0.4"
package gpudoctor.rules.manifest_refused

import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches

refused(l, subject, part, value, message) := {
	"subject": subject, "params": {"refused": "yes"}, "evidence": [job.fact(l, part, value)],
	"message": sprintf("%s %s: Kubernetes refuses the pod", [job.opening(l), message]),
}

of_request(l, name, message) := refused(l, name, job.entry("requests", name), l.requests[name], message)

# extended is true of a resource that is not Kubernetes' own (IsExtendedResourceName).
extended(name) if {
	contains(name, "/")
	not regex.match(`(^|\.)kubernetes\.io/`, name)
}

# shown are the pods whose requests and limits are known.
pods := {l | some l in input.launches; l.kind == "kubernetes"}
shown := {l | some l in pods; launches.shows(l, {"requests", "resources"})}

findings contains of_request(l, name, sprintf("requests %s and has no limit for it", [name])) if {
	some l in shown
	some name, _ in l.requests
	extended(name)
	launches.shows(l, {job.entry("requests", name), job.entry("resources", name)})
	not l.resources[name]
}

findings contains of_request(l, name, sprintf("requests %s of %s, and its limit is %s", [value, name, limit])) if {
	some l in shown
	some name, value in l.requests
	extended(name)
	limit := l.resources[name]
	quantity(value) != quantity(limit)
}

findings contains of_request(l, name, sprintf("requests %s of %s, more than its limit of %v", [l.requests[name], name, l[part]])) if {
	some l in shown
	some name, part in {"cpu": "cpus", "memory": "memory_bytes"}
	quantity(l.requests[name]) > l[part]
}

findings contains refused(l, name, job.entry("resources", name), value, sprintf("has a limit of %s of %s, which is not a whole number", [value, name])) if {
	some l in shown
	some name, value in l.resources
	extended(name)
	quantity(value) != floor(quantity(value))
}

# Operators complete their daemons and the pods of their own objects.
findings contains refused(l, name, job.entry("mounts", name), name, sprintf("mounts the volume %s, which it does not define", [name])) if {
	some l in pods
	some name in l.undefined_volumes
	regex.match(`^(Pod|Deployment|StatefulSet|ReplicaSet|Job|CronJob)/|^$`, object.get(l, "object", ""))
}

findings contains refused(l, target, "mounts", target, sprintf("mounts %d volumes at %s", [n, target])) if {
	some l in pods
	some target in {split(m, ":")[1] | some m in l.mounts}
	n := count([m | some m in l.mounts; split(m, ":")[1] == target])
	n > 1
}

quantity(text) := units.parse(text) if regex.match(`^[0-9]{1,12}(\.[0-9]{1,9})?([KMGTPE]i?|k|m)?$`, text)

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"resources", "requests"})
