package main

import (
	"context"
	"errors"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/settings"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
)

// readWaivers reads the waivers that are in force for a command: those of the file in the
// current directory, and of the file that --waive names.
func readWaivers(ctx context.Context, set settings.Settings, file string) ([]waivers.Waiver, error) {
	all, err := waivers.Parse(settings.Here, set.Waivers)
	if err != nil || file == "" {
		return all, err
	}
	more, err := files.Within(ctx, deadline.Silence, func() ([]waivers.Waiver, error) { return waivers.Load(file) })
	if fault, ok := errors.AsType[complaint.Error](err); ok && len(fault.Hints) == 0 {
		err = complaint.Hinted(err, "--"+waiveFlag.Name+" takes a file with the key "+settings.WaiversKey+", and a list of waivers below it")
	}
	return append(all, more...), err
}
