# METADATA
# title: The conditions that verdicts of messages name
# description: >-
#   A row of the catalogue of messages may say when its verdict is told, or how bad it
#   is, by the names of conditions (when, unless), and may quote a value of the facts
#   ({@name}). Each name is defined here, once, and holds only where the facts show it:
#   what is not known does not hold.
# schemas:
#   - input: schema.facts
package gpudoctor.lib.conditions

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.iommu
import data.gpudoctor.lib.networks

# NCCL_SOCKET_IFNAME is set for the job.
holds contains "interface_asked" if networks.asked

values contains ["asked_interface", networks.asked] if networks.asked

shown contains ["interface_asked", {"fact": "env.variables[NCCL_SOCKET_IFNAME]", "value": networks.asked, "source": "the texts"}] if networks.asked

# Platform (area fabric).
holds contains "amd_present" if amd.present

holds contains "guest" if facts.is_guest == true

values contains ["iommu_vendor", iommu.vendor]
