package main

import (
	"slices"

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

// oneOf checks the value of a flag that takes one of a few. Aliases are taken
// as well, and not listed.
func oneOf(flag, value string, aliases ...string) error {
	known := choices[flag]
	if slices.Contains(known, value) || slices.Contains(aliases, value) {
		return nil
	}
	return complaint.UnknownName("value of --"+flag+":", value, slices.Concat(known, aliases), "--"+flag+" takes one of: "+join(known))
}
