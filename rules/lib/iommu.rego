# The vendor of the IOMMU, and what the kernel command line sets.
package gpudoctor.lib.iommu

# vendor is the IOMMU's vendor, if known: the kernel parameter has its name.
vendor := input.iommu.vendor if {
	input.iommu.vendor in {"intel", "amd"}
} else := "amd" if {
	regex.match(`AMD|EPYC|Ryzen`, cpu)
} else := "intel" if {
	regex.match(`Intel|Xeon`, cpu)
}

cpu := concat(" ", [input.host.cpu[key] | some key in ["vendor", "model"]])

default params := {}

params := {"vendor": vendor}

words := {word | some word in input.host.command_line} | {word | some word in input.iommu.command_line}

# passing are those that ask the IOMMU to leave addresses alone, off those that switch it off
# (Documentation/admin-guide/kernel-parameters.txt).
passing := words & {"iommu=pt", "iommu.passthrough=1", "iommu.passthrough=y"}

off := {word | some word in words; regex.match(`^(iommu=(off|soft)|(intel|amd)_iommu=off|intel_iommu=.*\boff)$`, word)}
