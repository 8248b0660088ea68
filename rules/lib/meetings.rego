# Rendezvous addresses of ranks. The rendezvous addresses of a job's ranks, and connections that were tried over another
# network.
package gpudoctor.lib.meetings

import data.gpudoctor.lib.connections
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.networks

# meeting are the configured rendezvous addresses of the ranks: MASTER_ADDR, or an option
# of torchrun, Accelerate or SGLang, with its value in the same word or the next.
meeting contains facts.env.MASTER_ADDR if networks.ipv4(facts.env.MASTER_ADDR)

meeting contains address if {
	some l in input.launches
	some i, word in l.command
	regex.match(meeting_option, word)
	some text in array.concat([regex.replace(word, meeting_option, "")], array.slice(l.command, i + 1, i + 2))
	some [_, address] in regex.find_all_string_submatch_n(`^(?:tcp://)?(\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?$`, text, 1)
}

meeting_option := `^--(?:master[_-]addr|rdzv[_-]endpoint|main[_-]process[_-]ip|dist[_-]init[_-]addr|dist[_-]url|init[_-]method)(?:=|$)`

# off_meeting are the connections that failed over another network than that of the rendezvous address, if this machine
# has an interface in each. The ranks exchanged their addresses over the rendezvous, so its network reaches the peers.
off_meeting contains {"message": f.message, "remote": f.remote, "taken": taken, "meant": meant, "address": address} if {
	some f in connections.unanswered
	some taken in input.nics.interfaces
	some x in networks.ipv4_of(taken)
	networks.within(x, f.remote)
	some address in meeting
	not networks.within(x, address)
	some meant in input.nics.interfaces
	meant.name != taken.name
	not networks.dead(meant)
	some y in networks.ipv4_of(meant)
	networks.within(y, address)
	not networks.within(y, f.remote)
}
