package checks

import (
	"context"
	"errors"

	"github.com/gpudoctor/gpudoctor/checks/internal/machine"
	"github.com/gpudoctor/gpudoctor/checks/probe"
)

var transfersCheck = &Check{
	Name: "transfers",
	Doc: `what a real transfer between the GPUs does

The probe moves data between every ordered pair of GPUs in a child process and
verifies it on the GPU that owns the memory. What a path should reach is
computed here from the links that were negotiated.`,
	After:   []string{"pci", "gpus", "links"},
	Patient: true,
	Gather:  gatherTransfers,
}

// askProbe puts the probe under way.
func askProbe(ctx context.Context, h *Host, opts Options) <-chan probeAnswer {
	c := make(chan probeAnswer, 1)
	if opts.Probe == "" || opts.Probe == probe.Off {
		c <- probeAnswer{err: errProbeOff}
		return c
	}
	go func() {
		var r probe.Report
		err := h.Ask(ctx, machine.AskProbe+string(opts.Probe), &r)
		c <- probeAnswer{report: &r, err: err}
	}()
	return c
}

var errProbeOff = errors.New("the probe was not asked for")

func gatherTransfers(_ context.Context, g *Gathering) error {
	a := <-g.probe
	if a.err != nil {
		return a.err
	}
	g.Facts.Transfers = a.report
	return nil
}
