package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/collective"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/emit"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/rules"
)

// choices are the values of each flag that takes one of a few.
var choices = map[string][]string{
	"profile":      {string(rules.Training), string(rules.Image), string(rules.Launch)},
	"fail-on":      report.Thresholds(),
	"format":       report.FormatNames(),
	"color":        {colorAuto, colorAlways, colorNever},
	probeFlag.Name: {string(probe.Off), string(probe.Quick), string(probe.Full)},
	armsFlag.Name:  collective.Names()[1:],
	"for":          emit.Names(),
}

// formatIn is the format that --format names.
func formatIn(c *cli.Context) string {
	f, _ := report.FormatNamed(c.String(formatFlag.Name))
	return f.Name
}

// oneOf checks the value of a flag of a command, if it takes one of a few. A format may also be named by its extension.
func oneOf(c *cli.Command, flag, value string) error {
	known, takes, name := choices[flag], "--"+flag+" takes one of: ", value
	if flag == formatFlag.Name {
		f, _ := report.FormatNamed(value)
		known, takes, name = formatsOf(c), strings.TrimPrefix(c.HelpName, "gpudoctor ")+" "+takes, f.Name
	}
	if known == nil || slices.Contains(known, name) {
		return nil
	}
	return complaint.UnknownName("value of --"+flag+":", value, known, takes+join(known))
}
