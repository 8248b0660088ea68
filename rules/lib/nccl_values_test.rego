package gpudoctor.lib.nccl_values_test

import data.gpudoctor.lib.nccl_values

test_number if {
	every value, wanted in {"1": 1, "+07": 7, "-2": -2, "12abc": 12, "yes": 0} {
		nccl_values.number(value) == wanted
	}
	not nccl_values.number("0x10")
	not nccl_values.number("")
}

test_place_of_words_and_numbers if {
	nccl_values.place("LOC") < nccl_values.place("PIX")
	nccl_values.place("PHB") < nccl_values.place("SYS")
	nccl_values.place("2") == nccl_values.place("PXB")
	nccl_values.place("9") == nccl_values.place("SYS")

	# NCCL compares the words as they are.
	not nccl_values.place("sys")
}

test_words_known if {
	nccl_values.words_known("^Tree", ["tree", "ring"])
	nccl_values.words_known("allreduce:ring,tree;broadcast:ring", ["tree", "ring"])
	not nccl_values.words_known("ring,rnig", ["tree", "ring"])
}
