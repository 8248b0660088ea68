package gpudoctor.rules.ofi_plugin_test

import data.gpudoctor.rules.ofi_plugin

base := {"program": "ofi", "role": "cause", "source": "nccl.log", "count": 1, "ranks": 1}

log(rows) := {"logs": {"messages": [object.union(object.union(base, {"order": i, "line": i + 1}), row) | some i, row in rows]}}
said(id, text) := {"id": id, "text": text}

failure := {"id": "nccl-x", "program": "nccl", "text": "NCCL WARN x"}
efa := {"env": {"variables": [{"name": "FI_PROVIDER", "value": "efa", "effective": true}]}}
several := {"launches": [{"nodes": 2}]}

# grades are those of the metadata where a finding has none.
grades(document) := {[object.get(f, "severity", "high"), object.get(f, "confidence", "likely")] | some f in ofi_plugin.findings with input as document}
first(document) := {f.remedies[0] | some f in ofi_plugin.findings with input as document}

says(document, words) if {
	some f in ofi_plugin.findings with input as document
	contains(f.message, words)
}

test_fires_on_fi_info if {
	grades(object.union({"nics": {"providers": ["tcp", "shm"]}}, efa)) == {["high", "confirmed"]}
	grades({"nics": {"providers": ["tcp"]}}) == set()
}

test_fires_on_another_provider if {
	tcp := log([{"id": "ofi-provider", "role": "setting", "text": "x", "fields": {"provider": "tcp"}}])
	grades(object.union(tcp, efa)) == {["high", "likely"]}
	grades(object.union(tcp, several)) == {["high", "likely"]}
	grades(tcp) == set()
}

unfound(fields) := {"id": "nccl-network-not-found", "program": "nccl", "text": "x", "fields": fields}

test_fires_when_asked_for_by_name if {
	grades(log([unfound({"network": "AWS Libfabric"})])) == {["critical", "confirmed"]}
	named := {"env": {"variables": [{"name": "NCCL_NET_PLUGIN", "value": "ofi", "effective": true}]}}
	none := log([unfound({})])
	grades(object.union(none, named)) == {["critical", "confirmed"]}
}

socket(hosts) := {"logs": {"messages": [], "networks": [{"host": h, "name": "Socket", "source": "nccl.log", "line": 3, "count": 1} | some h in hosts]}}

test_fires_on_tcp_where_efa_is_meant if {
	grades(object.union(socket(["a", "b"]), efa)) == {["high", "likely"]}
	grades(object.union(socket(["a"]), efa)) == {["medium", "likely"]}
	one := object.union(socket(["a"]), {"logs": {"communicators": [{"nodes": 1}]}})
	grades(object.union(one, efa)) == set()
}

test_suspects_tcp_on_instances_with_efa if {
	hosts := ["ip-10-0-0-1", "ip-10-0-0-2"]
	gpus := {"gpus": {"devices": [{"address": "0000:53:00.0", "name": "NVIDIA H100 80GB HBM3"}]}}
	grades(object.union(socket(hosts), gpus)) == {["medium", "possible"]}
	grades(socket(hosts)) == set()
	grades(object.union(socket(["n1", "n2"]), gpus)) == set()
	table := {"benchmarks": [{"gpu_names": ["NVIDIA A100-SXM4-40GB"]}]}
	some f in ofi_plugin.findings with input as object.union(json.patch(socket(hosts), [{"op": "replace", "path": "logs/messages", "value": [object.union(base, {"id": "nccl-net-plugin-not-found", "role": "setting", "program": "nccl", "host": "ip-10-0-0-1", "text": "NET/Plugin : No plugin found (libnccl-net.so)", "order": 0, "line": 1})]}]), table)
	count(f.evidence) == 2
}

test_unresolvable if count(ofi_plugin.missing) == 1 with input as {}

topology(path) := {"env": {"variables": [{"name": "NCCL_TOPO_FILE", "value": path, "effective": true}]}}

test_fires_on_the_plugins_own_topology if {
	rows := [said("ofi-platform", "NET/OFI Running on p5.48xlarge platform, Setting NCCL_TOPO_FILE"), said("nccl-topo-attribute-missing", "Attribute arch of node cpu not found")]
	document := object.union(log(rows), topology("/opt/aws-ofi-nccl/xml/p5.48xl-topo.xml"))
	says(document, "since 1.11")
	not says(object.union(log(rows), topology("/etc/topo.xml")), "since 1.11")
	not says(object.union(log([rows[1]]), topology("/opt/aws-ofi-nccl/xml/p5.48xl-topo.xml")), "since 1.11")
}

hung := {"id": "torch-watchdog-timeout", "program": "pytorch", "role": "consequence", "text": "Watchdog caught collective operation timeout"}

provider(name) := {"id": "ofi-provider", "role": "setting", "text": "NET/OFI Selected Provider is x", "fields": {"provider": name}}

test_a_collective_that_hangs_over_slingshot if {
	document := log([provider("cxi"), hung])
	grades(document) == {["medium", "possible"]}
	first(document) == {"fix-ofi-plugin"}
	grades(log([provider("efa"), hung])) == set()
	known := {"env": {"variables": [{"name": "FI_MR_CACHE_MONITOR", "value": "userfaultfd", "effective": true}]}}
	grades(object.union(document, known)) == set()
}

test_fires_where_efa_lacks_its_plugin if {
	machine := {
		"pci": {"devices": [{"address": "0000:00:07.0", "vendor": "0x1d0f", "device": "0xefa2"}]},
		"gpus": {"devices": [{"address": "0000:00:08.0", "vendor": "nvidia", "in_nvml": true}], "nvml": "ok"},
	}
	grades(object.union(machine, {"libraries": {"files": []}})) == {["low", "possible"]}
	grades(object.union(machine, {"libraries": {"files": [{"kind": "nccl-net"}]}})) == set()
}
