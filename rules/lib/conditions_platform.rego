# Platform conditions for findings of messages, which lib/conditions_gpu.rego explains: about GPUs, guests and
# the IOMMU.
package gpudoctor.lib.conditions_platform

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.iommu

holds contains "amd_present" if amd.present
holds contains "guest" if facts.is_guest == true

values contains ["iommu_vendor", iommu.vendor]
