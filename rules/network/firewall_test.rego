package gpudoctor.rules.firewall_test

import data.gpudoctor.rules.firewall

base := {"program": "nccl", "role": "cause", "source": "nccl.log", "count": 1, "ranks": 1}

log(rows) := {"logs": {"messages": [object.union(object.union(base, {"order": i, "line": i + 1}), row) | some i, row in rows]}}
failed(remote, error) := {"id": "nccl-connect-failed", "text": "NCCL WARN Connect to a peer failed", "fields": {"remote": remote, "error": error}}

oom := {"id": "pytorch-cuda-oom", "program": "pytorch", "text": "CUDA out of memory"}

# grades are those of the metadata where a finding has none.
grades(document) := {[object.get(f, "severity", "critical"), object.get(f, "confidence", "likely")] | some f in told(document)}

# told leaves out what first_of does.
told(document) := [f | some f in all; not second(f, all)] if all := firewall.findings with input as document

second(f, all) if {
	f.id == "doubtful"
	some other in all
	other.id == "blocked"
}

test_fires_on_silence if grades(log([failed("10.0.0.4", "No route to host")])) == {["critical", "likely"]}

tries(port) := {"id": "openmpi-oob-connecting", "program": "openmpi", "role": "setting", "text": "x", "fields": {"remote": "10.0.0.4", "port": port}}

test_fires_on_dropped_packets if {
	dropped := {"id": "kernel-ufw-block", "program": "kernel", "role": "setting", "text": "[UFW BLOCK]", "fields": {"from": "10.0.0.3", "to": "10.0.0.4", "port": "4157"}}
	grades(log([tries("4157"), dropped])) == {["critical", "likely"]}
	grades(log([tries("4158"), dropped])) == set()
}

opens(port) := {"id": "kubernetes-policy-port", "program": "kubernetes", "role": "setting", "text": "To Port", "fields": {"port": port}}

test_fires_on_ports_that_a_policy_leaves_out if {
	at := object.union(failed("10.0.0.4", "Software caused connection abort"), {"fields": {"port": "42817"}})
	["critical", "likely"] in grades(log([at, opens("29500")]))
	not ["critical", "likely"] in grades(log([at, opens("42817")]))
}

test_doubts_what_has_other_reasons if {
	grades(log([failed("10.0.0.4", "Connection refused")])) == {["low", "possible"]}
	grades(object.union(log([failed("10.0.0.4", "Connection refused")]), {"launches": [{"nodes": 2}]})) == {["high", "possible"]}
	grades(log([{"id": "socket-timed-out", "program": "socket", "role": "category", "text": "x", "fields": {"remote": "10.0.0.7"}}])) == {["medium", "possible"]}
	grades(log([oom, failed("10.0.0.4", "Connection refused")])) == set()
}

# What refuses a connection to the own address is no firewall.
test_silent_on_own_address if {
	own := {"id": "nccl-bootstrap-interface", "role": "setting", "text": "x", "host": "a", "fields": {"interfaces": "eth0:10.0.0.4<0>"}}
	grades(log([object.union(failed("10.0.0.4", "Connection refused"), {"host": "a"})])) == {["low", "possible"]}
	grades(log([own, object.union(failed("10.0.0.4", "Connection refused"), {"host": "a"})])) == set()
}

# The address of a bridge, or interfaces in different networks, explain it.
test_leaves_wrong_interfaces_to_their_rule if {
	grades(log([failed("172.17.0.1", "Connection timed out")])) == set()
}
