# EFA and where to expect it. Whether a job should use EFA, and what shows that its machines are AWS instances.
package gpudoctor.lib.efa

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.surroundings

# expected is true when the job is meant to use EFA: the devices are there, or were asked for, or the settings name
# them, or the plugin itself recognized an instance that has them.
expected if count(surroundings.efa_devices) > 0
expected if input.launches[_].resources["vpc.amazonaws.com/efa"]
expected if facts.env.FI_PROVIDER == "efa"
expected if count({name | some name, value in facts.env; startswith(name, "FI_EFA_"); value != ""}) > 0
expected if strings.any_prefix_match(input.nics.rdma[_].device, ["rdmap", "efa_"])
expected if logs.said("ofi-platform")
expected if logs.said("prose-efa-instance")

# failures are complaints of the programs that use NCCL's plugin for libfabric.
failures := {m | some m in logs.complaints; not strings.any_prefix_match(m.id, ["ofi-", "net-library-", "nccl-net-plugin"])}

# on_aws is true when the hosts have the names that EC2 gives.
on_aws if {
	count(networks.hosts) > 0
	every h in networks.hosts {
		regex.match(`^ip-\d+-\d+-\d+-\d+`, h)
	}
}
