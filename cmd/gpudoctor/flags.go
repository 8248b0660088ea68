package main

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/collective"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/emit"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// dashedNames are the names of a flag as they are typed, letters first.
func dashedNames(f cli.Flag) []string {
	names := lines.Map(f.Names(), dashed)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	return names
}

// docOf is the description of a flag, which each kind of flag of the library has.
func docOf(f cli.Flag) cli.DocGenerationFlag {
	return f.(cli.DocGenerationFlag) //nolint:forcetypeassert // See above.
}

// dashed writes a flag as it is typed: with one dash if it is a letter.
func dashed(name string) string {
	name = strings.TrimLeft(name, "-")
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

//go:embed help.yaml
var helpYAML []byte

// helpTexts are the help pages: templates for those of the program, of commands and of those that have commands of their own, and the
// descriptions of commands by their names.
var helpTexts = lines.FromYAML[map[string]string](helpYAML)

// describeFlag writes a flag as one line of a help page: its names, what it takes, which stands in back quotes at the
// beginning of its usage, what it does, and its default.
func describeFlag(f cli.Flag) string {
	doc := docOf(f)
	line, usage := "  "+strings.Join(dashedNames(f), ", "), doc.GetUsage()
	if rest, quoted := strings.CutPrefix(usage, "`"); quoted {
		takes, about, _ := strings.Cut(rest, "`: ")
		line, usage = line+" "+takes, about
	}
	if v := doc.GetDefaultText(); doc.TakesValue() && v != "" && v != "0s" {
		usage += " (default " + lines.Printable(strings.Trim(v, `"`), false) + ")"
	}
	return line + "\t" + usage
}

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
