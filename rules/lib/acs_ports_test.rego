package gpudoctor.lib.acs_ports_test

import data.gpudoctor.lib.acs_ports

# plx is the port of a switch that redirects requests.
plx := {"address": "0000:3a:08.0", "vendor": "0x10b5", "kind": "bridge", "acs": {"control": ["SrcValid", "ReqRedir"]}}

root := object.union(plx, {"vendor": "0x1022"})

cut(devices) := {"pci": {"partial": true, "devices": devices}}

test_ports_of_switches if {
	acs_ports.loose == {"0000:3a:08.0"} with input as cut([plx])
	acs_ports.loose == {"0000:3a:08.0"} with input as cut([object.union(root, {"port_type": "downstream-port"})])
	acs_ports.bits == {"ReqRedir"} with input as cut([plx])
	acs_ports.loose == set() with input as cut([object.union(plx, {"acs": {"control": ["SrcValid"]}})])
	acs_ports.loose == set() with input as {"pci": {"partial": false, "devices": [plx]}}
}

test_the_port_above_a_gpu if {
	acs_ports.loose == set() with input as cut([root])
	gpu := {"address": "0000:41:00.0", "kind": "gpu", "vendor": "0x10de", "ancestors": ["0000:3a:08.0"]}
	acs_ports.loose == {"0000:3a:08.0"} with input as cut([root, gpu])
}

test_a_port_on_a_known_path_is_not_loose if {
	path := {"links": {"pairs": [{"a": "0000:41:00.0", "b": "0000:61:00.0", "kind": "gpu-gpu", "bridges": ["0000:3a:08.0"]}]}}
	acs_ports.loose == set() with input as object.union(cut([plx]), path)
}

# setpci shows a register, and neither the class nor the kind of its port.
test_a_register_alone_where_a_job_fails if {
	register := {"pci": {"devices": [{"address": "0000:3a:08.0", "acs": {"control": ["CmpltRedir"]}}]}}
	acs_ports.loose == set() with input as register
	failed := {"benchmarks": [{"tool": "nccl-tests", "what": "collective", "complete": false}]}
	acs_ports.loose == {"0000:3a:08.0"} with input as object.union(register, failed)
}

test_unnamed if {
	lines := {"pci": {"devices": [], "unnamed_acs": [
		{"control": ["SrcValid"], "count": 9},
		{"control": ["ReqRedir", "UpstreamFwd"], "count": 2},
	]}}
	{u.count | some u in acs_ports.unnamed} == {2} with input as lines
	acs_ports.bits == {"ReqRedir"} with input as lines
}
