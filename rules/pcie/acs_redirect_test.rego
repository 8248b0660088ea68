package gpudoctor.rules.acs_redirect_test

import data.gpudoctor.rules.acs_redirect

a := "0000:41:00.0"
b := "0000:61:00.0"
nic := "0000:42:00.0"

gpu(address) := {"address": address, "vendor": "nvidia", "nvlinks": []}

port(address, bits) := {
	"address": address, "vendor": "0x1022", "class": "0x060400", "kind": "bridge", "extended": true,
	"acs": {"capability": ["SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"], "control": bits},
}

endpoint(address, ats) := {"address": address, "vendor": "0x10de", "class": "0x030200", "kind": "gpu", "driver": "nvidia", "extended": true, "ats": {"enabled": ats}}

pair := {"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 0, "bridges": ["0000:40:01.1", "0000:60:01.1"]}

machine(bits) := {
	"host": {"virtualization": {"guest": false}},
	"gpus": {"devices": [gpu(a), gpu(b)]},
	"links": {"pairs": [pair]},
	"pci": {"devices": [port("0000:40:01.1", bits), port("0000:60:01.1", bits), endpoint(a, false), endpoint(b, false)]},
}

on := ["SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"]

with_transfers(outcome) := object.union(machine(on), {"transfers": {"outcome": "ok", "transfers": [
	{"test": "copy", "source": a, "destination": b, "outcome": outcome},
	{"test": "copy", "source": b, "destination": a, "outcome": "ok"},
]}})

grades(found) := {[f.severity, f.confidence] | some f in found}

# The way through host memory is advised where peer access fails, or where it was measured faster. Pass-through is
# advised where data is lost, unless it is in force.
test_advice_fits_the_fault if {
	advice(object.union(with_transfers("corrupt"), {"iommu": {"mode": "off"}})) == [["nccl-p2p-disable", "disable-acs"]]
}

advice(document) := list if {
	found := acs_redirect.findings with input as document
	list := [f.remedies | some f in found]
}

test_passthrough_host_keeps_acs if {
	guests := {"host": {"virtualization": {"guest": false, "passthrough_host": true}}}
	host := object.union(machine(on), guests)
	advice(host) == [[]]
	advice(object.union(with_transfers("hang"), guests)) == [["nccl-p2p-disable"]]
}

test_rdma_nic_on_the_same_switch if {
	below := {"a": a, "b": nic, "kind": "gpu-nic", "bridges": ["0000:40:01.1"], "common_bridge": "0000:40:00.0"}
	devices := [
		port("0000:40:01.1", on), endpoint(a, false),
		{"address": nic, "vendor": "0x15b3", "class": "0x020000", "kind": "nic", "extended": true},
	]
	with_nic := object.union(machine(on), {"links": {"pairs": [below]}, "pci": {"devices": devices}})
	found := acs_redirect.findings with input as with_nic
	grades(found) == {["medium", "likely"]}
	some f in found
	f.affects == [a]
	far := object.union(with_nic, {"links": {"pairs": [object.remove(below, ["common_bridge"])]}})
	count(acs_redirect.findings) == 0 with input as far
}

test_unresolvable_in_a_virtual_machine if {
	guest := {
		"host": {"virtualization": {"guest": true}},
		"gpus": {"devices": [gpu(a), gpu(b)]},
		"links": {"pairs": [object.union(pair, {"bridges": []})]},
	}
	count(acs_redirect.findings) == 0 with input as guest
	count(acs_redirect.missing) == 1 with input as guest
}

# The texts that people send: ports without their devices, or cut trees.

unnamed := {"pci": {"devices": [], "partial": true, "unnamed_acs": [
	{"control": ["SrcValid"], "count": 9, "source": "lspci.txt", "line": 2},
	{"control": ["SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"], "count": 2, "source": "lspci.txt", "line": 11},
]}}

failing := {"logs": {"messages": [{
	"id": "x-y", "program": "cuda", "role": "category", "text": "an illegal memory access was encountered",
	"source": "nccl.log", "line": 3, "order": 0, "count": 1, "ranks": 1,
}]}}

plx := {"address": "0000:3a:08.0", "vendor": "0x10b5", "class": "0x060400", "kind": "bridge", "acs": {"capability": on, "control": on}}
switch_alone := {"pci": {"devices": [plx], "partial": true}}

test_unnamed_ports_alone_say_little if grades(acs_redirect.findings) == {["low", "possible"]} with input as unnamed

test_fires_on_a_switch_port_of_a_cut_tree if {
	grades(acs_redirect.findings) == {["low", "possible"]} with input as switch_alone
	grades(acs_redirect.findings) == {["high", "likely"]} with input as object.union(switch_alone, {"benchmarks": [{"tool": "nccl-tests", "test": "all_reduce", "what": "collective", "complete": true, "source": "t", "line": 1}]})
}

test_fires_on_the_port_above_a_gpu_of_a_cut_tree if {
	found := acs_redirect.findings with input as object.union(failing, {"pci": {"partial": true, "devices": [
		object.union(plx, {"vendor": "0x1022"}),
		{"address": a, "kind": "gpu", "vendor": "0x10de", "ancestors": ["0000:3a:08.0"]},
	]}})
	grades(found) == {["high", "likely"]}
}

many := {"pci": {"partial": true, "devices": [object.union(plx, {"address": sprintf("0000:3a:0%d.0", [n])}) | some n in numbers.range(1, 5)]}}

test_counts_many_ports if {
	some f in acs_redirect.findings with input as object.union(many, failing)
	contains(f.message, "5 bridges")
}

test_silent_on_cut_trees_of_guests_and_of_ports_that_redirect_nothing if {
	count(acs_redirect.findings) == 0 with input as object.union_n([unnamed, failing, {"host": {"virtualization": {"guest": true}}}])
	count(acs_redirect.findings) == 0 with input as object.union(failing, {"pci": {"partial": true, "devices": [object.union(plx, {"vendor": "0x1022"})]}})
}

test_texts_name_the_way_out if {
	sent := object.union(machine(on), {
		"texts": [{"name": "lspci.txt", "lines": 1, "bytes": 1, "kinds": []}],
		"origins": [{"fact": "pci.devices[0000:40:01.1].acs", "source": "lspci.txt", "line": 7}],
	})
	some f in acs_redirect.findings with input as sent
	f.remedies == ["disable-acs", "nccl-p2p-disable"]
}

acs_paths_a := "0000:41:00.0"
acs_paths_b := "0000:61:00.0"
acs_paths_nic := "0000:42:00.0"

acs_paths_port(address, bits) := {"address": address, "vendor": "0x1022", "class": "0x060400", "kind": "bridge", "acs": {"control": bits}}

acs_paths_pair := {"a": acs_paths_a, "b": acs_paths_b, "kind": "gpu-gpu", "nvlinks": 0, "bridges": ["0000:40:01.1", "0000:60:01.1"]}
below := {"a": acs_paths_a, "b": acs_paths_nic, "kind": "gpu-nic", "bridges": ["0000:40:01.1"], "common_bridge": "0000:40:00.0"}

acs_paths_machine(pairs, nic_class) := {
	"host": {"virtualization": {"guest": false}},
	"gpus": {"devices": [{"address": x, "vendor": "nvidia"} | some x in [acs_paths_a, acs_paths_b]]},
	"links": {"pairs": pairs},
	"pci": {"devices": [
		acs_paths_port("0000:40:01.1", ["ReqRedir"]), acs_paths_port("0000:60:01.1", []),
		{"address": acs_paths_nic, "vendor": "0x8086", "class": nic_class, "kind": "nic"},
	]},
}

test_standing if {
	acs_redirect.standing(below) == "rdma" with input as acs_paths_machine([below], "0x020700")
	acs_redirect.standing(below) == "nic" with input as acs_paths_machine([below], "0x020000")
	amd := {"gpus": {"devices": [{"address": x, "vendor": "amd"} | some x in [acs_paths_a, acs_paths_b]]}}
	acs_redirect.standing(acs_paths_pair) == "tolerated" with input as object.union(acs_paths_machine([acs_paths_pair], "0x020000"), amd)
}

# plx is the port of a switch that redirects requests.
acs_ports_plx := {"address": "0000:3a:08.0", "vendor": "0x10b5", "kind": "bridge", "acs": {"control": ["SrcValid", "ReqRedir"]}}
root := object.union(acs_ports_plx, {"vendor": "0x1022"})

cut(devices) := {"pci": {"partial": true, "devices": devices}}

test_ports_of_switches if {
	acs_redirect.loose == {"0000:3a:08.0"} with input as cut([object.union(root, {"port_type": "downstream-port"})])
	acs_redirect.port_bits == {"ReqRedir"} with input as cut([acs_ports_plx])
	acs_redirect.loose == set() with input as cut([object.union(acs_ports_plx, {"acs": {"control": ["SrcValid"]}})])
	acs_redirect.loose == set() with input as {"pci": {"partial": false, "devices": [acs_ports_plx]}}
}

test_a_port_on_a_known_path_is_not_loose if {
	path := {"links": {"pairs": [{"a": "0000:41:00.0", "b": "0000:61:00.0", "kind": "gpu-gpu", "bridges": ["0000:3a:08.0"]}]}}
	acs_redirect.loose == set() with input as object.union(cut([acs_ports_plx]), path)
}

# setpci shows a register, and neither the class nor the kind of its port.
test_a_register_alone_where_a_job_fails if {
	register := {"pci": {"devices": [{"address": "0000:3a:08.0", "acs": {"control": ["CmpltRedir"]}}]}}
	acs_redirect.loose == set() with input as register
	failed := {"benchmarks": [{"tool": "nccl-tests", "what": "collective", "complete": false}]}
	acs_redirect.loose == {"0000:3a:08.0"} with input as object.union(register, failed)
}
