// Package host reads what the machine and its kernel show: logs, files in /proc and /sys,
// topology, and what they let a process use.
package host

import (
	"github.com/gpudoctor/gpudoctor/checks/kernellog"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// New makes, for one reading, the kinds that show the machine.
func New(s *parse.Sink) parse.Family {
	kernel, groups := kernellog.NewReader(), make(iommuGroups)
	return parse.Family{
		Kinds: []*parse.Kind{
			kernelKind(kernel), cmdlineKind, lscpuKind, numactlKind, affinityKind, unameKind, dmidecodeKind, sysfsKind(groups), sysfsCatKind(groups), iommuUnitsKind,
			xmlKind, kernelConfigKind,
		},
		Finish: func() {
			joinKernelLog(s, kernel)
			joinIOMMU(s, groups)
			joinAffinity(s)
		},
	}
}
