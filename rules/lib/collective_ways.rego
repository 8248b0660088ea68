# Which way a slow collective went. What shows the way of a collective on one machine that is slower than the links of
# the GPUs: NCCL's log names the transport of each channel, and a rate far below that of the links excludes them.
package gpudoctor.lib.collective_ways

import data.gpudoctor.lib.logs
import data.tables.thresholds

# staged are the channels that NCCL sent through host memory, sockets those over TCP between GPUs of one machine.
staged := sort([t | some t in input.logs.transports; t.kind == "shm"])

sockets := sort([t | some t in input.logs.transports; t.kind == "net"; t.network == "Socket"; t.same_host == true])

# way is how the traffic of a table's value went: "shm", "tcp", "around" if it is too slow
# for the links between the GPUs, or "unknown".
way(p) := "shm" if {
	count(staged) > 0
	p.gbps > 0
} else := "tcp" if {
	count(sockets) > 0
} else := "around" if {
	p.gbps < p.expected_gbps * thresholds.staged
} else := "unknown"

# words says so.
words(w) := through(w, sprintf(", %s", [logs.at(shown_by[w])]))

shown_by["shm"] := staged[0]

shown_by["tcp"] := sockets[0]

words("around") := "That is less than a tenth: the traffic goes through the host or over a NIC, not over the links between the GPUs. A log with NCCL_DEBUG=INFO shows which (via SHM, via NET)"

words("unknown") := "This is the best value of the table"

# evidence shows the channels.
evidence("shm") := [shown(staged[0])]

evidence("tcp") := [shown(sockets[0])]

evidence(w) := [] if w in {"around", "unknown"}

shown(t) := {"fact": "logs.transports", "value": t.kind, "source": logs.at(t)}

# through says so of a way that NCCL's log shows, and where.
through("shm", place) := sprintf("NCCL's log shows why: its channels go through host memory instead of from GPU to GPU (via SHM%s)", [place])

through("tcp", place) := sprintf("NCCL's log shows why: its channels between the GPUs of one machine go over TCP (via NET/Socket%s)", [place])
