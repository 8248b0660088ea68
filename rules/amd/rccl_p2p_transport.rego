# METADATA
# title: HIP copies between GPUs work, but RCCL over P2P fails
# description: >-
#   HIP reports peer access between AMD GPUs and its copies between them arrive, but RCCL, or a program that uses it,
#   fails or hangs until its P2P transport is disabled. A HIP copy is one command to a copy engine. RCCL maps the peer's
#   memory into each process (HIP IPC, or DMA-BUF), and kernels on both GPUs store into it and wait for each other's
#   stores. This rule has not been tested on AMD hardware.
# related_resources:
#   - ref: https://github.com/ROCm/rocm-systems/blob/develop/projects/rccl/src/transport/p2p.cc
#     description: What RCCL's P2P transport maps, and when it is used
#   - ref: https://github.com/ROCm/rocm-systems/issues/11348
#     description: Four R9700 work with the P2P transport off; the host hangs with it on
#   - ref: https://github.com/ROCm/legacy-rocm-build/issues/6576
#     description: On two W7800, RCCL over P2P stalls for 0.2 s in each collective, but not over host memory
#   - ref: https://github.com/ROCm/ROCR-Runtime/issues/355
#     description: hipMemcpyPeer works and HIP IPC fails on two R9700
#   - ref: https://github.com/ROCm/rocm-systems/pull/10554
#     description: Peer access that HIP offers in only one direction, and how RCCL handles it
#   - ref: https://rocm.docs.amd.com/en/latest/conceptual/iommu.html
#     description: What peer access over PCIe requires from the IOMMU and the kernel
# custom:
#   cause: p2p-broken-platform
#   severity: critical
#   confidence: likely
#   areas: [paths]
#   needs: [job-told]
#   remedies: [nccl-p2p-disable, upgrade-rocm, iommu-remap, iommu-pt, disable-acs, enable-rebar, enable-amd-p2p, hsa-env, update-bios]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     transport: >-
#       RCCL's P2P transport fails here: {but}.[ HIP's {copies} between the GPUs work, and need only a copy engine: the
#       fault is in the transport, or in something it needs beyond a copy, such as the mapping of the peer's memory.]
#       NCCL_P2P_DISABLE=1 makes RCCL use host memory.[ Ruled out here: {ruled_out:comma}.]
#     lopsided:
#       severity: high
#       remedies: [nccl-p2p-disable, update-bios, enable-rebar, upgrade-rocm]
#       text: >-
#         HIP offers peer access in only one direction between {count} pairs of GPUs ({pairs}, and not back). One end of
#         RCCL uses the P2P transport and the other host memory, and they fail. The cause is where the firmware placed
#         the MMIO windows, or a small BAR on one of the two
package gpudoctor.rules.rccl_p2p_transport

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.known_faults
import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers

# copied are what shows that HIP's copies between GPUs arrive: the probe's, and those of programs of other people. What
# they call a success need not have been compared.
copied contains {"fact": "transfers.transfers", "value": sprintf("copy %s: %s", [facts.pair_name(t.source, t.destination), t.outcome]), "source": "probe (HIP)"} if {
	input.transfers.api == "hip"
	some t in facts.peer_transfers
	t.test == "copy"
	t.outcome in {"ok", "slow"}
}

copied contains {"fact": sprintf("benchmarks[%s]", [b.tool]), "value": b.test, "source": logs.at(b)} if {
	amd.present
	some b in input.benchmarks
	b.what in {"copy", "copy-read", "bidirectional"}
	b.complete == true
	object.get(b, "wrong", 0) == 0
	object.get(b, "p2p", true) == true
}

# spoiled is true if transfers between the GPUs failed: then the fault is not only in
# RCCL's transport, and p2p-broken-platform reports it.
spoiled if count(peers.trouble) > 0

spoiled if {
	some b in input.benchmarks
	b.wrong > 0
}

over_p2p contains t if {
	of_amd
	some t in input.logs.transports
	startswith(t.kind, "p2p-")
}

of_amd if {
	some c in input.logs.communicators
	c.library == "rccl"
}

of_amd if library_versions.on_amd

# broken are messages that mapping a peer's memory failed, or that RCCL's kernels or the process died of it.
broken := logs.messages({
	"hip-ipc-failed", "hip-peer-access-failed", "hip-peer-access-not-enabled", "nccl-ipc-open-failed", "nccl-ipc-handle-failed",
	"rocr-memory-fault", "rocr-gpu-hang", "nccl-cuda-invalid-argument", "nccl-cuda-illegal-access",
})

# but are the ways in which the transport fails: a sentence says that a program needs it off, or RCCL's log over P2P
# stops or ends in an error while HIP's copies work.
but contains "a program runs only with NCCL_P2P_DISABLE=1" if {
	logs.said("prose-p2p-off-needed")
	amd.present
}

but contains sprintf("RCCL fails or hangs over it (%d channels in the log)", [sum([t.channels | some t in over_p2p])]) if {
	count(over_p2p) > 0
	count(copied) > 0
	fails
	not "cause" in {m.role | some m in (logs.complaints - broken)}
	not facts.env.NCCL_P2P_DISABLE == "1"
}

# RCCL hangs (ranks that did not finish their start, a table that ends early, a watchdog), or ends in an error.
fails if amd.stuck
fails if count(logs.stalled) > 0
fails if count(broken) > 0

findings contains {
	"grade": "transport",
	"subject": "host",
	"affects": sort({address | some d in amd.offered; some address in d; facts.is_address(address)}),
	"about": {
		"but": but, "ruled_out": [c.name | some c in candidates; c.name in (cleared - speaks)],
		"copies": {words | some [words, true] in [["copies", count(copied) > 0], ["peer access", count(amd.offered) > 0]]},
	},
	"messages": array.slice([m | some [_, m] in sort([[m.order, m] | some m in (broken | logs.messages({"prose-p2p-off-needed"}))])], 0, 2),
	"evidence": array.flatten([
		[{"fact": sprintf("logs.transports[%s]", [t.kind]), "value": t.channels, "source": logs.at(t)} | some t in array.slice(sort(over_p2p), 0, 2)],
		array.slice(sort(copied), 0, 2),
		[access(d, "ok") | some d in array.slice(sort(amd.offered), 0, 2)],
	]),
	"params": params,
	"steps": steps,
	"severity": {true: "critical", false: "high"}[(count(copied) + count(amd.offered)) > 0],
	"confidence": {true: "likely", false: "possible"}[(count(copied) * count(amd.offered)) > 0],
	"remedies": array.concat(["nccl-p2p-disable"], [c.remedy | some c in array.concat(supported, undecided)]),
} if {
	count(but) > 0
	not spoiled
}

access(d, value) := {
	"fact": sprintf("gpus.p2p[%s]", [facts.pair_name(d[0], d[1])]),
	"value": value,
	"source": "hipDeviceCanAccessPeer",
}

# lopsided are pairs for which HIP offers peer access one way and not the other (ROCm/rocm-systems pull 10554).
lopsided contains d if {
	some d in amd.offered
	[d[1], d[0]] in withheld
	not d in withheld
}

withheld contains [p.a, p.b] if {
	some p in input.gpus.p2p
	p.read == "not-supported"
}

withheld contains [p.source, p.destination] if {
	input.transfers.api == "hip"
	some p in input.transfers.peers
	p.access == false
}

findings contains {
	"grade": "lopsided",
	"subject": "host",
	"affects": sort({address | some d in lopsided; some address in d; facts.is_address(address)}),
	"about": {"count": count(lopsided), "pairs": concat("; ", [facts.pair_name(d[0], d[1]) | some d in few_lopsided])},
	"evidence": [access([d[1], d[0]], "not offered") | some d in few_lopsided],
	"params": params,
} if {
	count(lopsided) > 0
	few_lopsided := array.slice(sort(lopsided), 0, 4)
}

missing contains {"fact": "logs", "words": "no log of a job was given"} if {
	not input.logs
	not amd.absent
}

missing contains {"fact": "transfers", "words": "it is not known whether HIP's copies between the GPUs arrive"} if {
	input.logs
	amd.present
	count(over_p2p) > 0
	fails
	count(copied) == 0
}

not_applicable contains "no AMD GPU" if amd.absent

# candidates are what a lasting fix may be, in the order in which to look: how each is checked, and what helps.
candidates := [
	{
		"name": "the versions of ROCm and RCCL", "remedy": "upgrade-rocm",
		"look": "The versions of ROCm and RCCL: rccl-bug knows bugs of each (gpudoctor check --only rccl-bug on a log with NCCL_DEBUG=INFO). On RDNA4 (gfx12), RCCL of ROCm 7.2 to 7.12 hangs with the LL protocol; NCCL_PROTO=Simple confirms this",
		"command": "cat /opt/rocm/.info/version; python3 -c 'import torch; print(torch.version.hip, torch.cuda.nccl.version())'",
	},
	{
		"name": "the IOMMU", "remedy": iommu_remedy,
		"look": "IOMMU: AMD recommends remapping, the default, for Radeon GPUs with peer access over PCIe, and pass-through for Instinct GPUs (identity is pass-through, DMA and DMA-FQ are remapping)",
		"command": "cat /sys/kernel/iommu_groups/*/type | sort | uniq -c",
	},
	{
		"name": "ACS", "remedy": "disable-acs",
		"look": "ACS on the bridges between the GPUs: ReqRedir+ and CmpltRedir+ redirect peer traffic to the root complex",
		"command": "sudo lspci -vvv | grep -E '^[0-9a-f]|ACSCtl'",
	},
	{
		"name": "the BAR", "remedy": "enable-rebar",
		"look": "BAR: the memory visible to the CPU and to peers must be all of the memory",
		"command": "grep . /sys/class/drm/card*/device/mem_info_vram_total /sys/class/drm/card*/device/mem_info_vis_vram_total",
	},
	{
		"name": "the kernel's options", "remedy": "enable-amd-p2p",
		"look": "Kernel: all three options must be y, and pcie_p2p of amdgpu must be Y",
		"command": "grep -E 'HSA_AMD_P2P|PCI_P2PDMA|DMABUF_MOVE_NOTIFY' /boot/config-$(uname -r); cat /sys/module/amdgpu/parameters/pcie_p2p",
	},
	{
		"name": "HSA_* variables", "remedy": "hsa-env",
		"look": "Variables: older RCCL needs HSA_FORCE_FINE_GRAIN_PCIE=1; HSA_ENABLE_IPC_MODE_LEGACY and HSA_ENABLE_SDMA must not be left over",
		"command": "env | grep -E '^(HSA|HIP|ROCR|NCCL|RCCL)_'",
	},
]

supported := [c | some c in candidates; c.name in speaks]

undecided := [c | some c in candidates; not c.name in (speaks | cleared)]

steps := array.flatten([
	[{"look": sprintf("%s. The facts support this", [c.look]), "command": c.command} | some c in supported],
	[{"look": c.look, "command": c.command} | some c in undecided],
	{
		"look": "To find which of them it is, run rccl-tests with and without NCCL_P2P_DISABLE=1, and with NCCL_PROTO=Simple",
		"command": "all_reduce_perf -b 8 -e 128M -f 2 -g 2",
	},
	{
		"look": "Also run gpudoctor's own stores, handshakes and transfers between processes, which use the same mechanisms as RCCL",
		"command": "gpudoctor probe p2p --probe full",
	},
])

params := {"bridges": bridges, "bridge": bridges[0], "variable": "HSA_FORCE_FINE_GRAIN_PCIE", "value": "1", "vendor": "amd"}

bridges := sort(redirecting) if {
	count(redirecting) > 0
} else := ["BRIDGE"]

redirecting := {bridge | some p in amd.pairs; some bridge in pci.redirecting(p)}

speaks contains "the versions of ROCm and RCCL" if {
	count({f | some library in ["rocm", "rccl"]; some f in known_faults.found[library]}) > 0
}

# Instinct GPUs need pass-through, Radeon GPUs remapping.
fitting_modes := {"passthrough", "off"} if {
	amd.only_instinct
} else := {"translated"} if amd.only_radeon

iommu_remedy := "iommu-pt" if {
	amd.only_instinct
} else := "iommu-remap"

speaks contains "the IOMMU" if count({input.iommu.mode} - fitting_modes) > 0

cleared contains "the IOMMU" if input.iommu.mode in fitting_modes

speaks contains "ACS" if count(redirecting) > 0

cleared contains "ACS" if {
	count(amd.pairs) > 0
	every p in amd.pairs {
		is_array(p.bridges)
		count(p.bridges) > 0
		count(pci.hidden(p)) == 0
	}
}

speaks contains "the BAR" if count(amd.small_bars) > 0

cleared contains "the BAR" if {
	count(amd.gpus) > 0
	every g in amd.gpus {
		g.address in amd.large_bars
	}
}

speaks contains "the kernel's options" if count(amd.kernel_lacks) > 0
speaks contains "the kernel's options" if amd.p2p_switched_off

cleared contains "the kernel's options" if {
	amd.p2p_built
	amd.p2p_switched_on
}

# Variables of the runtime that change how memory is shared or copied.
speaks contains "HSA_* variables" if {
	some name in ["HSA_ENABLE_IPC_MODE_LEGACY", "HSA_ENABLE_SDMA", "HSA_ENABLE_PEER_SDMA", "HSA_OVERRIDE_GFX_VERSION"]
	facts.env[name]
}
