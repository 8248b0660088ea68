package gpudoctor.lib.variable_names_test

import data.gpudoctor.lib.variable_names

test_meaning_of_misspelt_names if {
	every name, meant in {
		"NCCL_DISABLE_P2P": "NCCL_P2P_DISABLE",
		"NCCL_P2P_DISABLED": "NCCL_P2P_DISABLE",
		"NCCL_SOCKET_IFNAM": "NCCL_SOCKET_IFNAME",
		"NCCL_BUFFER_SIZE": "NCCL_BUFFSIZE",
	} {
		variable_names.unknown(name)
		variable_names.meaning(name) == meant
	}
}

# Names of builds, images and plugins are nobody's misspelling.
test_names_of_others_mean_nothing if {
	every name in ["NCCL_VERSION", "NCCL_HOME", "NCCL_FASTRAK_NUM_FLOWS", "NCCL_TESTS_DEVICE", "NCCL_GPUDIRECTTCPX_TX_BINDINGS"] {
		not misspelt(name)
	}
}

misspelt(name) if {
	variable_names.unknown(name)
	variable_names.meaning(name)
}

test_known_names if {
	not variable_names.unknown("NCCL_P2P_DISABLE")
	not variable_names.unknown("NCCL_SOCKET_IFNAME")
	not variable_names.unknown("UCX_TLSS")
}
