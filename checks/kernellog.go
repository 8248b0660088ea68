package checks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/kernellog"
)

var kernelLogCheck = &gather.Check{Name: "kernel_log", Gather: gatherKernelLog}

func gatherKernelLog(ctx context.Context, g *gather.Gathering) error {
	var text string
	err := g.Host.Ask(ctx, host.AskKernelLog, &text)
	switch {
	case errors.Is(err, fs.ErrPermission):
		g.Unknown("kernel_log", "", "this user is not allowed to read the kernel log", "run as root, or allow it with sysctl kernel.dmesg_restrict=0")
		return nil
	case err != nil:
		return fmt.Errorf("read the kernel log: %w", err)
	}
	events, whole := kernellog.Parse(text)
	if !whole {
		g.Unknown("kernel_log", "events", fmt.Sprintf("more than %d different events; the rest was not read", kernellog.MaxEvents), "read the full kernel log with dmesg")
	}
	g.Facts.KernelLog = &facts.KernelLogFacts{Source: "/dev/kmsg", Events: events}
	return nil
}
