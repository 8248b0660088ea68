# METADATA
# title: Requirements of RCCL's P2P transport
# description: >-
#   Candidate causes where HIP's copies between AMD GPUs arrive and RCCL over
#   P2P fails: what the facts support, what they rule out, and how to
#   distinguish the rest.
package gpudoctor.lib.amd_p2p

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.known_faults
import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.pci

# candidates are what a lasting fix may be, in the order in which to look: how each
# is checked, and what helps.
candidates := [
	{
		"name": "the versions of ROCm and RCCL", "remedy": "upgrade-rocm",
		"look": version_words,
		"command": "cat /opt/rocm/.info/version; python3 -c 'import torch; print(torch.version.hip, torch.cuda.nccl.version())'",
	},
	{
		"name": "the IOMMU", "remedy": iommu_remedy,
		"look": sprintf("IOMMU: AMD recommends %s (identity is pass-through, DMA and DMA-FQ are remapping)", [iommu_wanted]),
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

# supported are those that the facts support, undecided those with no evidence.
supported := [c | some c in candidates; c.name in speaks]

undecided := [c | some c in candidates; not c.name in (speaks | cleared)]

# steps are what the facts support, then what is open, then how to distinguish them.
steps := array.concat(
	array.concat(
		[step(c, sprintf("%s. The facts support this", [c.look])) | some c in supported],
		[step(c, c.look) | some c in undecided],
	),
	[
		{
			"look": "To find which of them it is, run rccl-tests with and without NCCL_P2P_DISABLE=1, and with NCCL_PROTO=Simple",
			"command": "all_reduce_perf -b 8 -e 128M -f 2 -g 2",
		},
		{
			"look": "Also run gpudoctor's own stores, handshakes and transfers between processes, which use the same mechanisms as RCCL",
			"command": "gpudoctor probe p2p --probe full",
		},
	],
)

step(c, look) := {"look": look, "command": c.command}

# outlook names what the facts rule out.
outlook := sprintf(" Ruled out here: %s.", [concat(", ", [c.name | some c in candidates; c.name in (cleared - speaks)])]) if {
	count(cleared - speaks) > 0
} else := ""

# remedies have the same order: the workaround, what the facts support, and what is open.
remedies := array.concat(["nccl-p2p-disable"], [c.remedy | some c in array.concat(supported, undecided)])

params := {"bridges": bridges, "bridge": bridges[0], "variable": "HSA_FORCE_FINE_GRAIN_PCIE", "value": "1", "vendor": "amd"}

bridges := sort(redirecting) if {
	count(redirecting) > 0
} else := ["BRIDGE"]

redirecting := {bridge | some p in amd.pairs; some bridge in pci.redirecting(p)}

version_words := sprintf("%s%s", [fault_words, protocol_words])

fault_words := sprintf("A known bug of %s (see rccl-bug)", [concat(" and ", sort(known))]) if {
	count(known) > 0
} else := sprintf("The versions of ROCm and RCCL%s: check for known bugs (gpudoctor check --only rccl-bug on a log with NCCL_DEBUG=INFO), and whether a newer version works", [told_words])

default told_words := ""

told_words := sprintf(", here %s", [concat(", ", sort(told))]) if count(told) > 0

default protocol_words := ""

protocol_words := ". On RDNA4 (gfx12), RCCL of ROCm 7.2 to 7.12 hangs with the LL protocol; NCCL_PROTO=Simple confirms this" if amd.radeon

names := {"rocm": "ROCm", "rccl": "RCCL"}

known contains sprintf("%s %s", [name, f.version]) if {
	some library, name in names
	some f in known_faults.found[library]
}

told contains sprintf("%s %s", [name, use.version]) if {
	some library, name in names
	some use in library_versions.used[library]
}

speaks contains "the versions of ROCm and RCCL" if count(known) > 0

iommu_remedy := "iommu-pt" if {
	amd.only_instinct
} else := "iommu-remap"

iommu_wanted := "pass-through for Instinct GPUs" if {
	amd.only_instinct
} else := "remapping, the default, for Radeon GPUs with peer access over PCIe" if {
	amd.only_radeon
} else := "remapping for Radeon GPUs with peer access over PCIe, and pass-through for Instinct GPUs"

# Instinct GPUs are at ease with pass-through, Radeon GPUs with remapping.
speaks contains "the IOMMU" if {
	amd.only_instinct
	input.iommu.mode in {"translated", "mixed"}
}

speaks contains "the IOMMU" if {
	amd.only_radeon
	input.iommu.mode in {"passthrough", "mixed"}
}

cleared contains "the IOMMU" if {
	amd.only_instinct
	input.iommu.mode in {"passthrough", "off"}
}

cleared contains "the IOMMU" if {
	amd.only_radeon
	input.iommu.mode == "translated"
}

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
