package main

import (
	"embed"
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/compare"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/fleet"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
	"github.com/gpudoctor/gpudoctor/fixtures"
)

// completeQuestion stands before a command line of which a shell asks what its last word may become: gpudoctor
// __complete check --format m. Each answer stands on a line. Without an answer, the shell offers names of files.
const completeQuestion = "__complete"

// completionScripts make a shell ask gpudoctor what may come next. Bash replaces what stands behind the last ":" or
// "=" of a word (COMP_WORDBREAKS).
//
//go:embed completion
var completionScripts embed.FS

// shellNames are the shells that have a script.
var shellNames = []string{"bash", "fish", "zsh"}

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print the script that completes commands, flags and their values in a shell",
		ArgsUsage: strings.Join(shellNames, "|"),
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 {
				return complaint.Hinted(errors.New("completion takes the name of one shell"), "one of: "+join(shellNames))
			}
			script, err := completionScripts.ReadFile("completion/" + c.Args().First())
			if err != nil {
				return complaint.UnknownName("shell", c.Args().First(), shellNames, "one of: "+join(shellNames))
			}
			return stdio.WriteText(c.App.Writer, string(script))
		},
	}
}

// complete answers what the last word of a command line may become, an answer a line.
func complete(app *cli.App, words []string) string {
	word := words[len(words)-1]
	l := parseLine(app, words[:len(words)-1])
	flag, value, given := strings.Cut(word, "=")
	isFlag := strings.HasPrefix(word, "-") && !l.Literal
	var all []string
	switch {
	case isFlag && given:
		all = prefixed(flag+"=", l.values(flagName(flag), value))
	case isFlag:
		all = slices.Concat(lines.Map(l.LevelFlags(), dashedNames)...)
	case l.Open:
		all = l.values(l.Flags[len(l.Flags)-1].Name, word)
	default:
		all = l.wordAnswers()
	}
	all = lines.Filter(all, func(a string) bool { return strings.HasPrefix(a, word) })
	slices.Sort(all)
	return strings.Join(lines.Map(all, func(a string) string { return lines.Printable(a, false) + "\n" }), "")
}

func (l *line) values(flag, value string) []string {
	switch flag {
	case "only", "skip": // Lists, to which one more rule is added.
		known, err := learn("")
		if err != nil {
			return nil
		}
		before := value[:strings.LastIndex(value, ",")+1]
		return lines.Lacking(before, known.ruleIDs(), ids([]string{before}))
	case formatFlag.Name:
		return formatsOf(l.Command())
	case fromFlag.Name, targetFlag.Name:
		return prefixed(examplePrefix, fixtures.Examples())
	}
	return choices[flag]
}

func formatsOf(c *cli.Command) []string {
	switch {
	case c != nil && c.Name == fleetName:
		return fleet.Formats()
	case c == nil || slices.Contains(c.Flags, cli.Flag(checkFormatFlag)):
		return report.FormatNames()
	case c.Name == diffName:
		return compare.Formats()
	}
	return report.TransferFormats
}

// wordAnswers are the words that may follow: commands, or what a command takes.
func (l *line) wordAnswers() []string {
	switch c := l.Command(); {
	case c != nil && c.Name == diffName && len(l.Words) < 2:
		return prefixed(examplePrefix, fixtures.Examples())
	case len(l.Words) > 0:
	case len(l.Commands()) > 0:
		return commandNames(l.Commands())
	case c.Name == "completion":
		return shellNames
	case c.Name == "explain":
		if known, err := learn(""); err == nil {
			return known.names()
		}
	}
	return nil
}
