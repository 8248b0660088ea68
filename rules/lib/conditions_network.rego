# Network conditions for findings of messages, which lib/conditions_gpu.rego explains.
package gpudoctor.lib.conditions_network

import data.gpudoctor.lib.connections
import data.gpudoctor.lib.efa
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.rdma

# NCCL_SOCKET_IFNAME is set for the job, and may name interfaces, not only what to leave out.
holds contains "interface_asked" if networks.asked
holds contains "interface_named" if networks.told_interface

values contains ["asked_interface", networks.asked]
values contains ["fitting_asked", sprintf(" that matches NCCL_SOCKET_IFNAME=%s", [networks.asked])]

shown contains ["interface_asked", asked_fact]
shown contains ["interface_named", asked_fact]

asked_fact := {"fact": "env.variables[NCCL_SOCKET_IFNAME]", "value": networks.asked, "source": "the texts"}

# The nodes of the job: NCCL counted one, the texts show several, or the ranks had connected.
holds contains "one_node" if networks.single_node
holds contains "several_nodes" if networks.multi_node
holds contains "ranks_met" if networks.met

holds contains "launcher_lost_host" if count(logs.messages({"openmpi-daemon-lost", "mpi-agent-failed"})) > 0

holds contains "failure_told" if logs.failed

# A rank waited for others until a timeout.
holds contains "wait_ended" if count(logs.messages({"torch-watchdog-timeout", "torch-timeout-frame", "torch-watchdog-ended", "torch-store-silent", "torch-unique-id-late"})) > 0

holds contains "sharing_refused" if count(logs.messages({"nccl-cuda-not-permitted", "nccl-cuda-not-supported"})) > 0

holds contains "interface_taken_before" if {
	some m in logs.messages({"nccl-address-family-unknown", "nccl-net-no-address-family"})
	networks.host_of(m) in {networks.host_of(c.message) | some c in connections.chosen}
}

holds contains "nccl_versions_differ" if {
	some name in ["nccl", "rccl", "libnccl2", "nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-nccl-cu13"]
	count(logs.versions[name]) > 1
}

holds contains "bind_to_foreign_address" if {
	some m in logs.by_id["nccl-bind-failed"]
	m.fields.error == "Cannot assign requested address"
}

holds contains "gloo_peer_named" if {
	some m in logs.by_id["gloo-connect-failed"]
	m.fields.remote # No loopback address.
}

# A connection between ranks was reset or refused, and no rank had ended before.
holds contains "ranks_cut_off" if {
	m := logs.first(logs.messages({
		"torch-store-closed", "torch-unique-id-lost", "torch-store-connect-failed", "torch-store-timed-out", "torch-rendezvous-failed",
		"gloo-peer-closed", "gloo-connect-failed", "gloo-dial-failed", "nccl-closed-by-peer", "nccl-socket-reset", "nccl-connect-refused", "socket-refused",
	}))
	not connections.died_before(m)
}

# A program says why a connection was given up, and no warning of Gloo does.
holds contains "gloo_reason_told" if {
	not logs.said("gloo-loopback-fallback")
	count(connections.hard_failures) > 0
}

# A rank had failed before EFA got no answer: one that is gone does not answer.
holds contains "failed_before_efa_was_silent" if connections.died_before(logs.first(logs.by_id["ofi-peer-unreachable"]))

holds contains "failed_before_efa" if {
	failed := logs.first(logs.messages({"ofi-request-failed", "ofi-libfabric-error", "ofi-address-insert-failed"}))
	some m in logs.complaints
	m.order < failed.order
	not m.id in general
}

# The plugin's words are the same for another provider than EFA's, which no security group concerns.
holds contains "ofi_without_efa" if {
	providers := {m.fields.provider | some m in logs.by_id["ofi-provider"]}
	count(providers) > 0
	not strings.any_prefix_match(providers, "efa")
}

# general are what NCCL and PyTorch say of any failure: it may be quoted above the log, in a title.
general := {"nccl-internal-error", "nccl-unhandled-system-error", "nccl-remote-error"}

# EFA and libfabric: the job is meant to use EFA, or a program that uses its plugin complains.
holds contains "efa_expected" if efa.expected
holds contains "failed_beside_ofi" if count(efa.failures) > 0

shown contains ["efa_expected", {"fact": "env.variables[FI_PROVIDER]", "value": "efa", "source": "the texts"}] if facts.env.FI_PROVIDER == "efa"

values contains ["then_tcp", ". NCCL then exits, or falls back to TCP"] if networks.multi_node

# UCX may use only transports that cannot move GPU memory.
holds contains "ucx_tls_without_gpus" if {
	some list in ucx_tls
	not startswith(list, "^")
	not regex.match(`cuda|rocm|gdr_copy|\ball\b|gpu|\bze\b`, list)
}

holds contains "ucx_tls_without_gpus" if {
	some list in ucx_tls
	regex.match(`^\^(?:[\w,]*,)?(?:cuda_ipc|rocm_ipc|cuda|rocm)(?:,|$)`, list)
}

ucx_tls contains facts.env.UCX_TLS
ucx_tls contains logs.by_id["trtllm-ucx-settings"][_].fields.tls

# A list of kernel modules shows whether that of GPUDirect RDMA is loaded.
holds contains "infiniband" if rdma.link == "infiniband"
holds contains "peermem_loaded" if rdma.peermem_loaded
holds contains "peermem_absent" if rdma.peermem_absent

shown contains ["peermem_loaded", rdma.module_evidence[0]]
shown contains ["peermem_absent", rdma.module_evidence[0]]

values contains ["with_ofed", sprintf(" (MLNX_OFED %s)", [max(logs.versions.ofed)])]
