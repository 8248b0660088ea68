package main

import (
	"context"
	"fmt"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
)

// openTarget reads the facts of the machine that files are for.
func (s source) openTarget(ctx context.Context, opts gather.Options) (*facts.Facts, error) {
	target := source{from: []string{s.target}, system: s.system}
	switch g := target.machine(ctx, opts); {
	case g.err != nil:
		return nil, g.err
	case g.facts == nil:
		return nil, complaint.Hinted(fmt.Errorf("--target %s: not a recording of a machine", complaint.Quote(s.target)), "--target takes what gpudoctor facts or gpudoctor snapshot wrote on a machine")
	default:
		return g.facts, nil
	}
}

// forTarget are the facts of files with those of the hardware of the machine that they are
// for. What else the machine shows, its variables, limits and libraries, does not hold for
// the job.
func forTarget(files, machine *facts.Facts) *facts.Facts {
	joined := *files
	joined.Host, joined.PCI, joined.GPUs, joined.Links, joined.NICs = machine.Host, machine.PCI, machine.GPUs, machine.Links, machine.NICs
	joined.Transfers = machine.Transfers
	return &joined
}
