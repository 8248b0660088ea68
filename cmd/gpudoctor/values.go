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

// formatIn reads --format of a command that writes in some of the formats.
func formatIn(c *cli.Context, all []string) (string, error) {
	typed := c.String(formatFlag.Name)
	if f, _ := report.FormatNamed(typed); slices.Contains(all, f.Name) {
		return f.Name, nil
	}
	command := strings.TrimPrefix(c.Command.HelpName, "gpudoctor ")
	return "", complaint.UnknownName("value of --format:", typed, all, command+" --format takes one of: "+join(all))
}

// oneOf checks the value of a flag that takes one of a few. A format may also be named by its extension.
func oneOf(flag, value string) error {
	known := choices[flag]
	if _, isFormat := report.FormatNamed(value); isFormat && flag == formatFlag.Name || slices.Contains(known, value) {
		return nil
	}
	return complaint.UnknownName("value of --"+flag+":", value, known, "--"+flag+" takes one of: "+join(known))
}
