# METADATA
# title: A job's variable is misconfigured or left over
# description: A setting made for another machine, for a fault that is gone, or for another release costs bandwidth or does nothing.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
# custom:
#   severity: low
#   areas: [environment]
#   remedies: [unset-env, set-socket-ifname, set-ib-hca, set-net-gdr-level, nccl-p2p-level, install-ofi-plugin, pass-rdma-devices, disable-custom-all-reduce, other]
#   cause: env-misconfig
#   since: "0.4"
#   grades:
#     row: "{subject}={value} of {title} {why}"
#     word: {remedies: [unset-env], text: "{subject}={value} is a word, but NCCL reads a number: the value counts as 0"}
#     unknown: {confidence: possible, remedies: [unset-env], text: "{subject}={value} is not a known variable; did you mean {meant}?"}
#     itself: {severity: high, remedies: [unset-env], text: "{opening} has {nodes} nodes, and for each, {address} is the node itself"}
#     rdma: {severity: medium, remedies: [unset-env], text: "{subject}={value} disables RDMA, but {title} gets RDMA devices"}
package gpudoctor.rules.job_variables

import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.setting_rows
import data.gpudoctor.lib.variable_names
import data.tables.launch_files as words
import data.tables.variables

findings contains object.union(job.of_setting(l, "row", name, [], {"why": row.why}), {
	"severity": severity(row), "confidence": row.confidence,
	"remedies": object.get(row, "remedies", ["unset-env"]), "params": object.filter(row, ["level", "source"]),
}) if {
	some [l, name] in undocumented
	value := trim_space(job.settings(l)[name].value)
	value != ""
	row := setting_rows.decisive_for(name, value)
	not row.silent
	not excused(l, row)
}

# What is only possible without a machine to look at is low.
severity(row) := "low" if {
	row.confidence == "possible"
	not job.target_gpus
	setting_rows.severity(row) != "info"
} else := setting_rows.severity(row)

undocumented contains [l, name] if {
	some l, all in job.judged
	some name, s in all
	not documented(l, name, s.value)
}

# documented is true of a setting that the provider of the job's network asks for.
documented(l, name, value) if {
	some provider in words.providers
	job.of_provider(l, provider)
	some names, pattern in provider.settings
	regex.match(sprintf("^(?:%s)$", [names]), name)
	regex.match(pattern, value)
}

# A single GPU has no peers, and an image for pictures, or one that only looks at GPUs, may need no CUDA.
excused(l, row) if {
	count({"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE"} & {name | some name in row.names}) > 0
	job.gpus(l) == 1
}

excused(l, row) if {
	"NVIDIA_DRIVER_CAPABILITIES" in row.names
	regex.match("video|graphics|display|utility", job.settings(l).NVIDIA_DRIVER_CAPABILITIES.value)
}

# A benchmark of NCCL measures with settings on purpose.
excused(_, _) if job.says(job.parts[_], `(^|[/\s])(all|reduce|broadcast|sendrecv|gather|scatter)[a-z_]*_perf(\s|$)`)

findings contains job.of_setting(l, "word", name, [], {}) if {
	some [l, name] in undocumented
	variables.known[name] == "number"
	value := job.settings(l)[name].value
	setting_rows.word(value)
	not setting_rows.decisive_for(name, lower(trim_space(value)))
}

findings contains job.of_setting(l, "unknown", name, [], {"meant": meant}) if {
	some [l, name] in undocumented
	variable_names.unknown(name)
	meant := variable_names.meaning(name)
}

findings contains job.finding(l, "itself", "MASTER_ADDR", [address], {"variable": "MASTER_ADDR"}, {"address": address.value}) if {
	some l in job.parts
	l.nodes > 1
	options := launches.options(l, "master[_-]addr|rdzv[_-]endpoint")
	address := array.concat([job.fact(l, "command", max(options)) | count(options) > 0], [f | f := job.setting_fact(l, "MASTER_ADDR")])[0]
	job.matches(words.loopback, address.value)
}

# Where the target has RDMA NICs, a row says so.
findings contains job.of_setting(l, "rdma", name, [], {}) if {
	not setting_rows.holds("rdma", "")
	some [l, name] in undocumented
	regex.match({"NCCL_IB_DISABLE": `^\s*0*1\s*$`, "NCCL_NET": `^(?i)socket$`}[name], job.settings(l)[name].value)
	count(job.rdma(l)) > 0
}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"variables[*]", "devices", "mounts", "resources", "nodes"})
