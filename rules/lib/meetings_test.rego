package gpudoctor.lib.meetings_test

import data.gpudoctor.lib.meetings

env(value) := {"env": {"variables": [{"name": "MASTER_ADDR", "value": value, "source": "environment", "effective": true}]}}

test_meeting_by_variable if {
	meetings.meeting == {"10.4.0.1"} with input as env("10.4.0.1")
	meetings.meeting == set() with input as env("node1")
}
