package collective

import (
	"context"
	"fmt"

	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// RunOnOneGPU runs the collectives with two ranks on the first GPU. NCCL takes two ranks on one GPU only where they
// seem to be on different hosts (NCCL_HOSTID; src/init.cc compares the hash of the host and the address of the GPU), so
// that they reach each other over the network, by TCP on one machine without a NIC.
func RunOnOneGPU(ctx context.Context, o Options) *probe.Collectives {
	s := newSession(o)
	ctx, stop := context.WithTimeout(ctx, s.options.Whole)
	defer stop()
	if !s.survey(ctx) || len(s.places) == 0 {
		return s.report
	}
	s.places = []place{{Rank: 0, Ordinal: 0}, {Rank: 1, Ordinal: 0}}
	s.report.GPUs = []string{s.report.GPUs[0], s.report.GPUs[0]}
	s.ownEnv = func(rank int) []string { return []string{fmt.Sprintf("NCCL_HOSTID=rank%d", rank)} }
	s.runArms(ctx)
	return s.report
}
