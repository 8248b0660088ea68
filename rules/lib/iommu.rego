# The vendor of the IOMMU, and what the kernel command line sets.
package gpudoctor.lib.iommu

import data.gpudoctor.lib.facts

# vendor is the IOMMU's vendor, if known: the kernel parameter has its name.
vendor := input.iommu.vendor if {
	input.iommu.vendor in {"intel", "amd"}
} else := cpu[input.host.cpu.vendor] if {
	cpu[input.host.cpu.vendor]
} else := "amd" if {
	regex.match(`EPYC|Ryzen|AMD`, input.host.cpu.model)
} else := "intel" if {
	regex.match(`Intel|Xeon`, input.host.cpu.model)
}

cpu := {"AuthenticAMD": "amd", "GenuineIntel": "intel"}

default params := {}

params := {"vendor": vendor}

words := {word | some word in input.host.command_line} | {word | some word in input.iommu.command_line}

# passing are those that ask the IOMMU to leave addresses alone, off those that switch it off, translating those that
# switch translation on (Documentation/admin-guide/kernel-parameters.txt). On Intel's processors that takes a parameter
# on most distributions, on AMD's it is the default.
passing := words & {"iommu=pt", "iommu.passthrough=1", "iommu.passthrough=y"}

off := {word | some word in words; regex.match(`^(iommu=(off|soft)|(intel|amd)_iommu=off|intel_iommu=.*\boff)$`, word)}

translating := words & {"intel_iommu=on", "iommu=force", "iommu=nopt", "iommu.passthrough=0", "amd_iommu=on", "amd_iommu=force_enable"}

asked_for_passthrough := {word | some word in input.iommu.command_line} & passing

# state_told is true where it is told what the kernel does, and not what it was asked.
state_told if input.iommu.mode != ""

state_told if input.iommu.default_domain != ""

state_told if count(input.iommu.groups) > 0

evidence := {"fact": "iommu.command_line", "value": input.iommu.command_line, "source": facts.read_at("iommu.command_line", "/proc/cmdline")}
