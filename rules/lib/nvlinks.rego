# METADATA
# title: The NVLinks of each GPU
# description: >-
#   What NVML and nvidia-smi report about the NVLinks: how many of them are
#   active, and how many a GPU should have, according to its peers and to what
#   connects the GPUs.
package gpudoctor.lib.nvlinks

import data.gpudoctor.lib.facts

# links are the NVLinks of each GPU that has any, and whose were read. A GPU in
# MIG mode does not use them.
links := {g.address: g.nvlinks |
	some g in facts.named
	not g.mig == true
	is_array(g.nvlinks)
	count(g.nvlinks) > 0
}

active[address] := count([l | some l in ls; l.active == true]) if some address, ls in links

inactive(address) := sort([l.link | some l in links[address]; l.active == false])

# switched is true where NVSwitches join the GPUs.
switched if input.gpus.nvswitches > 0

switched if {
	some ls in links
	some l in ls
	l.remote_type == "switch"
}

switched if {
	some g in facts.named
	g.fabric.state == "completed"
}

# cut are models sold with some links off, which NVML lists as inactive.
cut(address) if regex.match(`\b[AH]800\b`, facts.gpu[address].name)

# most is the largest number of active links among the GPUs of one model.
most(address) := max(active_of[facts.gpu[address].name])

active_of[facts.gpu[address].name] contains n if some address, n in active

# short is how many links a GPU should have, if that is more than it has. Behind
# NVSwitches every link of a GPU leads to one, and none may be down (NVIDIA's health
# validation allows 0). This also holds for all GPUs at once: an NVSwitch that is lost
# takes links from every one.
short[address] := expected if {
	switched
	some address, _ in links
	expected := wired(address)
	active[address] < expected
}

wired(address) := most(address) if {
	cut(address)
} else := count(links[address])

# Without NVSwitches a GPU may well have no bridge, and then all its links are
# inactive. One that has some, but fewer than its like, has lost them.
short[address] := expected if {
	not switched
	some address, _ in links
	active[address] > 0
	expected := most(address)
	active[address] < expected
}

# A card of four links or fewer has a single bridge, which takes all (RTX 3090,
# A30, A40, RTX A6000).
short[address] := expected if {
	not switched
	some address, ls in links
	expected := count(ls)
	expected <= 4
	active[address] > 0
	active[address] < expected
	most(address) == active[address]
}

# A single module (SXM) that was shown alone: its board wires all its links, so
# that some which are up and some which are not are a loss. Part of a machine may
# look like that where a cloud lets it, which a text of one GPU does not tell.
short[address] := expected if {
	not switched
	some address, ls in links
	count(links) == 1
	regex.match(`SXM`, facts.gpu[address].name)
	not cut(address)
	expected := count(ls)
	active[address] > 0
	active[address] < expected
}

# When no GPU has a link, it is the fabric, not a link of each.
all_down if {
	count(short) > 1
	every address, _ in links {
		active[address] == 0
	}
}

# A matrix of topology counts the NVLinks of each pair. Behind NVSwitches all
# pairs of whole GPUs have the same number, and one GPU whose pairs have fewer has
# lost links.
switched_pairs := {p | some p in facts.gpu_pairs; p.nvswitch == true; is_number(p.nvlinks)}

switched_of[address] contains p if {
	some p in switched_pairs
	some address in [p.a, p.b]
}

widest := max({p.nvlinks | some p in switched_pairs})

narrow[address] := widest_of if {
	some address, ps in switched_of
	not links[address]
	widest_of := max({p.nvlinks | some p in ps})
	widest_of < widest
}
