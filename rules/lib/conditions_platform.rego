# Platform conditions for findings of messages. A row of the message catalog can limit its finding, or its severity, to
# conditions by name (when, unless), and can quote a value of the facts ({@name}). Each name is defined once and holds
# only where the facts show it: what is not known does not hold. These conditions are about GPUs, guests and the IOMMU.
package gpudoctor.lib.conditions_platform

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.iommu

holds contains "amd_present" if amd.present
holds contains "guest" if facts.is_guest == true

values contains ["iommu_vendor", iommu.vendor]
