package gpudoctor.lib.xid_test

import data.gpudoctor.lib.xid

test_every_code_is_complete if {
	every code, m in xid.meaning {
		m.class in {"fault", "link", "application", "secondary", "note"}
		xid.severity(code) in {"critical", "high", "medium", "low", "info"}
		is_array(xid.remedies(code))
		xid.name(code) == m.name
	}
}

test_severity if {
	xid.severity(79) == "critical"
	xid.severity(31) == "low"
	xid.severity(45) == "info"
}

test_unknown_code if {
	xid.severity(9999) == "medium"
	xid.remedies(9999) == ["other"]
	xid.name(9999) == "unknown to gpudoctor"
}

test_sxid_severity if {
	xid.sxid_severity({"code": 23009}) == "critical"
	xid.sxid_severity({"code": 11012, "fatal": true}) == "critical"
	xid.sxid_severity({"code": 29999, "fatal": true}) == "critical"
	xid.sxid_severity({"code": 20034, "fatal": false}) == "high"
	xid.sxid_severity({"code": 20009}) == "info"
	xid.sxid_severity({"code": 39999}) == "medium"
	xid.sxid_severity({"code": 39999, "fatal": false}) == "low"
	xid.sxid_severity({"code": 39999, "id": "kernel-sxid-data"}) == "info"
}

test_times if {
	xid.times({{"count": 1}}) == "once"
	xid.times({{"count": 1, "message": "a"}, {"count": 4}}) == "5 times"
}

test_source if {
	xid.source == "/dev/kmsg" with input as {"kernel_log": {"source": "/dev/kmsg"}}
	xid.source == "kernel log" with input as {"kernel_log": {"source": ""}}
}

test_remedies if {
	xid.remedies(31) == ["fix-application"]
	xid.remedies(45) == []
	xid.remedies(63) == ["reset-gpu"]
	xid.remedies(79)[0] == "reboot"
	xid.remedies(119) == ["reset-gpu", "reboot", "upgrade-driver"]
}
