package gpudoctor.rules.acs_redirect_test

import data.gpudoctor.rules.acs_redirect

a := "0000:41:00.0"
b := "0000:61:00.0"
nic := "0000:42:00.0"
on := ["SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"]
port(address, more) := object.union(
	{
		"address": address, "vendor": "0x1022", "class": "0x060400", "kind": "bridge", "extended": true,
		"acs": {"capability": on, "control": on},
	},
	more,
)

pair := {"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 0, "bridges": ["0000:40:01.1", "0000:60:01.1"]}
below := {"a": a, "b": nic, "kind": "gpu-nic", "bridges": ["0000:40:01.1"], "common_bridge": "0000:40:00.0"}
guest := {"host": {"virtualization": {"guest": true}}}
guests := {"host": {"virtualization": {"guest": false, "passthrough_host": true}}}

# gpus are those of the machine, of a vendor.
gpus(vendor) := {"gpus": {"devices": [{"address": address, "vendor": vendor, "nvlinks": []} | some address in [a, b]]}}

# tree are the bridges with these bits, and the GPUs with or without address translation.
tree(bits, translates) := object.union(gpus("nvidia"), {
	"host": {"virtualization": {"guest": false}},
	"links": {"pairs": [pair]},
	"pci": {"devices": array.concat(
		[port(address, {"acs": {"capability": on, "control": bits}}) | some address in pair.bridges],
		[{"address": address, "vendor": "0x10de", "class": "0x030200", "kind": "gpu", "driver": "nvidia", "extended": true, "ats": {"enabled": ats}} |
			some address, ats in translates
		],
	)},
})

machine := tree(on, {a: false, b: false})
direct(second) := tree(array.concat(on, ["DirectTrans"]), {a: true, b: second})

transfers(outcome) := {"transfers": {"outcome": "ok", "transfers": [
	{"test": "copy", "source": a, "destination": b, "outcome": outcome},
	{"test": "copy", "source": b, "destination": a, "outcome": "ok"},
]}}

# with_nic has a NIC on the same switch as a GPU.
with_nic(link, vendor, class) := object.union(machine, {
	"links": {"pairs": [link]},
	"pci": {"devices": [port("0000:40:01.1", {}), {"address": nic, "vendor": vendor, "class": class, "kind": "nic", "extended": true}]},
})

# What people send: ports without their devices, or cut trees.
unnamed := {"pci": {"devices": [], "partial": true, "unnamed_acs": [
	{"control": ["SrcValid"], "count": 9, "source": "lspci.txt", "line": 2},
	{"control": on, "count": 2, "source": "lspci.txt", "line": 11},
]}}

failing := {"logs": {"messages": [{
	"id": "x-y", "program": "cuda", "role": "category", "text": "an illegal memory access was encountered",
	"source": "nccl.log", "line": 3, "order": 0, "count": 1, "ranks": 1,
}]}}

job_test := {"benchmarks": [{
	"tool": "nccl-tests", "test": "all_reduce", "what": "collective", "complete": false, "source": "t", "line": 1,
}]}

# plx is the port of a switch, root that of the processor.
plx(more) := port("0000:3a:08.0", object.union({"vendor": "0x10b5"}, more))
root(more) := port("0000:3a:08.0", more)
cut(devices) := {"pci": {"partial": true, "devices": devices}}

test_findings if {
	every row in [
		[with_nic(below, "0x15b3", "0x020000"), {["medium", "likely", [a]]}],
		[with_nic(object.remove(below, ["common_bridge"]), "0x15b3", "0x020000"), set()],
		[unnamed, {["low", "possible", []]}],
		[object.union_n([unnamed, failing, guest]), set()],
		[cut([plx({})]), {["low", "possible", []]}],
		[object.union(cut([plx({})]), job_test), {["high", "likely", []]}],
		[object.union(cut([root({})]), failing), set()],
	] {
		found := acs_redirect.findings with input as row[0]
		{[f.severity, f.confidence, object.get(f, "affects", [])] | some f in found} == row[1]
	}
}

# The way through host memory is advised where peer access fails. Pass-through is advised where data is lost, unless it is in force.
test_advice if {
	every row in [
		[[transfers("corrupt"), {"iommu": {"mode": "off"}}], ["nccl-p2p-disable", "disable-acs"]],
		[
			[transfers("corrupt"), {"iommu": {"groups": [{"id": 1, "type": "identity", "devices": [a, b]}]}}],
			["nccl-p2p-disable", "disable-acs"],
		],
		[[guests], []],
		[[guests, transfers("hang")], ["nccl-p2p-disable"]],
		[[{"texts": [{"name": "lspci.txt", "lines": 1, "bytes": 1, "kinds": []}]}], ["disable-acs", "nccl-p2p-disable"]],
	] {
		found := acs_redirect.findings with input as object.union(machine, object.union_n(row[0]))
		{f.remedies | some f in found} == {row[1]}
	}
}

test_direct_translated_p2p if {
	count(acs_redirect.findings) == 0 with input as direct(true)
	count(acs_redirect.findings) == 1 with input as direct(false)
}

test_standing if {
	acs_redirect.standing(below) == "rdma" with input as with_nic(below, "0x8086", "0x020700")
	not acs_redirect.standing(pair) with input as object.union(machine, gpus("amd"))
}

# setpci shows a register, and not the kind of its port.
register := {"pci": {"devices": [{"address": "0000:3a:08.0", "acs": {"control": ["CmpltRedir"]}}]}}

test_loose if {
	every row in [
		[cut([root({"port_type": "downstream-port"})]), {"0000:3a:08.0"}],
		[cut([plx({"acs": {"control": ["SrcValid"]}})]), set()],
		[{"pci": {"partial": false, "devices": [plx({})]}}, set()],
		[register, set()],
		[object.union(register, job_test), {"0000:3a:08.0"}],
		[object.union(cut([plx({})]), {"links": {"pairs": [object.union(pair, {"bridges": ["0000:3a:08.0"]})]}}), set()],
	] {
		acs_redirect.loose == row[1] with input as row[0]
	}
}

test_unresolvable_in_a_virtual_machine if {
	document := object.union_n([gpus("nvidia"), guest, {"links": {"pairs": [object.union(pair, {"bridges": []})]}}])
	count(acs_redirect.findings) == 0 with input as document
	count(acs_redirect.missing) == 1 with input as document
}
