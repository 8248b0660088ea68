package main

import (
	"cmp"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
)

// asciiFlag is for terminals whose locale promises more than they can show.
var asciiFlag = &cli.BoolFlag{Name: "ascii", DisableDefaultText: true, Usage: "write only ASCII (default if the locale is not UTF-8)"}

// style is how to write on standard output.
func style(c *cli.Context) report.Style {
	s := styleFor(stdio.Plain(c.App.Writer), c.String("color"), c.Bool(asciiFlag.Name))
	s.Example, s.Verbose, s.Quiet = example, c.Bool("verbose"), c.Bool("quiet")
	return s
}

// example is a recorded machine to point to.
const example = "h200x4"

// The values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// styleFor is how to write on standard output: in its width and in colour if it
// is a terminal, and in ASCII if that is asked for or the locale is not UTF-8.
func styleFor(stdout io.Writer, color string, ascii bool) report.Style {
	s := report.Style{Color: color == colorAlways, ASCII: ascii || !utf8Locale()}
	f, ok := stdout.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil {
		s.Width = width
	}
	// NO_COLOR: https://no-color.org
	if color == colorAuto {
		s.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return s
}

// utf8Locale reports whether the locale's characters are UTF-8, by the first
// of the variables that is set (locale(7)).
func utf8Locale() bool {
	name := strings.ToLower(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	return strings.Contains(name, "utf-8") || strings.Contains(name, "utf8")
}
