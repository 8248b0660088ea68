# What the links, the driver and the probe show about each pair of GPUs, so that all rules weigh them alike: a measurement
# takes precedence over what the facts imply.
package gpudoctor.lib.peers

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci

# vendor is the maker of a GPU, from the management library or the PCI tree.
vendor(address) := facts.gpu[address].vendor
vendor(address) := {"0x10de": "nvidia", "0x1002": "amd"}[pci.device[address].vendor] if not facts.gpu[address]

both_nvidia(pair) if {
	vendor(pair.a) == "nvidia"
	vendor(pair.b) == "nvidia"
}

# joined is how two GPUs are joined: "nvlink", "pcie", or "unknown" if the NVLinks are not known.
joined(pair) := "nvlink" if {
	pair.nvlinks > 0
} else := "pcie" if {
	pair.nvlinks == 0
} else := "pcie" if {
	some address in [pair.a, pair.b]
	facts.gpu[address].nvlinks == []
} else := "unknown"

# over_pcie is true where two GPUs are known to have no way to each other but
# PCIe: by their pair, or as no NVLink is on either, in texts that tell no pair.
over_pcie if {
	some p in facts.gpu_pairs
	joined(p) == "pcie"
}

over_pcie if count({g.address | some g in input.gpus.devices; g.nvlinks == []}) > 1

bridged := {key(p.a, p.b) | some p in facts.gpu_pairs; joined(p) == "nvlink"}

# passed_on is true for two devices of which one is given to a guest. On a host that gives devices away one without a
# driver, or of which that is not known, is taken for one of them.
passed_on(pair) if {
	some address in [pair.a, pair.b]
	pci.device[address].driver == "vfio-pci"
}

passed_on(pair) if {
	facts.is_passthrough_host == true
	measured(pair.a, pair.b) == "nothing"
	some address in [pair.a, pair.b]
	object.get(pci.device, [address, "driver"], "") == ""
}

# whole is true for a GPU that is known not to be split by MIG: NVML says so, or it is of a kind that cannot be, for
# which NVML says nothing (before Ampere, and Ampere and Ada but for the A100 and A30).
whole(address) if facts.gpu[address].mig == false

whole(address) if {
	capability := facts.gpu[address].compute_capability
	regex.match(`^([3-7]\.|8\.[1-9])`, capability)
}

named(t) := object.filter(t, ["test", "source", "destination", "way"])

key(a, b) := sort([a, b])

failed(t) if t.outcome in {"corrupt", "hang"}

failed(t) if {
	t.outcome == "error"
	not object.get(t, "error_code", 0) in driver_errors.untried
}

under_nvlink(directions) if {
	every d in directions {
		key(d[0], d[1]) in bridged
	}
}

# transfers_of are the transfers of peer tests by unordered pair.
transfers_of[key(t.source, t.destination)] contains t if some t in facts.peer_transfers

access := {[p.source, p.destination]: p.access | some p in input.transfers.peers}

# refused is true for two GPUs to which the driver offers no peer access in at least one direction.
refused(pair) if access[[pair.a, pair.b]] == false
refused(pair) if access[[pair.b, pair.a]] == false
refused(pair) if count(refusals(pair)) > 0

# refusals are the answers of NVML, other than "ok", for reads and writes between two GPUs.
refusals(pair) := {answer |
	some capability in ["read", "write"]
	answer := pair.p2p[capability]
	not answer in {"ok", "unknown", ""}
}

# trouble are the failed transfers of two GPUs, by their key. Where the driver
# offers no peer access, nothing that fails is peer-to-peer traffic.
trouble := {k: bad |
	some k, ts in transfers_of
	bad := {t | some t in ts; failed(t); not access[[t.source, t.destination]] == false; not asks_access(t)}
	count(bad) > 0
}

# asks_access is true where asking fails: then peer access is not known to be offered.
asks_access(t) if t.call in {"cuDeviceCanAccessPeer", "hipDeviceCanAccessPeer"}

# sluggish are the transfers of two GPUs that arrived too slowly, by their key.
sluggish := {k: slow |
	some k, ts in transfers_of
	slow := {t | some t in ts; t.outcome == "slow"; not access[[t.source, t.destination]] == false}
	count(slow) > 0
}

# measured is what the probe says of two GPUs: "failed", "slow", "good" when
# copies arrived at full speed both ways, or "nothing".
measured(a, b) := "failed" if {
	count(trouble[key(a, b)]) > 0
} else := "slow" if {
	count(sluggish[key(a, b)]) > 0
} else := "good" if {
	copied := {[t.source, t.destination] |
		some t in transfers_of[key(a, b)]
		t.test == "copy"
		t.outcome == "ok"
	}
	copied == {[a, b], [b, a]}
} else := "nothing"

# standing is what a measurement says of a pair ("failed", "slow", "good"), else, of NVIDIA GPUs, whether their traffic is
# known to go over PCIe.
standing(pair) := measured(pair.a, pair.b) if {
	measured(pair.a, pair.b) != "nothing"
} else := {true: "implied", false: "unsure"}[joined(pair) == "pcie"] if {
	both_nvidia(pair) # amdgpu accepts a way through the host bridge on Zen (p2pdma.c).
	not passed_on(pair)
}

# weight is the severity and confidence of what is wrong on the path of a pair, by its standing.
weight := {"failed": ["critical", "confirmed"], "slow": ["high", "confirmed"], "implied": ["high", "likely"], "unsure": ["medium", "possible"]}

in_trouble if count(trouble) + count(sluggish) > 0

# measured_words says what was measured of pairs of one standing, if they failed or were slow.
measured_words(pairs) := sprintf("The probe's transfers between them failed (%s).", [facts.list(outcomes)]) if {
	outcomes := {failure[t.outcome] | some p in pairs; some t in trouble[key(p.a, p.b)]}
	count(outcomes) > 0
} else := sprintf("The probe measured %s GB/s where at least %s is good.", [span(rates), decimal(min(least))]) if {
	slow := {t | some p in pairs; some t in sluggish[key(p.a, p.b)]; t.gbps}
	rates := {t.gbps | some t in slow}
	least := {good | some t in slow; good := t.expected_gbps * t.threshold}
} else := ""

failure := {"corrupt": "wrong data although the driver reports success", "hang": "a hang", "error": "an error"}

# transfer_evidence shows what was measured of pairs: each test with its outcome.
transfer_evidence(pairs) := [{
	"fact": sprintf("transfers.transfers[%s]", [facts.pair_name(p.a, p.b)]),
	"value": seen,
	"source": "probe",
} |
	some p in sort(pairs)
	seen := sort({sprintf("%s: %s", [t.test, t.outcome]) | some t in transfers_of[key(p.a, p.b)]})
	count(seen) > 0
]

# alone_tests are the tests whose rate is that of one pair, one way, with nothing else under way.
alone_tests := {"copy", "copy-read", "sm-store", "sm-load"}

# shorten names a few addresses and counts the rest: a machine may have forty bridges.
shorten(addresses) := concat(", ", sort(addresses)) if {
	count(addresses) <= 3
} else := sprintf("%s and %d more", [sort(addresses)[0], count(addresses) - 1])

# pairs_text names pairs for a message: one by its ends, several by number.
pairs_text(pairs) := sprintf("%s and %s", [p.a, p.b]) if {
	count(pairs) == 1
	some p in pairs
} else := sprintf("%d pairs of GPUs", [count(pairs)])

ends(pairs) := {address | some p in pairs; some address in [p.a, p.b]}

# span writes the least and the greatest of some rates.
span(rates) := concat(" to ", [decimal(rate) | some rate in sort({min(rates), max(rates)})])

# decimal writes a number with one digit after the point. (sprintf knows %.1f for a number with a fraction only.)
decimal(x) := sprintf("%d.0", [x]) if {
	x == floor(x)
} else := sprintf("%.1f", [x])
