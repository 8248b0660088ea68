package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
)

type output struct {
	// file is empty for standard output.
	file   string
	format report.Format
}

// outputs reads --format and -o. Files take their format from what stands before them or
// from their names, standard output takes that of --format. If there are files and no
// --format, nothing is written to standard output.
func outputs(files []string, format string, formatSet bool) ([]output, error) {
	f, _ := report.FormatNamed(format)
	var all []output
	onStdout := len(files) == 0 || formatSet
	for _, value := range files {
		if value == "-" {
			onStdout = true
			continue
		}
		name, file, named := strings.Cut(value, "=")
		of, ok := report.FormatNamed(name)
		if !ok || !named || file == "" { // A file whose name contains an equals sign has no format before it.
			file = value
			of, ok = report.FormatOf(file)
		}
		if !ok {
			return nil, complaint.Hinted(fmt.Errorf("-o %s: unknown file extension", complaint.Quote(file)), "use one of: "+join(report.Extensions()), "or name the format: -o FORMAT=FILE, with one of: "+join(report.FormatNames()))
		}
		if err := writable("-o", file); err != nil {
			return nil, err
		}
		all = append(all, output{file, of})
	}
	if onStdout {
		all = append(all, output{format: f})
	}
	return all, nil
}

func filesOf(all []output) []string {
	return lines.NonEmpty(lines.Map(all, func(o output) string { return o.file })...)
}

// writable rejects a file that cannot be written, before any work is done. The flag names it.
func writable(flag, file string) error {
	switch err := stdio.CheckFile(file); {
	case err == nil:
		return nil
	case errors.Is(err, stdio.ErrFolder):
		return complaint.Hinted(fmt.Errorf("%s %s: is a folder", flag, file), "name a file in it")
	default:
		return complaint.Hinted(fmt.Errorf("%s %s: %w", flag, file, err), "name another file, such as one in "+os.TempDir())
	}
}

// apart rejects outputs that would overwrite the input or each other.
func apart(app *cli.App, files []string, inputs ...string) error {
	type use struct{ name, by string }
	var taken []use
	for _, name := range inputs {
		by := "the input " + complaint.Quote(name)
		if f, ok := app.Reader.(*os.File); ok && name == standardInput {
			name = f.Name()
		}
		taken = append(taken, use{name, by})
	}
	if f, ok := stdio.Plain(app.Writer).(*os.File); ok {
		taken = append(taken, use{f.Name(), "standard output"})
	}
	for i, file := range files {
		if slices.Contains(files[:i], file) {
			return complaint.Hinted(fmt.Errorf("-o %s is given twice", complaint.Quote(file)), "name it once")
		}
		for _, other := range taken {
			if stdio.SameFile(file, other.name) {
				return complaint.Hinted(fmt.Errorf("-o %s is the same file as %s", complaint.Quote(file), other.by), "name another file")
			}
		}
		taken = append(taken, use{file, "-o " + complaint.Quote(file)})
	}
	return nil
}

// sayWritten says which files were written, and with what result: on standard output where no report is written
// to it, otherwise on standard error if that is a terminal.
func sayWritten(all []output, said string, stdout io.Writer) error {
	files := lines.Map(filesOf(all), func(file string) string { return lines.Printable(file, false) })
	line := fmt.Sprintf("gpudoctor: wrote %s: %s", join(files), said)
	switch {
	case len(files) == 0:
		return nil
	case slices.ContainsFunc(all, func(o output) bool { return o.file == "" }):
		tell("%s", line)
		return nil
	}
	return stdio.WriteText(stdout, line+"\n")
}

// writeOutputs writes to every output, even if one of them fails. The width and the colours of a style are for standard output.
func writeOutputs(ctx context.Context, all []output, s report.Style, stdout io.Writer, write func(io.Writer, output, report.Style) error) error {
	plain := s
	plain.Width, plain.Color = 0, false
	var failed []error
	for _, o := range all {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if o.file == "" {
			failed = append(failed, stdio.Write(stdout, func(w io.Writer) error { return write(w, o, s) }))
			continue
		}
		var b bytes.Buffer
		failed = append(failed, write(&b, o, plain), writeFile(ctx, o.file, b.Bytes(), stdio.Shared))
	}
	failed = slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	if len(failed) == 0 {
		return nil
	}
	return complaint.Hinted(failed[0], alsoHints(failed)...)
}

func alsoHints(all []error) []string {
	return lines.Map(all[min(1, len(all)):], func(err error) string { return "also: " + err.Error() })
}

// writeFile writes a file completely or not at all. Its error says what is left.
func writeFile(ctx context.Context, file string, data []byte, perm fs.FileMode) error {
	if err := stdio.WriteFile(ctx, file, data, perm); err != nil {
		return complaint.Hinted(err, "name another file")
	}
	return nil
}

// The flags that say whether names and secrets are replaced by stand-ins.
var (
	redactFlag   = &cli.BoolFlag{Name: "redact", DisableDefaultText: true, Usage: "also replace names and addresses on a terminal and in a pipe"}
	noRedactFlag = &cli.BoolFlag{Name: "no-redact", DisableDefaultText: true, Usage: "keep names, addresses and secrets"}
)

func readRedaction(c *cli.Context) redactChoice {
	switch {
	case c.Bool(noRedactFlag.Name):
		return redactNothing
	case c.Bool(redactFlag.Name):
		return redactAll
	}
	return redactFiles
}

type redactChoice int

const (
	redactFiles   redactChoice = iota // Names in files, and secrets everywhere.
	redactAll                         // Names and secrets everywhere.
	redactSecrets                     // Secrets everywhere, and no names.
	redactNothing
)

// shown returns what of a report may be seen in a file, or elsewhere. Each version is made when it is first asked for.
func (c redactChoice) shown(d *report.Document) func(inFile bool) *report.Document {
	named, redacted := sync.OnceValue(d.WithoutSecrets), sync.OnceValue(d.Redact)
	return func(inFile bool) *report.Document {
		switch {
		case c == redactNothing:
			return d
		case c == redactAll || c == redactFiles && inFile:
			return redacted()
		}
		return named()
	}
}

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

// utf8Locale reports whether the locale's characters are UTF-8, by the first of the variables that is set (locale(7)).
func utf8Locale() bool {
	name := strings.ToLower(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	return strings.Contains(name, "utf-8") || strings.Contains(name, "utf8")
}
