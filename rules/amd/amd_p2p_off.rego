# METADATA
# title: AMD's driver offers no peer access over PCIe
# description: >-
#   The amdgpu driver allows peer access over PCIe if the kernel was built for it (CONFIG_HSA_AMD_P2P and what that
#   depends on) and its module parameter pcie_p2p is on. Without it, RCCL falls back to host memory, with a fraction of
#   the bandwidth, and programs that require peer access fail. xGMI needs none of this. This rule has not been tested on
#   AMD hardware.
# related_resources:
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/gpu/drm/amd/amdgpu/amdgpu_device.c
#     description: The conditions in amdgpu_device_is_peer_accessible, and the driver's messages
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/gpu/drm/amd/amdkfd/Kconfig
#     description: CONFIG_HSA_AMD_P2P and its dependencies
# custom:
#   cause: p2p-unsupported-gpu
#   severity: medium
#   confidence: likely
#   areas: [paths]
#   needs: [gpus.devices, "links.pairs[].link_type", [gpus.amd.kernel_config, gpus.amd.parameters.pcie_p2p]]
#   remedies: [enable-amd-p2p, nccl-p2p-disable, plan-without-peer-access]
#   explains: [p2p-unsupported-gpu]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     pcie_p2p: >-
#       Peer access over PCIe is disabled in the amdgpu driver (module parameter pcie_p2p is off; the default is on). RCCL
#       uses host memory between GPUs that are connected only by PCIe, and programs that require peer access fail
#     kernel: >-
#       The kernel was built without CONFIG_HSA_AMD_P2P, which its amdgpu driver needs for peer access over PCIe. RCCL uses
#       host memory between GPUs that are connected only by PCIe, and programs that require peer access fail
package gpudoctor.rules.amd_p2p_off

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.logs

# wanting is true where AMD GPUs have nothing but PCIe to reach each other by, or where a program was refused.
wanting if {
	count(amd.over_pcie) > 0
	count(amd.over_xgmi) == 0
}

wanting if count(refused) > 0

refused := logs.messages({"hip-no-peer-access", "hip-peer-access-failed"})

# lacks are what the driver is without: its own switch, or its option of the kernel (which depends on the others).
lacks["pcie_p2p"] := ["gpus.amd.parameters.pcie_p2p", input.gpus.amd.parameters.pcie_p2p] if {
	input.gpus.amd.parameters.pcie_p2p in {"N", "0", "n"}
}

lacks["kernel"] := ["gpus.amd.kernel_config.CONFIG_HSA_AMD_P2P", "n"] if input.gpus.amd.kernel_config.CONFIG_HSA_AMD_P2P == "n"

findings contains {
	"grade": name,
	"subject": name,
	"confidence": {true: "confirmed", false: "likely"}[(count(refused) + count([p | some p in amd.over_pcie; p.accessible == false])) > 0],
	"messages": refused,
	"evidence": [{"fact": fact, "value": value, "source": "the kernel's configuration, or /sys/module/amdgpu/parameters"}],
	"params": {"parameter": name | name == "pcie_p2p"},
} if {
	some name, [fact, value] in lacks
	wanting
	not amd.peer_access
}

not_applicable contains "fewer than two AMD GPUs" if amd.no_pair
