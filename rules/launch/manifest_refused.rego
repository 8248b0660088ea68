# METADATA
# title: Kubernetes refuses the pod
# description: >-
#   The API server validates a pod before it exists. GPUs and other extended resources have a limit,
#   a whole number, and a request that equals it; no request exceeds its limit; and each mount has a
#   volume and a path of its own. An object whose controller makes such pods is accepted, and its
#   pods are missing.
# related_resources:
#   - ref: https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/
#     description: GPUs are specified in limits
#   - ref: https://kubernetes.io/docs/tasks/configure-pod-container/extended-resource/
#     description: Extended resources are whole numbers and cannot be overcommitted
#   - ref: https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/apis/core/validation/validation.go
#     description: ValidateResourceRequirements, validateContainerResourceName, ValidateVolumeMounts
# schemas:
#   - input: schema.facts
# custom:
#   severity: high
#   confidence: likely
#   areas: [container]
#   needs: [launches]
#   remedies: [correct-launch]
#   profiles: [launch]
#   since: "0.4"
package gpudoctor.rules.manifest_refused

import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches

pods := {l | some l in input.launches; l.kind == "kubernetes"}

refused(l, subject, part, value, message) := {
	"subject": subject, "message": sprintf("%s %s: Kubernetes refuses the pod", [job.opening(l), message]),
	"remedies": ["correct-launch"], "params": {"refused": "yes"}, "evidence": [job.fact(l, part, value)],
}

requested(name) := sprintf("requests[%s]", [name])

limited(name) := sprintf("resources[%s]", [name])

# extended is true of a resource that is not Kubernetes' own (IsExtendedResourceName).
extended(name) if {
	contains(name, "/")
	not regex.match(`(^|\.)kubernetes\.io/`, name)
}

# shown are pods whose requests and limits are known.
shown := {l | some l in pods; launches.shows(l, {"requests", "resources"})}

findings contains refused(l, name, requested(name), value, sprintf("requests %s and has no limit for it", [name])) if {
	some l in shown
	some name, value in l.requests
	extended(name)
	launches.shows(l, {requested(name), limited(name)})
	not l.resources[name]
}

findings contains refused(l, name, requested(name), value, sprintf("requests %s of %s, and its limit is %s", [value, name, limit])) if {
	some l in shown
	some name, value in l.requests
	extended(name)
	limit := l.resources[name]
	quantity(value) != quantity(limit)
}

findings contains refused(l, name, requested(name), value, sprintf("requests %s of %s, more than its limit of %v", [value, name, limit])) if {
	some l in shown
	some name, part in {"cpu": "cpus", "memory": "memory_bytes"}
	value := l.requests[name]
	limit := l[part]
	quantity(value) > limit
}

findings contains refused(l, name, limited(name), value, sprintf("has a limit of %s of %s, which is no whole number", [value, name])) if {
	some l in shown
	some name, value in l.resources
	extended(name)
	quantity(value) != floor(quantity(value))
}

# Operators complete their daemons and the pods of their own objects.
findings contains refused(l, name, sprintf("mounts[%s]", [name]), name, sprintf("mounts the volume %s, which it does not define", [name])) if {
	some l in pods
	some name in l.undefined_volumes
	regex.match(`^(Pod|Deployment|StatefulSet|ReplicaSet|Job|CronJob)/|^$`, object.get(l, "object", ""))
}

findings contains refused(l, target, "mounts", target, sprintf("mounts %d volumes at %s", [count(here), target])) if {
	some l in pods
	some mount in l.mounts
	target := split(mount, ":")[1]
	here := [m | some m in l.mounts; split(m, ":")[1] == target]
	count(here) > 1
}

# quantity is the value of a Kubernetes quantity.
quantity(text) := units.parse(text) if regex.match(`^[0-9]{1,12}(\.[0-9]{1,9})?([KMGTPE]i?|k|m)?$`, text)

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"resources", "requests"})
