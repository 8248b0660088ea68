# METADATA
# title: Transfers that fail although peer access is offered
# description: >-
#   The probe's failed transfers by ordered pair, how they group, and what the
#   transfers that arrived show about the faulty part.
package gpudoctor.lib.broken_transfers

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.staging
import data.gpudoctor.lib.transfers

# broken are the failed transfers of each ordered pair. If data is also lost through host
# memory, the GPU is at fault, not the path between them.
broken[[t.source, t.destination]] contains t if {
	some ts in peers.trouble
	some t in ts
	not staging.failed(t.source, t.destination)
}

failures := {direction: ts | some direction, ts in broken}

worst(ts) := [outcome | some outcome in ["hang", "corrupt", "error"]; outcome in {t.outcome | some t in ts}][0]

# kind groups ordered pairs that fail alike, so that a broken platform with
# eight GPUs gives one finding, not 56.
kind(ts) := {"worst": worst(ts), "paths": transfers.paths(ts)}

# exported: only between processes, the driver's export of memory is at fault, and a
# single process works. If one of the two mechanisms works, programs that use it work;
# NCCL uses cuMem by default.
exported := {"between processes"}

# slow_too are the transfers of the same pairs that arrived slowly.
slow_too(group) := {t |
	some d, _ in group
	some t in peers.sluggish[peers.key(d[0], d[1])]
	[t.source, t.destination] == d
}

offered(group) := [{
	"fact": sprintf("transfers.peers[%s].access", [facts.pair_name(d[0], d[1])]),
	"value": true,
	"source": "cuDeviceCanAccessPeer",
} |
	some d in sort(object.keys(group))
	peers.access[d] == true
]

# remarks point to the part that is at fault.
remarks(group) := sort({text | some name in remark_names; text := remark(name, group, transfers.all(group))})

remark_names := ["one way", "stores only", "copies only", "not switched on", "at times", "together", "atomics", "handshake", "staged"]

remark("one way", group, ts) := "It fails in one direction only." if {
	not transfers.only_mutual(ts)
	every d in object.keys(group) {
		not failures[[d[1], d[0]]]
		some t in peers.transfers_of[peers.key(d[0], d[1])]
		t.source == d[1]
		t.outcome == "ok"
	}
}

remark("stores only", group, ts) := "The copy engines work: only loads and stores of the SMs fail, which NCCL's kernels use." if {
	transfers.paths(ts) == {"SM"}
	count(transfers.tests(ts) & {"sm-store", "sm-load"}) > 0
	fine(group, "copy engine")
}

remark("copies only", group, ts) := "Loads and stores of the SMs work: only the copy engines fail." if {
	transfers.paths(ts) == {"copy engine"}
	fine(group, "SM")
	count(enabling_calls(ts)) == 0
}

# The driver offers peer access and then fails to switch it on, so that no transfer
# was begun.
remark("not switched on", _, ts) := sprintf("It cannot even be enabled (%s).", [concat(", ", sort(calls))]) if {
	calls := enabling_calls(ts)
	count(calls) > 0
}

# The probe says how many of its attempts went wrong where not all did.
remark("at times", _, ts) := "It is intermittent: on a retry, the same transfer arrived correctly." if {
	some t in ts
	t.outcome == "corrupt"
	t.repeats < t.attempts
}

remark("together", _, ts) := "Each pair works separately: it fails only while all GPUs write at once." if {
	transfers.tests(ts) == {"all-at-once"}
}

remark("atomics", _, ts) := "Copies, loads and stores work: only atomic operations on the peer's memory are lost." if {
	transfers.tests(ts) == {"atomics"}
}

remark("handshake", _, ts) := sprintf("Every copy is correct, but two kernels that wait for each other do not see each other's stores%s.", [sighting(ts)]) if {
	transfers.tests(ts) == {"handshake"}
}

remark("staged", group, _) := "The same data arrived correctly through host memory, so disabling peer-to-peer access works around it." if {
	staged_good(group)
}

# fine is true when a test of one way through the GPU was right over each of
# these pairs.
fine(group, way) if {
	every d in object.keys(group) {
		some t in peers.transfers_of[peers.key(d[0], d[1])]
		t.source == d[0]
		transfers.path[t.test] == way
		t.outcome in {"ok", "slow"}
	}
}

# enabling_calls are the calls among those that failed which switch peer access on.
enabling_calls(ts) := {t.call | some t in ts} & {"cuCtxEnablePeerAccess", "hipDeviceEnablePeerAccess"}

sighting(ts) := sprintf(": %s", [transfers.reasons_text(ts)]) if {
	transfers.reasons_text(ts)
} else := ""

staged_good(group) if {
	every d in object.keys(group) {
		staging.good(d[0], d[1])
	}
} else := false
