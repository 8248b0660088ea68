# METADATA
# title: GPUs passed to containers
# description: >-
#   What the variables of the container toolkit request and omit, and which pods
#   get other GPUs than the Kubernetes device plugin chose for them.
package gpudoctor.lib.container_gpus

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.surroundings

# none_asked_for is true where NVIDIA_VISIBLE_DEVICES asks for no GPU, the host has some, and
# no other way brought their nodes.
none_asked_for if {
	facts.in_container
	lower(facts.env.NVIDIA_VISIBLE_DEVICES) in {"", "void", "none"}
	count(surroundings.nvidia_nodes) == 0
	surroundings.on_host > 0
	host_has_nvidia
}

host_has_nvidia if surroundings.has_nvidia

host_has_nvidia if count(surroundings.driver_devices) > 0

# left_out are the libraries that are not here because NVIDIA_DRIVER_CAPABILITIES does not
# name what they belong to, by the name of that.
left_out[capability] := library if {
	facts.in_container
	count(surroundings.nvidia_nodes) > 0
	given := {trim_space(c) | some c in split(lower(facts.env.NVIDIA_DRIVER_CAPABILITIES), ",")} - {""}
	count(given) > 0
	some capability, library in {"compute": "libcuda", "utility": "libnvidia-ml"}
	not capability in given
	not "all" in given
	is_array(input.libraries.files)
	not works(library)
}

# works is true of a library of which there is a file that is neither a stub, nor empty, nor a
# compatibility library.
works(kind) if {
	some l in input.libraries.files
	l.kind == kind
	not l.stub
	not l.empty
	not l.compat
}

pods contains l if {
	some l in input.launches
	l.kind == "kubernetes"
}

# choosing_pods ask for GPUs and name others themselves.
choosing_pods contains l if {
	some l in pods
	l.resources["nvidia.com/gpu"] != "0"
	regex.match(`^(\d|GPU-)`, l.variables.NVIDIA_VISIBLE_DEVICES)
}

# privileged_pods ask for GPUs and see all of their node.
privileged_pods contains l if {
	some l in pods
	l.privileged
	l.gpus > 0
}
