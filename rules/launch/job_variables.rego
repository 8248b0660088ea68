# METADATA
# title: A job's variable is misconfigured or left over
# description: A setting made for another machine, for a fault that is gone, or for a library that has since renamed it costs
#   bandwidth or has no effect. What a provider documents for its network is not one of these.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
#     description: What each NCCL variable does; tuning and debugging variables are not for production
# custom:
#   severity: low
#   areas: [environment]
#   remedies: [unset-env, set-socket-ifname, set-ib-hca, set-net-gdr-level, nccl-p2p-level, install-ofi-plugin, pass-rdma-devices, disable-custom-all-reduce, other]
#   cause: env-misconfig
#   since: "0.4"
package gpudoctor.rules.job_variables

import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.setting_rows
import data.gpudoctor.lib.variable_names
import data.tables.launch_files as words
import data.tables.variables

of_setting(l, name, message, more) := object.union(found, more) if found := job.of_setting(l, name, {
	"remedies": ["unset-env"], "params": {"source": variables.guide},
	"message": sprintf("%s=%s %s", [name, setting_rows.shown(job.settings(l)[name].value), message]),
})

findings contains of_setting(l, name, sprintf("of %s %s", [launches.title(l), concat(": ", array.concat([row.why], [variables.losses[row.loss] | row.loss]))]), object.union(object.filter(row, ["confidence", "remedies"]), {
	"severity": severity(l, row),
	"params": object.union(object.filter(row, ["level", "source"]), {k: "none" | row.inert; k := "effect"}),
})) if {
	some l, rows in decisive
	some name, row in rows
	not row.silent
	not documented(l, name)
}

decisive[l][name] := setting_rows.decisive_for(name, value) if {
	some l, all in job.judged
	some name, s in all
	value := trim_space(s.value)
	value != ""
}

# What is only possible without a machine to look at is low, and so is the way between GPUs where there is one.
severity(l, row) := "low" if {
	setting_rows.severity(row) in {"critical", "high", "medium"}
	mild(l, row)
} else := setting_rows.severity(row)

mild(_, row) if {
	row.confidence == "possible"
	not job.target_gpus
}

mild(l, row) if {
	count({"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE"} & {name | some name in row.names}) > 0
	job.gpus(l) == 1
}

# An image for pictures, or one that only looks at GPUs, may need no CUDA.
mild(l, row) if {
	"NVIDIA_DRIVER_CAPABILITIES" in row.names
	regex.match("video|graphics|display|utility", job.settings(l).NVIDIA_DRIVER_CAPABILITIES.value)
}

# A benchmark of NCCL measures with settings on purpose.
mild(_, _) if job.says(job.parts[_], `(^|[/\s])(all|reduce|broadcast|sendrecv|gather|scatter)[a-z_]*_perf(\s|$)`)

# documented is true of a setting that the provider of the job's network asks for.
documented(l, name) if {
	some provider in words.providers
	job.of_provider(l, provider)
	some names, pattern in provider.settings
	regex.match(sprintf("^(?:%s)$", [names]), name)
	regex.match(pattern, job.settings(l)[name].value)
}

# A word where NCCL reads a number counts as 0, and a name that no library reads may be another's.
findings contains of_setting(l, name, "is a word, but NCCL reads a number: the value counts as 0", {}) if {
	some l, all in job.judged
	some name, s in all
	variables.known[name] == "number"
	lower(trim_space(s.value)) in {"true", "yes", "on", "y", "t", "enable", "enabled", "auto", "default"}
	not decisive[l][name]
}

findings contains of_setting(l, name, sprintf("is not a known variable; did you mean %s?", [meant]), {
	"confidence": "possible", "params": {"meant": meant, "effect": "none"},
}) if {
	some l, all in job.judged
	some name, _ in all
	variable_names.unknown(name)
	meant := variable_names.meaning(name)
	not documented(l, name)
}

findings contains {
	"subject": "MASTER_ADDR", "severity": "high", "remedies": ["unset-env"], "evidence": [address],
	"message": sprintf("%s runs on %d nodes with the rendezvous address %s, which on each node is the node itself: the ranks wait for each other until the timeout", [job.opening(l), l.nodes, address.value]),
	"params": {"variable": "MASTER_ADDR", "source": variables.guide},
} if {
	some l in job.parts
	l.nodes > 1
	address := meeting(l)
	job.matches(words.loopback, address.value)
}

meeting(l) := job.fact(l, "command", value) if {
	value := max(launches.options(l, "master[_-]addr|rdzv[_-]endpoint"))
} else := job.setting_fact(l, "MASTER_ADDR")

findings contains of_setting(l, name, sprintf("disables RDMA, but %s gets RDMA devices (%s): traffic between nodes uses TCP, at a fraction of the bandwidth", [launches.title(l), job.rdma_words(l)]), {
	"severity": "medium", "evidence": array.concat([job.setting_fact(l, name)], job.rdma(l)),
}) if {
	not job.target_rdma
	some l in job.containers
	count(job.rdma(l)) > 0
	some name, s in job.settings(l)
	switches_off(name, s.value)
	not documented(l, name)
}

switches_off("NCCL_IB_DISABLE", value) if setting_rows.number(value) == 1
switches_off("NCCL_NET", value) if lower(value) == "socket"

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"variables[*]", "devices", "mounts", "resources", "nodes"})
