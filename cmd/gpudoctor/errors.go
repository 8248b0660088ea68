package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// hintedError is an error with hints on what to do about it.
type hintedError struct {
	error
	hints []string
}

func (e hintedError) Unwrap() error { return e.error }

// hinted adds hints to an error.
func hinted(err error, hints ...string) error { return hintedError{err, hints} }

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

// complain writes an error on one line and its hints on a line each.
func complain(w io.Writer, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "gpudoctor: %s\n", lines.Printable(err.Error(), false))
	var h hintedError
	for errors.As(err, &h) {
		for _, hint := range h.hints {
			fmt.Fprintf(&b, "hint: %s\n", lines.Printable(hint, false))
		}
		err = h.error
	}
	// If standard error is closed, the error cannot be reported.
	_, _ = io.WriteString(w, b.String())
}

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
		return hinted(fmt.Errorf("invalid value %s for %s", m[1], dashed(m[2])), hints...)
	}
	return hinted(err, help)
}

// badValue matches the flag parser's error for an invalid value (package flag).
var badValue = lazy.New(`^invalid (?:boolean )?value (".*") for (?:flag )?-([a-z-]+): `)

// dashed writes a flag as it is typed: with one dash if it is a letter.
func dashed(name string) string {
	name = strings.TrimLeft(name, "-")
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// unknownName says that there is no such command, flag or id, and which one
// may have been meant.
func unknownName(kind, name string, known []string, hints ...string) error {
	if near := rules.Nearest(name, known); near != "" {
		hints = append([]string{"did you mean " + near + "?"}, hints...)
	}
	return hinted(fmt.Errorf("unknown %s %s", kind, quoteWord(name)), hints...)
}

// quoteWord shows a word of the command line as it is, or in quotes where it
// would be misread.
func quoteWord(word string) string {
	if q := strconv.Quote(word); word == "" || strings.ContainsAny(word, " \t") || q != `"`+word+`"` {
		return q
	}
	return word
}
