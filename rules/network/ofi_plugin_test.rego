package gpudoctor.rules.ofi_plugin_test

import data.gpudoctor.rules.ofi_plugin

base := {"program": "ofi", "role": "cause", "source": "nccl.log", "count": 1, "ranks": 1}

log(rows) := {"logs": {"messages": [object.union(object.union(base, {"order": i, "line": i + 1}), row) | some i, row in rows]}}

failure := {"id": "nccl-x", "program": "nccl", "text": "NCCL WARN x"}
efa := {"env": {"variables": [{"name": "FI_PROVIDER", "value": "efa", "effective": true}]}}
several := {"launches": [{"nodes": 2}]}

# grades are those that a finding states itself.
grades(document) := {[f.id, object.get(f, "severity", ""), object.get(f, "confidence", "")] | some f in ofi_plugin.findings with input as document}

test_fires_on_fi_info if {
	grades(object.union({"nics": {"providers": ["tcp", "shm"]}}, efa)) == {["no-efa", "", ""]}
	grades({"nics": {"providers": ["tcp"]}}) == set()
}

test_fires_on_another_provider if {
	tcp := log([{"id": "ofi-provider", "role": "setting", "text": "x", "fields": {"provider": "tcp"}}])
	grades(object.union(tcp, efa)) == {["other-provider", "", ""]}
	grades(object.union(tcp, several)) == {["other-provider", "", ""]}
	grades(tcp) == set()
}

test_fires_on_its_description_of_the_machine if {
	lacks := {"id": "nccl-topo-attribute-missing", "program": "nccl", "text": "x", "fields": {"attribute": "arch", "node": "cpu"}}
	names := {"id": "ofi-platform", "role": "setting", "text": "Running on p5.48xlarge platform, Setting NCCL_TOPO_FILE environment variable to /x"}
	grades(log([names, lacks])) == {["description", "", ""]}
	grades(log([object.union(names, {"text": "Running on p5.48xlarge platform"}), lacks])) == set()
}

unfound(fields) := {"id": "nccl-network-not-found", "program": "nccl", "text": "x", "fields": fields}

test_fires_when_asked_for_by_name if {
	grades(log([unfound({"network": "AWS Libfabric"})])) == {["not-found", "", ""]}
	named := {"env": {"variables": [{"name": "NCCL_NET_PLUGIN", "value": "ofi", "effective": true}]}}
	none := log([unfound({})])
	grades(object.union(none, named)) == {["not-found", "", ""]}
}

socket(hosts) := {"logs": {"messages": [], "networks": [{"host": h, "name": "Socket", "source": "nccl.log", "line": 3, "count": 1} | some h in hosts]}}

test_fires_on_tcp_where_efa_is_meant if {
	grades(object.union(socket(["a", "b"]), efa)) == {["tcp", "high", "likely"]}
	one := object.union(socket(["a"]), {"logs": {"communicators": [{"nodes": 1}]}})
	grades(object.union(one, efa)) == set()
}

test_suspects_tcp_on_instances_with_efa if {
	hosts := ["ip-10-0-0-1", "ip-10-0-0-2"]
	gpus := {"gpus": {"devices": [{"address": "0000:53:00.0", "name": "NVIDIA H100 80GB HBM3"}]}}
	grades(object.union(socket(hosts), gpus)) == {["tcp", "medium", "possible"]}
	grades(socket(hosts)) == set()
	grades(object.union(socket(["n1", "n2"]), gpus)) == set()
}

test_unresolvable if count(ofi_plugin.missing) == 1 with input as {}

test_fires_where_efa_lacks_its_plugin if {
	machine := {
		"pci": {"devices": [{"address": "0000:00:07.0", "vendor": "0x1d0f", "device": "0xefa2"}]},
		"gpus": {"devices": [{"address": "0000:00:08.0", "vendor": "nvidia", "in_nvml": true}], "nvml": "ok"},
	}
	grades(object.union(machine, {"libraries": {"files": []}})) == {["not-installed", "", ""]}
	grades(object.union(machine, {"libraries": {"files": [{"kind": "nccl-net"}]}})) == set()
}
