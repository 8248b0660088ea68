package gpudoctor.rules.firewall_test

import data.gpudoctor.rules.firewall

base := {"program": "nccl", "role": "cause", "source": "nccl.log", "count": 1, "ranks": 1}

log(rows) := {"logs": {"messages": [object.union(object.union(base, {"order": i, "line": i + 1}), row) | some i, row in rows]}}

failed(text) := {"id": "nccl-net-connect-failed", "text": concat("", ["NCCL WARN Connect to ", text])}

ofi(id) := {"id": id, "program": "ofi", "text": "NET/OFI x"}

oom := {"id": "pytorch-cuda-oom", "program": "pytorch", "text": "CUDA out of memory"}

setting(id, more) := object.union({"id": id, "program": "kernel", "role": "setting", "text": id}, more)

using(host, text) := {"id": "nccl-net-interface", "role": "setting", "host": host, "text": concat("", ["Bootstrap : Using ", text])}

grades(document) := {[f.severity, f.confidence] | some f in firewall.findings with input as document}

says(document, words) if {
	some f in firewall.findings with input as document
	contains(f.message, words)
}

test_fires_on_efa if {
	grades(log([ofi("ofi-security-group"), ofi("ofi-peer-unreachable")])) == set()
	grades(log([ofi("ofi-peer-unreachable"), oom])) == {["critical", "likely"]}
	grades(log([oom, ofi("ofi-peer-unreachable")])) == {["critical", "possible"]}
	says(log([oom, ofi("ofi-peer-unreachable")]), "other ranks had failed before")
}

test_suspects_a_group_where_efa_says_nothing if {
	plain := {"id": "ofi-request-failed", "program": "ofi", "role": "category", "text": "NET/OFI Request completed with error. RC: 21."}
	grades(log([plain])) == {["medium", "possible"]}
	grades(log([oom, plain])) == set()
}

test_fires_on_open_mpi if {
	grades(log([{"id": "openmpi-firewall", "program": "openmpi", "text": "A process or daemon was unable to complete a TCP connection"}])) == {["critical", "likely"]}
}

test_silent_when_a_peer_is_gone if {
	grades(log([{"id": "ofi-peer-gone", "program": "ofi", "role": "consequence", "text": "x"}])) == set()
}

test_fires_on_silence if {
	grades(log([failed("10.0.0.4<7> failed : Connection timed out")])) == {["critical", "likely"]}
	grades(log([failed("10.0.0.4<7> failed : No route to host")])) == {["critical", "likely"]}
	active := setting("firewall-ufw-active", {})
	says(log([failed("10.0.0.4<7> failed : No route to host"), active]), "A firewall is on")
	block := setting("kernel-ufw-block", {"fields": {"from": "10.0.0.5", "to": "10.0.0.4"}})
	grades(log([failed("10.0.0.4<7> failed : No route to host"), block])) == {["critical", "confirmed"]}
	says(log([{"id": "gloo-connect-failed", "program": "gloo", "text": "Connection timed out"}]), "A connection failed")
}

test_doubts_what_has_other_reasons if {
	grades(log([failed("10.0.0.4<7> failed : Connection refused")])) == {["low", "possible"]}
	grades(object.union(log([failed("10.0.0.4<7> failed : Connection refused")]), {"launches": [{"nodes": 2}]})) == {["high", "possible"]}
	soft := {"id": "socket-timed-out", "program": "socket", "role": "category", "text": "nc: connect to 10.0.0.7 port 1 failed: Connection timed out"}
	grades(log([soft])) == {["medium", "possible"]}
	store := {"id": "torch-store-timed-out", "program": "pytorch", "role": "category", "text": "The client socket has timed out after 600000ms while trying to connect to (10.0.0.1, 29500)."}
	grades(log([store])) == {["medium", "possible"]}
	grades(log([oom, failed("10.0.0.4<7> failed : Connection refused")])) == set()
}

# The address of a bridge, or interfaces in different networks, explain it.
test_leaves_wrong_interfaces_to_their_rule if {
	grades(log([failed("172.17.0.1<7> failed : Connection timed out")])) == set()
	apart := [using("a", "eth0:10.0.0.4<0>"), using("b", "ens3:192.168.7.4<0>"), failed("10.0.0.4<7> failed : Connection timed out")]
	grades(log(apart)) == {["critical", "possible"]}
	bridge := [using("a", "docker0:172.17.0.1<0>"), using("b", "eth0:10.0.0.4<0>"), failed("10.0.0.4<7> failed : Connection timed out")]
	grades(log(bridge)) == {["critical", "possible"]}
}

test_silent_on_one_machine if {
	document := object.union(log([failed("10.0.0.4<7> failed : Connection refused")]), {"logs": {"communicators": [{"nodes": 1}]}})
	grades(document) == set()
	grades(log([setting("firewall-ufw-active", {})])) == set()
}

test_unresolvable if {
	count(firewall.missing) == 1 with input as {}
	count(firewall.missing) == 0 with input as log([])
	count(firewall.findings) == 0 with input as {}
}

# A firewall that is on weighs more than that one machine is all that is seen.
test_refused_with_a_firewall_on if {
	aborted := {"id": "nccl-net-connect-failed", "text": "NCCL WARN socketStartConnect: Connect to 10.0.0.4<7> failed : Software caused connection abort"}
	grades(log([aborted])) == {["low", "possible"]}
	grades(log([aborted, setting("firewall-ufw-active", {})])) == {["high", "possible"]}
}

sidecar := setting("kubernetes-sidecar", {"program": "kubernetes"})

store(text) := {"id": "torch-store-closed", "program": "pytorch", "role": "consequence", "text": text}

test_fires_on_a_service_mesh if {
	document := log([sidecar, store("recvValue failed on SocketImpl: failed to recv, got 0 bytes")])
	grades(document) == {["high", "likely"]}
	says(document, "sidecar.istio.io/inject")
	grades(log([store("failed to recv, got 0 bytes")])) == set()
	grades(log([sidecar])) == set()
	grades(log([oom, sidecar, store("failed to recv, got 0 bytes")])) == set()
}

# A tunnel that NCCL took by itself needs no firewall to be unanswered.
test_doubts_where_a_tunnel_was_taken if {
	document := object.union(
		log([using("a", "rsip:172.30.12.4<0>"), failed("172.30.12.9<41213> failed : Connection timed out")]),
		{"nics": {"interfaces": [
			{"name": "ib0", "state": "up", "addresses": ["10.128.0.4/14"], "source": "if.txt", "line": 1},
			{"name": "rsip", "state": "up", "addresses": ["172.30.12.4/32"], "source": "if.txt", "line": 2},
		]}},
	)
	grades(document) == {["critical", "possible"]}
}

began(completed) := {"logs": {"communicators": [{"nodes": 2, "started": 2, "completed": completed, "ranks": 2}]}}

test_suspects_a_service_mesh_of_silence if {
	grades(object.union(log([sidecar]), began(0))) == {["high", "possible"]}
	grades(object.union(log([sidecar]), began(2))) == set()
	grades(object.union(log([sidecar, oom]), began(0))) == set()
	grades(began(0)) == set()
}

test_silent_for_a_unix_socket if {
	uds := {"id": "nccl-uds-send-failed", "text": "NCCL WARN UDS: Sending data over socket /tmp/nccl-socket-3-5f1a failed : Connection refused (111)"}
	count(firewall.findings) == 0 with input as log([uds])
	mesh := {"id": "kubernetes-sidecar", "program": "kubernetes", "role": "setting", "text": "istio-proxy"}
	count(firewall.findings) == 0 with input as log([mesh, uds])
}
