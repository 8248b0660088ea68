package main

import (
	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
	"github.com/gpudoctor/gpudoctor/fixtures"
)

// asciiFlag is for terminals whose locale promises more than they can show.
var asciiFlag = &cli.BoolFlag{Name: "ascii", DisableDefaultText: true, Usage: "write only ASCII (default if the locale is not UTF-8)"}

// style is how to write on standard output.
func style(c *cli.Context, color string) report.Style {
	s := styleFor(stdio.Plain(c.App.Writer), color, c.Bool(asciiFlag.Name))
	s.Example = example()
	return s
}

// example is a recorded machine to point to: the largest, by its name the
// last.
func example() string {
	if names := fixtures.Examples(); len(names) > 0 {
		const best = "h200x4"
		for _, n := range names {
			if n == best {
				return n
			}
		}
		return names[len(names)-1]
	}
	return ""
}
