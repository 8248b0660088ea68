# METADATA
# title: NCCL's plugin for EFA and libfabric is missing or does not work
# description: >-
#   On EFA NCCL needs a plugin, aws-ofi-nccl, which in turn needs libfabric and
#   the devices. Where the plugin is not found, or finds no device, or does not
#   fit libfabric, NCCL ends, or takes TCP, which is slower by a multiple.
# related_resources:
#   - ref: https://github.com/aws/aws-ofi-nccl
#     description: The plugin and what it needs
#   - ref: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start-nccl.html
#     description: How EFA and NCCL are set up
#   - ref: https://github.com/aws/aws-ofi-nccl/issues/1020
#     description: fi_getinfo finds nothing where the container lacks /dev/infiniband
#   - ref: https://github.com/olcf/olcf-user-docs/issues/947
#     description: What RCCL over Slingshot (cxi) wants of libfabric, lest it hang
#   - ref: https://github.com/ROCm/aws-ofi-rccl/issues/16
#     description: Collectives that hang over cxi with another libfabric
#   - ref: https://github.com/aws/aws-ofi-nccl/issues/803
#     description: A plugin that takes tcp where EFA's devices are not passed in
# schemas:
#   - input: schema.facts
# custom:
#   severity: high
#   confidence: likely
#   needs:
#     - job-connected
#   remedies: [fix-ofi-plugin, install-ofi-plugin, pass-rdma-devices, unset-env]
#   since: "0.1"
package gpudoctor.rules.ofi_plugin

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.surroundings

# What the plugin or the loader states: the row, what it means, and what helps
# first.
stated := {
	"ofi-libfabric-too-old": ["libfabric is older than the plugin needs", ["fix-ofi-plugin", "install-ofi-plugin"]],
	"ofi-getinfo-failed": ["libfabric offers the plugin no device: EFA's devices (/dev/infiniband) are not passed into the container, or the instance has none", ["fix-ofi-plugin", "pass-rdma-devices", "install-ofi-plugin"]],
	"ofi-efa-list-empty": ["libfabric's EFA provider has no device that does what is asked of it: the devices (/dev/infiniband) are not passed into the container, or libfabric or the driver cannot register GPU memory", ["fix-ofi-plugin", "pass-rdma-devices", "install-ofi-plugin"]],
	"ofi-fi-info-failed": ["libfabric does not start", ["fix-ofi-plugin", "install-ofi-plugin"]],
	"ofi-no-protocol": ["the plugin could not set up any of its protocols", ["fix-ofi-plugin", "pass-rdma-devices", "install-ofi-plugin"]],
	"ofi-gdr-not-configured": ["the plugin promised GPUDirect RDMA, which libfabric then refused: plugin, libfabric and EFA's driver do not fit each other", ["fix-ofi-plugin", "install-ofi-plugin"]],
	"ofi-cuda-runtime-missing": ["the plugin does not find the CUDA runtime library that it was built for", ["fix-ofi-plugin", "install-ofi-plugin"]],
	"ofi-library-broken": ["a library that the plugin needs is missing or of another version", ["fix-ofi-plugin", "install-ofi-plugin"]],
	"nccl-net-plugin-dependency-missing": ["a library that the plugin needs is missing", ["fix-ofi-plugin", "install-ofi-plugin"]],
	"nccl-net-plugin-unloadable": ["a library that the plugin needs is of another version than the plugin", ["fix-ofi-plugin", "install-ofi-plugin"]],
	"ofi-no-provider": ["the plugin finds no provider that it can use: EFA's devices (/dev/infiniband) are not passed into the container, or the instance has none", ["fix-ofi-plugin", "pass-rdma-devices", "install-ofi-plugin"]],
}

findings contains {
	"subject": "network",
	"message": sprintf("%s: %s%s", [told(m), stated[m.id][0], consequence]),
	"severity": severity(m.id),
	"confidence": "confirmed",
	"remedies": stated[m.id][1],
	"evidence": array.concat(logs.all_evidence(statements), versions),
	"order": m.order,
} if {
	m := logs.first(statements)
}

# statements are those messages; of libraries only those that the plugin needs.
statements contains m if {
	some id, _ in stated
	some m in logs.by_id[id]
	not foreign(m)
}

# A broken library is the plugin's affair when the line speaks of it.
foreign(m) if {
	m.id in {"ofi-library-broken", "nccl-net-plugin-dependency-missing", "nccl-net-plugin-unloadable"}
	not networks.efa_expected
	not regex.match(`(?i)ofi|libfabric|libefa|/opt/amazon|libhwloc|libnccl-net[^ ]*: undefined symbol: fi_`, m.text)
}

told(m) := "aws-ofi-nccl" if {
	m.program in {"ofi", "nccl", "rccl"}
} else := "libfabric"

consequence := ". NCCL then ends, or goes on over TCP" if {
	networks.multi_node
} else := ""

# An image that brings the plugin says so on instances without EFA, too, and NCCL
# goes on. Where EFA is meant, the job is not what it should be.
severity("ofi-no-provider") := "low" if {
	not networks.efa_expected
	not warned_on_aws
	count(failures) == 0
} else := "medium" if {
	not networks.efa_expected
	count(failures) == 0
} else := "critical" if {
	count(failures) > 0
} else := "high"

severity(id) := "critical" if {
	id != "ofi-no-provider"
	count(failures) > 0
} else := "high" if {
	id != "ofi-no-provider"
}

# warned_on_aws: the plugin of up to 1.8 warns of it, and instances of AWS with
# several GPUs have EFA as a rule. A job on one of them does not need it.
warned_on_aws if {
	on_aws
	not networks.single_node
	some m in logs.by_id["ofi-no-provider"]
	contains(m.text, "WARN")
}

# failures are complaints of the programs that use the plugin.
failures := {m |
	some m in logs.complaints
	not startswith(m.id, "ofi-")
	not startswith(m.id, "nccl-net-plugin")
}

versions := [{"fact": sprintf("software[%s]", [p.name]), "value": p.version, "source": logs.at(p)} |
	some p in input.software
	p.name in {"aws-ofi-nccl", "libfabric"}
]

# A collective that does not end over Slingshot. The logs of such a job tell no
# more than its watchdog does; libfabric's default way to watch memory is one known
# reason, and another libfabric than the system's is the next.
hung := logs.messages({"torch-watchdog-timeout", "torch-heartbeat-timeout"})

findings contains {
	"subject": "network",
	"message": "A collective did not end over libfabric's provider for Slingshot (cxi). If no rank failed or fell out of step before, look at FI_MR_CACHE_MONITOR: with memhooks, the default of many versions, NCCL and RCCL can hang there, with userfaultfd or kdreg2 they do not; then at libfabric itself, which should be the system's, with the version that its cxi provider was built for",
	"severity": "medium",
	"confidence": "possible",
	"remedies": ["fix-ofi-plugin"],
	"evidence": array.concat(array.slice(logs.all_evidence(hung), 0, 2), array.concat([logs.evidence(logs.first(logs.by_id["ofi-provider"]))], versions)),
	"order": logs.first(hung).order,
} if {
	count(statements) == 0
	count(hung) > 0
	some m in logs.by_id["ofi-provider"]
	startswith(m.fields.provider, "cxi")
	not facts.env.FI_MR_CACHE_MONITOR
}

# fi_info lists no provider of EFA.
findings contains {
	"subject": "network",
	"message": "fi_info finds no device of EFA: they (/dev/infiniband) are not passed into the container, or the instance has none, or its driver is not loaded",
	"severity": "high",
	"confidence": fi_info_confidence,
	"remedies": ["fix-ofi-plugin", "pass-rdma-devices", "install-ofi-plugin"],
	"evidence": [{"fact": "nics.providers", "value": input.nics.providers, "source": "fi_info"}],
} if {
	count(statements) == 0
	lacking
}

lacking if {
	is_array(input.nics.providers)
	count(input.nics.providers) == 0
}

lacking if {
	networks.efa_expected
	count(input.nics.providers) > 0
	count({p | some p in input.nics.providers; startswith(p, "efa")}) == 0
}

fi_info_confidence := "confirmed" if {
	networks.efa_expected
} else := "likely"

# The plugin took another provider than that of the fabric.
findings contains {
	"subject": "network",
	"message": sprintf("The plugin takes the provider %s, not efa: EFA's devices (/dev/infiniband) are not passed into the container, or FI_PROVIDER keeps it from them", [m.fields.provider]),
	"severity": "high",
	"confidence": "likely",
	"remedies": ["fix-ofi-plugin", "pass-rdma-devices", "unset-env"],
	"params": {"variable": "FI_PROVIDER"},
	"evidence": array.concat([logs.evidence(m)], versions),
	"order": m.order,
} if {
	count(statements) == 0
	count(slow) > 0
	m := logs.first(slow)
}

slow contains m if {
	some m in logs.by_id["ofi-provider"]
	regex.match(`^(tcp|sockets|udp)`, m.fields.provider)
	intended
}

# EFA's own settings, or AWS's plugin on a GPU machine with several nodes.
intended if networks.efa_expected

intended if networks.multi_node

# The plugin is asked for by name and is not there.
findings contains {
	"subject": "network",
	"message": sprintf("NCCL was told to use the network %q, and does not find it: the plugin that brings it is not on the library path, or did not load", [name]),
	"severity": "critical",
	"confidence": "confirmed",
	"remedies": ["install-ofi-plugin", "fix-ofi-plugin", "unset-env"],
	"params": {"variable": "NCCL_NET"},
	"evidence": [logs.evidence(m)],
	"order": m.order,
} if {
	count(statements) == 0
	count(not_found) > 0
	[_, name, m] := sort({[m.order, name, m] | some [m, name] in not_found})[0]
}

not_found contains [m, name] if {
	some m in input.logs.messages
	found := regex.find_all_string_submatch_n(`[Nn]etwork (.+?) not found`, m.text, 1)
	count(found) == 1
	name := found[0][1]
	ofi_name(name)
}

not_found contains [m, name] if {
	some m in input.logs.messages
	regex.match(`Failed to initialize any NET plugin`, m.text)
	some variable in ["NCCL_NET", "NCCL_NET_PLUGIN"]
	name := facts.env[variable]
	ofi_name(name)
}

ofi_name(name) if regex.match(`(?i)libfabric|ofi`, name)

# EFA is meant, and NCCL took TCP.
findings contains {
	"subject": "network",
	"message": sprintf("NCCL took the network %s, though EFA is meant to be used: the plugin (libnccl-net.so of aws-ofi-nccl) was not found or not loaded", [n.name]),
	"severity": socket_severity,
	"confidence": "likely",
	"remedies": ["install-ofi-plugin", "fix-ofi-plugin"],
	"evidence": array.concat([{"fact": "logs.networks", "value": n.name, "source": logs.at(n)}], logs.all_evidence(absent)),
} if {
	networks.efa_expected
	count(statements) == 0
	count(slow) == 0
	count(not_found) == 0
	some n in input.logs.networks
	n.name in {"Socket", "IB"}
	not networks.single_node
	n == sort({other | some other in input.logs.networks; other.name in {"Socket", "IB"}})[0]
}

socket_severity := "high" if {
	networks.multi_node
} else := "medium"

# absent are NCCL's words for a plugin that it does not find, which are no
# complaint where none is needed.
absent contains m if {
	some m in input.logs.messages
	regex.match(`No plugin found|Plugin load \(libnccl-net|NET/Plugin: Could not find`, m.text)
}

# A machine of AWS with the GPUs that come with EFA, several of them in the job,
# and TCP between them: nobody buys that on purpose.
findings contains {
	"subject": "network",
	"message": "NCCL uses TCP between instances of AWS that have EFA as a rule: the plugin aws-ofi-nccl was not found. Instances can be started without EFA, too",
	"severity": "medium",
	"confidence": "possible",
	"remedies": ["install-ofi-plugin", "fix-ofi-plugin"],
	"evidence": array.concat([{"fact": "logs.networks", "value": n.name, "source": logs.at(n)}], logs.all_evidence(absent)),
} if {
	networks.multi_node
	not networks.efa_expected
	count(statements) == 0
	count(slow) == 0
	on_aws
	efa_gpus
	n := sort({n | some n in input.logs.networks})[0]
	every other in input.logs.networks {
		other.name == "Socket"
	}
}

# on_aws is true when the hosts have the names that EC2 gives.
on_aws if {
	count(networks.hosts) > 0
	every h in networks.hosts {
		regex.match(`^ip-\d+-\d+-\d+-\d+`, h)
	}
}

# efa_gpus are those of p4, p5 and p6 instances.
efa_gpus if gpu_models.model[_].efa

# Up to 1.10 the plugin sets NCCL_TOPO_FILE to a file that it brings for the type
# of instance. With a part of the GPUs, or with another version of NCCL, that
# file does not fit; from 1.11 on the plugin writes one of what is there
# (aws-ofi-nccl issue 785).
findings contains {
	"subject": "network",
	"message": sprintf("The description of the machine that aws-ofi-nccl brings (%s) does not fit this container or this NCCL, which fails over it. Versions from 1.11 on write one of what is there", [facts.env.NCCL_TOPO_FILE]),
	"severity": "critical",
	"confidence": "likely",
	"remedies": ["fix-ofi-plugin", "install-ofi-plugin", "unset-env"],
	"params": {"variable": "NCCL_TOPO_FILE"},
	"evidence": array.concat([logs.evidence(m)], versions),
	"order": m.order,
} if {
	contains(facts.env.NCCL_TOPO_FILE, "aws-ofi-nccl/")
	logs.said("ofi-platform")
	misfits := logs.messages({"nccl-topo-file-invalid", "nccl-topo-attribute-missing", "nccl-topo-file-missing"})
	count(misfits) > 0
	m := logs.first(misfits)
}

# The plugin failed in some call, and says no more.
findings contains {
	"subject": "network",
	"message": sprintf("A call of the plugin aws-ofi-nccl to libfabric failed%s", [hint(m)]),
	"severity": call_grade(m)[0],
	"confidence": call_grade(m)[1],
	"remedies": ["fix-ofi-plugin", "install-ofi-plugin"],
	"evidence": array.concat([logs.evidence(m)], versions),
	"order": m.order,
} if {
	count(statements) == 0
	count(unfit | called) > 0
	m := first_call
}

first_call := logs.first(unfit) if {
	count(unfit) > 0
} else := logs.first(called) if {
	count(called) > 0
}

called := logs.messages({"ofi-call-failed"})

# unfit are refusals of an option that libfabric does not know, or of a call
# that it does not have.
unfit := {m |
	some m in called
	regex.match(`Protocol not available|Function not implemented|Operation not supported`, m.text)
}

hint(m) := ": libfabric does not know what the plugin asks for, so that the two do not fit, or another provider was taken than that of the fabric" if {
	m in unfit
} else := ""

call_grade(m) := ["high", "likely"] if {
	m in unfit
} else := ["medium", "possible"]

missing contains {"fact": "logs", "words": "no log of a job was given"} if {
	not input.logs
	not input.nics
}

not_applicable contains "no EFA device is here" if {
	count(surroundings.efa_devices) == 0
	is_array(input.pci.devices)
	not input.logs
}
