# METADATA
# title: xGMI links and hives
# description: >-
#   How AMD accelerators are connected, according to their topology and the
#   compute driver's hives, and which of them lack a link or a hive.
package gpudoctor.lib.xgmi

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models

# links are the pairs of which it is known how they are joined. Partitions of
# one accelerator differ in the function of their address alone.
links := {p |
	some p in input.links.pairs
	p.link_type in {"xgmi", "pcie"}
	not one_device(p)
}

one_device(p) if {
	facts.is_address(p.a)
	facts.is_address(p.b)
	split(p.a, ".")[0] == split(p.b, ".")[0]
}

# joined are the GPUs that xGMI joins to each one.
joined[a] contains b if {
	some p in links
	p.link_type == "xgmi"
	some [a, b] in [[p.a, p.b], [p.b, p.a]]
}

# missed are the pairs within one hive that PCIe connects.
missed := {p |
	some p in links
	p.link_type == "pcie"
	count(joined[p.a] & joined[p.b]) > 0
}

# meshed are the accelerators of boards on which each is joined to each.
meshed := {g.address |
	some g in input.gpus.devices
	regex.match(`MI(250|300X|308X|325X|350X|355X)`, g.name)
}

# outside are those that xGMI joins to none, though it joins others of the board.
outside := {a |
	some p in links
	some a in [p.a, p.b]
	a in meshed
	not joined[a]
} if {
	count(joined) > 0
} else := set()

by_pcie_alone(gpus) if {
	count(links) > 0
	count(joined) == 0
	count(gpus) > 1
	every p in links {
		p.a in gpus
		p.b in gpus
	}
}

# bridged are accelerators on cards that a bridge (Infinity Fabric Link) can join:
# without one PCIe alone is right, and a bridge that is fitted and not up looks
# the same (ROCm/legacy-rocm-build issues 1503 and 2722).
bridged := {g.address |
	some g in amd.gpus
	gpu_models.model[g.name].xgmi_bridge
} | {g.address | some g in amd.gpus; g.architecture == "gfx908"}

# hives are the GPUs of each hive, as the compute driver numbers them.
hives[g.kfd.hive] contains g.address if {
	some g in amd.gpus
	g.kfd.hive != ""
}

# hiveless are accelerators of a meshed board that the compute driver lists outside
# of any hive, although others of the model are in one. A virtual function sees no
# hive.
hiveless := {g.address |
	some g in amd.gpus
	g.address in meshed
	object.get(g.kfd, "hive", "") == ""
	g.kfd.node >= 0
	some other in amd.gpus
	other.name == g.name
	other.kfd.hive != ""
}

others_in_hives := {address | some members in hives; some address in members}

# lost are the accelerators of a meshed board that the compute driver does not
# list, although it lists others: the hive is incomplete without them.
lost := {address | some address in amd.kfd_lost; count(others_in_hives) > 0}
