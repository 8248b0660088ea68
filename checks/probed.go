package checks

import (
	"context"
	"errors"

	"github.com/gpudoctor/gpudoctor/checks/internal/machine"
	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// Probed returns the mode of the probe that a recording can answer for, the
// fullest if there are several, and probe.Off if the probe was not run when
// it was made.
func (h *Host) Probed(ctx context.Context) probe.Mode {
	for _, mode := range []probe.Mode{probe.Full, probe.Quick} {
		var r probe.Report
		if err := h.Ask(ctx, machine.AskProbe+string(mode), &r); !errors.Is(err, machine.ErrNotRecorded) {
			return mode
		}
	}
	return probe.Off
}
