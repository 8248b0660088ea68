package gpudoctor.lib.meetings_test

import data.gpudoctor.lib.meetings

env(value) := {"env": {"variables": [{"name": "MASTER_ADDR", "value": value, "source": "environment", "effective": true}]}}

test_meeting_by_variable if {
	meetings.meeting == {"10.4.0.1"} with input as env("10.4.0.1")
	meetings.meeting == set() with input as env("node1")
}

test_meeting_by_option if {
	every command in [["torchrun", "--master_addr=10.4.0.1"], ["torchrun", "--rdzv-endpoint", "10.4.0.1:29500"], ["python", "--dist-init-addr", "tcp://10.4.0.1:5000"]] {
		meetings.meeting == {"10.4.0.1"} with input as {"launches": [{"command": command}]}
	}
	meetings.meeting == set() with input as {"launches": [{"command": ["torchrun", "--nnodes", "10.4.0.1"]}]}
}

interface(name, address) := {"name": name, "state": "up", "addresses": [address]}

failed := {
	"id": "nccl-connect-timed-out", "role": "cause", "program": "nccl", "text": "connect to 192.168.7.9 timed out",
	"fields": {"remote": "192.168.7.9", "error": "Connection timed out"}, "source": "a.log", "line": 1, "order": 0, "count": 1, "ranks": 1,
}

job := object.union(env("10.4.0.1"), {"logs": {"messages": [failed]}})

test_off_meeting if {
	both := object.union(job, {"nics": {"interfaces": [interface("eth0", "10.4.0.2/16"), interface("eth1", "192.168.7.2/24")]}})
	some f in meetings.off_meeting with input as both
	f.taken.name == "eth1"
	f.meant.name == "eth0"
	f.remote == "192.168.7.9"
	one := object.union(job, {"nics": {"interfaces": [interface("eth1", "192.168.7.2/24")]}})
	count(meetings.off_meeting) == 0 with input as one
}
