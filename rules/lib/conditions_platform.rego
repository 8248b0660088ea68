# METADATA
# title: The conditions of the platform that verdicts of messages name
# description: >-
#   A row of the catalogue of messages may say when its verdict is told, or how bad it
#   is, by the names of conditions (when, unless), and may quote a value of the facts
#   ({@name}). Each name is defined once and holds only where the facts show it: what
#   is not known does not hold. These are about GPUs, guests
#   and the IOMMU.
# schemas:
#   - input: schema.facts
package gpudoctor.lib.conditions_platform

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.iommu

holds contains "amd_present" if amd.present

holds contains "guest" if facts.is_guest == true

values contains ["iommu_vendor", iommu.vendor]
