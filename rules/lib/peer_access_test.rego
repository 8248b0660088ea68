package gpudoctor.lib.peer_access_test

import data.gpudoctor.lib.peer_access

a := "0000:01:00.0"
b := "0000:02:00.0"

copy(outcome, gbps) := {"test": "copy", "source": a, "destination": b, "outcome": outcome, "gbps": gbps}
transfers(list) := {"transfers": {"outcome": "ok", "transfers": list}}
staged(gbps) := {"test": "host-staged", "source": a, "destination": b, "outcome": "ok", "gbps": gbps}

test_measured if {
	both := transfers([copy("ok", 50), staged(10)])
	peer_access.share_lost == 0.8 with input as both
	peer_access.measured == "2 of 2 paths between GPUs carried verified data at up to 50 GB/s" with input as transfers([copy("ok", 50), copy("ok", 48)])
}

test_staged_compared if {
	peer_access.staged_slower with input as transfers([copy("slow", 25), staged(11)])
	peer_access.staged_faster with input as transfers([copy("slow", 3), staged(11)])
}
