package gpudoctor.lib.xid_test

import data.gpudoctor.lib.xid

test_sxid_severity if {
	xid.sxid_severity({"code": 23009}) == "critical"
	xid.sxid_severity({"code": 29999, "fatal": true}) == "critical"
	xid.sxid_severity({"code": 20034, "fatal": false}) == "high"
	xid.sxid_severity({"code": 39999}) == "medium"
	xid.sxid_severity({"code": 39999, "fatal": false}) == "low"
	xid.sxid_severity({"code": 39999, "id": "kernel-sxid-data"}) == "info"
}
