// Package host reads what the machine and its kernel show: the PCI tree, logs, files in /proc and /sys,
// topology, and what they let a process use; and which software is installed.
package host

import (
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/kernellog"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// New makes, for one reading, the kinds that show the machine.
func New(s *parse.Sink) parse.Family {
	t, kernel := &tree{bridges: make(map[string]string), roots: make(map[string]bool)}, kernellog.NewReader()
	return parse.Family{
		Kinds: []*parse.Kind{
			lspciKind(t), lspciTreeKind(t),
			kernelKind(kernel), cmdlineKind(), lscpuKind, numactlKind, affinityKind(), unameKind, balancingKind,
			xmlKind, kernelConfigKind,
		},
		Finish: func() {
			t.place(s)
			joinKernelLog(s, kernel)
			joinAffinity(s)
		},
	}
}

// NewSoftware makes the kinds that show which software is installed, and what Python programs report about themselves.
func NewSoftware(*parse.Sink) parse.Family {
	return parse.Family{Kinds: append(slices.Clone(packageKinds()), packagesPrinted, collectEnvKind, collectEnvGPUs, osReleaseKind)}
}
