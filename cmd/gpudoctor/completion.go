package main

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/compare"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/emit"
	"github.com/gpudoctor/gpudoctor/cmd/internal/fleet"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

func completionCommand() *cli.Command {
	names := shellNames()
	return &cli.Command{
		Name:      "completion",
		Usage:     "print the script that completes commands, flags and their values in a shell",
		ArgsUsage: strings.Join(names, "|"),
		Description: `bash        source <(gpudoctor completion bash)
zsh         source <(gpudoctor completion zsh)
fish        gpudoctor completion fish | source`,
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 {
				return complaint.Hinted(errors.New("completion takes the name of one shell"), "one of: "+join(names))
			}
			script, ok := completionScripts[c.Args().First()]
			if !ok {
				return complaint.UnknownName("shell", c.Args().First(), names, "one of: "+join(names))
			}
			return stdio.WriteText(c.App.Writer, script)
		},
	}
}

// complete answers what the last word of a command line may become: a word a line, and what it means behind a tab.
func complete(app *cli.App, words []string) string {
	word := words[len(words)-1]
	l := parseLine(app, words[:len(words)-1])
	var all []string
	files := ""
	switch flag, prefix := l.valueAsked(word); {
	case flag != nil:
		all, files = l.values(flag, strings.TrimPrefix(word, prefix))
		all = prefixed(prefix, all)
	case strings.HasPrefix(word, "-") && !l.Literal:
		all = l.flagAnswers()
	default:
		all, files = l.wordAnswers()
	}
	var b strings.Builder
	for _, a := range all {
		if strings.HasPrefix(a, word) {
			said, means, _ := strings.Cut(a, "\t")
			b.WriteString(lines.Joined("\t", lines.Printable(said, false), lines.Printable(means, false)) + "\n")
		}
	}
	if files != "" {
		b.WriteString(files + "\n")
	}
	return b.String()
}

// valueAsked returns the flag that a word is a value of, and the part of the word before
// the value: "--format=m", or "m" after "--format". The flag is nil if the word is not a value.
func (l *line) valueAsked(word string) (flag cli.Flag, prefix string) {
	switch before, _, ok := strings.Cut(word, "="); {
	case l.Literal:
	case ok && strings.HasPrefix(word, "-"):
		if f := allFlags(l.App)[flagName(before)]; f != nil && takesValue(f) {
			return f, before + "="
		}
	case l.Open && !strings.HasPrefix(word, "-"):
		return allFlags(l.App)[l.Flags[len(l.Flags)-1].Name], ""
	}
	return nil, ""
}

// values are the values of a flag that begin as one does, and which names of files are values as well.
func (l *line) values(f cli.Flag, value string) (all []string, files string) {
	if _, isTime := f.(*cli.DurationFlag); isTime {
		return []string{"30s", "1m", "2m"}, ""
	}
	switch name := f.Names()[0]; name {
	case "only", "skip": // Lists, to which one more rule is added.
		before := value[:strings.LastIndex(value, ",")+1]
		given := ids([]string{before})
		return lines.Lacking(before, builtin().ruleIDs(), given), ""
	case formatFlag.Name:
		return formatsOf(l.Command()), ""
	case fromFlag.Name, targetFlag.Name:
		return prefixed(examplePrefix, fixtures.Examples()), completeFiles
	case withFlag.Name, "output", "baseline", "exclude", waiveFlag.Name, ncclFlag.Name, expectFlag:
		return nil, completeFiles
	case policyFlag.Name:
		return nil, completeFolders
	case maxBytesFlag.Name:
		return []string{"500MB", "2GiB", "8GiB"}, ""
	case platformFlag.Name:
		return []string{"linux/amd64", "linux/arm64"}, ""
	default:
		return choices[name], ""
	}
}

// formatsOf are the formats in which a command writes.
func formatsOf(c *cli.Command) []string {
	switch {
	case c != nil && c.Name == fleetName:
		return fleet.Formats()
	case c == nil || slices.Contains(c.Flags, cli.Flag(checkFormatFlag)):
		return report.FormatNames()
	case c.Name == diffName:
		return compare.Formats()
	case c.Name == "advise":
		return emit.Formats()
	}
	return report.TransferFormats
}

// builtin is the rules and remedies that come with gpudoctor. There are none if
// they cannot be read, which tests rule out.
var builtin = sync.OnceValue(func() knowledge {
	known, err := learn("")
	if err != nil {
		return knowledge{rules: &rules.Set{}, remedies: &remedies.Set{}}
	}
	return known
})

// flagAnswers are the flags that may follow: those of the command that are not
// there yet, or may be repeated.
func (l *line) flagAnswers() []string {
	var all []string
	for _, f := range l.LevelFlags(len(l.Path)) {
		_, repeats := f.(*cli.StringSliceFlag)
		given := slices.ContainsFunc(l.Flags, func(a argument) bool { return a.Name == f.Names()[0] })
		if help := helpOf(f); repeats || !given {
			all = append(all, lines.Map(help.Names, func(n string) string { return n + "\t" + help.Usage })...)
		}
	}
	slices.Sort(all)
	return all
}

// wordAnswers are the words that may follow: commands, or what a command takes, and
// which names of files may.
func (l *line) wordAnswers() (all []string, files string) {
	switch c := l.Command(); {
	case c != nil && c.Name == fleetName:
		return nil, completeFiles
	case c != nil && c.Name == diffName && len(l.Words) < 2:
		return prefixed(examplePrefix, fixtures.Examples()), completeFiles
	case len(l.Words) > 0:
	case len(l.Commands()) > 0:
		all = lines.Map(visible(l.Commands()), func(c *cli.Command) string { return c.Name + "\t" + c.Usage })
	case c.Name == "explain":
		return builtin().names(), ""
	case c.Name == "completion":
		return shellNames(), ""
	case !l.Literal:
		return l.flagAnswers(), "" // It takes no words.
	}
	return all, ""
}
