# GPUs, pairs, variables and transfers. Each is undefined, not empty or false, if the section that it reads is not known:
# count(facts.gpus) < 2 holds only if GPUs could be enumerated.
package gpudoctor.lib.facts

# gpus are the addresses of all GPUs that the PCI tree, the management library or the CUDA driver shows.
gpus := listed | offered if {
	listed
	offered
} else := listed if {
	listed
} else := offered

listed := {g.address | some g in named} if named
offered := {d.address | some d in input.transfers.devices} if count(input.transfers.devices) > 0

# several is true unless fewer than two GPUs are known: who knows of no GPU has nothing to miss.
several if count(gpus) > 1
several if not gpus

# few_offered says why there is nothing to judge where the driver offers fewer than two.
few_offered := "the driver offers fewer than two GPUs here" if {
	input.transfers.outcome == "ok"
	count(input.transfers.devices) < 2
}

# only_amd is true if GPUs are known and all of them are AMD's: NVML, MIG and the fabric manager do not apply there.
only_amd if {
	count(gpus) > 0
	gpus == {address | some address in gpus; is_amd(address)}
}

is_amd(address) if gpu[address].vendor == "amd"

is_amd(address) if {
	not gpu[address]
	input.transfers.api == "hip"
	address in offered
}

gpu := {g.address: g | some g in named}

# gpus_at is a finding's affects: the GPU at an address, or, where none is known there, nothing, which means the host.
gpus_at(place) := [address | some address in [place]; address in gpus]

# named are the GPUs whose address is known: that of a lost one may not be.
named := [g | some g in input.gpus.devices; is_address(g.address)] if is_array(input.gpus.devices)

# is_address is true for a PCI address, and for the name of a GPU of which a text shows only the index ("GPU3"). Facts
# that were cut, or written by hand, may contain something else.
is_address(text) if regex.match(`^([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]|GPU[0-9]{1,4})$`, text)

# gpu_evidence shows a field of some GPUs, where it is known.
gpu_evidence(addresses, field, source) := [{"fact": sprintf("gpus.devices[%s].%s", [address, field]), "value": value, "source": source} |
	some address in sort(addresses)
	value := gpu[address][field]
]

pairs := {p | some p in input.links.pairs; is_address(p.a); is_address(p.b)} if is_array(input.links.pairs)

# gpu_pairs are the pairs of GPUs, each unordered pair once.
gpu_pairs := {p | some p in pairs; p.kind == "gpu-gpu"} if pairs

pair_name(a, b) := sprintf("%s -> %s", [a, b])

# variable is each variable's setting in force, by its name.
variable[name] := sort(settings)[0] if some name, settings in effective_settings

effective_settings[v.name] contains v if {
	some v in input.env.variables
	v.effective == true
}

env[name] := v.value if some name, v in variable

is_guest := input.host.virtualization.guest
is_passthrough_host := input.host.virtualization.passthrough_host
in_container := input.container.inside
is_root := input.host.root

# probed is true when the probe ran to its end, whatever it found.
probed if input.transfers.outcome == "ok"

# peer_tests are the tests that move data from GPU to GPU without the host.
peer_tests := {"copy", "copy-read", "sm-store", "sm-load", "bidirectional", "all-at-once", "handshake", "atomics", "between-processes"}

# peer_transfers are the transfers between two GPUs without the host, of all tests.
peer_transfers := {t |
	some t in input.transfers.transfers
	t.test in peer_tests
	is_address(t.source)
	is_address(t.destination)
} if is_array(input.transfers.transfers)

failed_peer_transfers := {t | some t in peer_transfers; t.outcome in {"corrupt", "hang", "error"}} if peer_transfers

# staged_transfers are those of the control arm through host memory that arrived.
staged_transfers := {t | some t in input.transfers.transfers; t.test == "host-staged"; t.outcome in {"ok", "slow"}}

counted(1, thing) := sprintf("1 %s", [thing])
counted(n, thing) := sprintf("%d %ss", [n, thing]) if n != 1

# list joins names in order for a message: "a, b and c".
list(names) := concat(" and ", [part | some part in [concat(", ", array.slice(sorted, 0, last)), sorted[last]]; part != ""]) if {
	sorted := sort(names)
	last := count(sorted) - 1
}

# few joins the first of many names: "a, b, c and 9 more".
few(names) := list(names) if {
	count(names) <= 4
} else := sprintf("%s and %d more", [concat(", ", array.slice(sort(names), 0, 3)), count(names) - 3])

# bytes writes a number of bytes for people: "64 MiB", "1.5 GiB", "unlimited" for -1 as the kernel means it.
bytes(n) := "unlimited" if {
	n < 0
} else := sprintf("%v %s", [round((n / unit) * 10) / 10, name]) if {
	[unit, name] := [u | some u in [[1073741824, "GiB"], [1048576, "MiB"], [1024, "KiB"], [1, "bytes"]]; n >= u[0]][0]
} else := "0 bytes"

# read_at says where a fact was read: the line of a text that told it, else the place where a live machine has it.
read_at(fact, live) := sprintf("%s:%d", [o.source, o.line]) if {
	some o in input.origins
	o.fact == fact
} else := live
