package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/flags"
)

// verdictError makes the program exit with the code of a verdict. It has no message:
// the report contains it.
type verdictError struct{ code int }

func (e verdictError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// verdict is the error of an exit code, nil for 0.
func verdict(code int) error {
	if code == exitOK {
		return nil
	}
	return verdictError{code}
}

// join lists names with commas between.
func join(names []string) string { return strings.Join(names, ", ") }

// usageError turns an error of the flag parser into one line with a hint.
func usageError(c *cli.Context, err error, _ bool) error {
	help := "gpudoctor --help lists the flags"
	if c.Command != nil && c.Command.HelpName != "" {
		help = c.Command.HelpName + " --help lists the flags"
	}
	if m := badValue.FindStringSubmatch(err.Error()); m != nil {
		hints := []string{help}
		if _, isTime := allFlags(c.App)[m[2]].(*cli.DurationFlag); isTime {
			hints = []string{"a time has a unit: 30s, 2m"}
		}
		return complaint.Hinted(fmt.Errorf("invalid value %s for %s", m[1], flags.Dashed(m[2])), hints...)
	}
	return complaint.Hinted(err, help)
}

// badValue matches the flag parser's error for an invalid value (package flag).
var badValue = lazy.New(`^invalid (?:boolean )?value (".*") for (?:flag )?-([a-z-]+): `)
