# Variables in force by which NCCL and RCCL leave the links between the GPUs, or a part of them, unused: what is slow
# with them may have been asked for.
package gpudoctor.lib.restricting_settings

import data.gpudoctor.lib.facts

# in_force are those that are set.
in_force contains name if {
	some name in {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_CUMEM_ENABLE", "NCCL_NET_DISABLE_INTRA", "NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_ALGO", "NCCL_PROTO"}
	facts.env[name] != "0"
}
