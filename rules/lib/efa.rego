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

expected if {
	some name in ["FI_EFA_USE_DEVICE_RDMA", "FI_EFA_FORK_SAFE", "FI_EFA_ENABLE_SHM_TRANSFER", "FI_EFA_USE_HUGE_PAGE"]
	facts.env[name] != ""
}

expected if strings.any_prefix_match(input.nics.rdma[_].device, ["rdmap", "efa_"])
expected if logs.said("ofi-platform")
expected if logs.said("prose-efa-instance")

# fi_info lists the provider only where one of its devices can be opened. A job on one machine does not need it.
expected if {
	between_machines
	some p in input.nics.providers
	startswith(p, "efa")
}

between_machines if networks.multi_node

between_machines if {
	not networks.single_node
	input.logs.transports[_].kind == "net"
}

# failures are complaints of the programs that use NCCL's plugin for libfabric.
failures := {m | some m in logs.complaints; not strings.any_prefix_match(m.id, ["ofi-", "net-library-", "nccl-net-plugin"])}

# on_aws is true when the hosts have the names that EC2 gives.
on_aws if {
	count(networks.hosts) > 0
	every h in networks.hosts {
		regex.match(`^ip-\d+-\d+-\d+-\d+`, h)
	}
}
