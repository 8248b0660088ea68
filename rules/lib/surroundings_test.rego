package gpudoctor.lib.surroundings_test

import data.gpudoctor.lib.surroundings

# Nothing is said of what is not known.
test_unknown if {
	not surroundings.no_rdma_nic with input as {}
	not surroundings.cpu_nodes with input as {"numa": {}}
	not surroundings.nccl_at_least([1]) with input as {}
	not surroundings.nccl_below([9]) with input as {}
}

test_version if {
	surroundings.version("580.159.04") == [580, 159, 4]
	not surroundings.version("")
}

nccl(version, found_by, loads) := {"kind": "libnccl", "path": version, "version": version, "found_by": found_by, "loads": loads}

test_nccl_of_python_first if {
	every row in [
		[[nccl("2.27.3", "python", false), nccl("2.18.5", "ld_cache", true)], "2.27.3"],
		[[nccl("2.18.5", "ld_cache", true), nccl("2.10.3", "toolkit", false)], "2.18.5"],
		[[nccl("2.10.3", "toolkit", false)], "2.10.3"],
	] {
		{l.version | some l in surroundings.nccl} == {row[1]} with input as {"libraries": {"files": row[0]}}
	}
}
