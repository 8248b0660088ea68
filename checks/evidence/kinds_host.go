package evidence

import "github.com/gpudoctor/gpudoctor/checks"

// hostFamily are the kinds of text of the machine and its kernel.
func hostFamily(s *Sink) Family {
	kernel, groups := checks.NewKernelLogReader(), make(iommuGroups)
	return Family{
		Kinds: []*Kind{
			kernelKind(kernel), cmdlineKind, lscpuKind, numactlKind, affinityKind, unameKind, dmidecodeKind, sysfsKind(groups), sysfsCatKind(groups), iommuUnitsKind,
			hostXMLKind, kernelConfigKind,
		},
		Finish: func() {
			joinKernelLog(s, kernel)
			joinIOMMU(s, groups)
			joinAffinity(s)
		},
	}
}
