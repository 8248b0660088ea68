package gpudoctor.rules.ofi_plugin_test

import data.gpudoctor.rules.ofi_plugin

base := {"program": "ofi", "role": "cause", "source": "nccl.log", "count": 1, "ranks": 1}

log(rows) := {"logs": {"messages": [object.union(object.union(base, {"order": i, "line": i + 1}), row) | some i, row in rows]}}
efa := {"env": {"variables": [{"name": "FI_PROVIDER", "value": "efa", "effective": true}]}}
several := {"launches": [{"nodes": 2}]}

# grades are those of the metadata where a finding has none.
grades(document) := {[object.get(f, "severity", "high"), object.get(f, "confidence", "likely")] | some f in ofi_plugin.findings with input as document}

test_fires_on_fi_info if {
	grades(object.union({"nics": {"providers": ["tcp", "shm"]}}, efa)) == {["high", "likely"]}
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
