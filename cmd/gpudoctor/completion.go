package main

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/arguments"
	"github.com/gpudoctor/gpudoctor/cmd/internal/compare"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/emit"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/collectives"
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
fish        gpudoctor completion fish | source
powershell  gpudoctor completion powershell | Out-String | Invoke-Expression`,
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 {
				return complaint.Hinted(errors.New("completion takes the name of one shell"), "one of: "+join(names))
			}
			script, ok := completionScripts[c.Args().First()]
			if !ok {
				return complaint.UnknownName("shell", c.Args().First(), names, "one of: "+join(names))
			}
			return stdio.Write(c.App.Writer, func(w io.Writer) error {
				_, err := io.WriteString(w, script)
				return err
			})
		},
	}
}

// answer is what a word may become, and what that means.
type answer struct{ word, meaning string }

// complete answers what the last word of a command line may become.
func complete(app *cli.App, words []string) string {
	word := words[len(words)-1]
	l := question{arguments.Parse(app, words[:len(words)-1])}
	var all []answer
	files := ""
	flag, prefix, value := l.valueAsked(word)
	switch {
	case flag != nil:
		all, files = l.values(flag, prefix, value)
	case strings.HasPrefix(word, "-") && !l.Literal:
		all = l.flagAnswers()
	default:
		all, files = l.wordAnswers()
	}
	var b strings.Builder
	for _, a := range all {
		if strings.HasPrefix(a.word, word) {
			b.WriteString(lines.Printable(a.word, false))
			if a.meaning != "" {
				b.WriteString("\t" + lines.Printable(a.meaning, false))
			}
			b.WriteString("\n")
		}
	}
	if files != "" {
		b.WriteString(files + "\n")
	}
	return b.String()
}

// question is the command line before the word that is asked for.
type question struct{ *arguments.Line }

// valueAsked returns the flag that a word is a value of, the part of the word before
// the value, and the value: "--format=m", or "m" after "--format". The flag is nil if
// the word is not a value.
func (l question) valueAsked(word string) (flag cli.Flag, prefix, value string) {
	if l.Literal {
		return nil, "", ""
	}
	all := arguments.AllFlags(l.App)
	if strings.HasPrefix(word, "-") {
		if before, after, ok := strings.Cut(word, "="); ok {
			if f := all[arguments.FlagName(before)]; f != nil && arguments.TakesValue(f) {
				return f, before + "=", after
			}
		}
		return nil, "", ""
	}
	if l.Open {
		return all[l.Flags[len(l.Flags)-1].Name], "", word
	}
	return nil, "", ""
}

// values are the values of a flag, and which names of files are values as well.
func (l question) values(f cli.Flag, prefix, value string) (all []answer, files string) {
	name := f.Names()[0]
	var values []string
	if _, isTime := f.(*cli.DurationFlag); isTime {
		values = []string{"30s", "1m", "2m"}
	}
	switch name {
	case fromFlag.Name, targetFlag.Name:
		for _, e := range fixtures.Examples() {
			values = append(values, examplePrefix+e)
		}
		files = completeFiles
	case withFlag.Name, diffFlag, "output", "baseline", "exclude", pathFlag, waiveFlag.Name, intoFlag, ncclFlag.Name, expectedFlag:
		files = completeFiles
	case policyFlag.Name:
		files = completeFolders
	case maxBytesFlag.Name:
		values = []string{"500MB", "2GiB", "8GiB"}
	case driverFlag.Name:
		values = []string{"535.104.05", "550.54.15", "570.124.06", "580.95.05"}
	case platformFlag.Name:
		values = []string{"linux/amd64", "linux/arm64"}
	case ruleFlag:
		for _, r := range l.knowledge().rules.Rules() {
			values = append(values, r.ID)
		}
	case "only", "skip":
		values = l.ids(value)
	case formatFlag.Name:
		values = formatsOf(l.Command())
	default:
		values = append(values, choices[name]...)
	}
	for _, v := range values {
		all = append(all, answer{word: prefix + v})
	}
	return all, files
}

// formatsOf are the formats in which a command writes.
func formatsOf(c *cli.Command) []string {
	switch {
	case c != nil && slices.Contains(c.Flags, cli.Flag(armsFlag)):
		return collectives.Formats
	case c == nil || slices.Contains(c.Flags, cli.Flag(checkFormatFlag)):
		return report.FormatNames()
	case c.Name == diffName:
		return compare.Formats()
	case c.Name == "advise":
		return emit.Formats()
	}
	return report.TransferFormats()
}

// ids are the lists of rules that a list may become: those before its last
// comma, and one more.
func (l question) ids(list string) []string {
	before := list[:strings.LastIndex(list, ",")+1]
	given := ids([]string{before})
	var lists []string
	for _, r := range l.knowledge().rules.Rules() {
		if !slices.Contains(given, r.ID) {
			lists = append(lists, before+r.ID)
		}
	}
	return lists
}

// knowledge is the rules and remedies, with those of the --policy that the
// command line names, if they are sound.
func (l question) knowledge() knowledge {
	policy := ""
	for _, a := range l.Flags {
		if a.Name == policyFlag.Name {
			policy = a.Value
		}
	}
	if policy != "" {
		if known, err := learn(policy); err == nil {
			return known
		}
	}
	return builtin()
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
func (l question) flagAnswers() []answer {
	var all []answer
	for _, f := range l.LevelFlags(len(l.Path)) {
		_, repeats := f.(*cli.StringSliceFlag)
		if !repeats && slices.ContainsFunc(l.Flags, func(a arguments.Argument) bool { return a.Name == f.Names()[0] }) {
			continue
		}
		help, ok := arguments.HelpOf(f)
		if !ok || arguments.Hidden(f) {
			continue
		}
		for _, n := range f.Names() {
			if len(n) > 1 {
				all = append(all, answer{"--" + n, help.Usage})
			}
		}
		for _, n := range f.Names() {
			if len(n) == 1 {
				all = append(all, answer{"-" + n, help.Usage})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b answer) int { return cmp.Compare(a.word, b.word) })
	return all
}

// wordAnswers are the words that may follow: commands, or what a command takes, and
// which names of files may.
func (l question) wordAnswers() (all []answer, files string) {
	switch c := l.Command(); {
	case c != nil && c.Name == waiveName && len(l.Words) == 0:
		files = completeFiles
	case c != nil && c.Name == diffName && len(l.Words) < 2:
		for _, e := range fixtures.Examples() {
			all = append(all, answer{word: examplePrefix + e})
		}
		files = completeFiles
	case len(l.Words) > 0:
	case len(l.Commands()) > 0:
		for _, c := range l.Commands() {
			if !c.Hidden && c.Name != "help" {
				all = append(all, answer{c.Name, c.Usage})
			}
		}
	case c.Name == "explain":
		for _, n := range l.knowledge().names() {
			all = append(all, answer{word: n})
		}
	case c.Name == "completion":
		for _, s := range shellNames() {
			all = append(all, answer{word: s})
		}
	case !l.Literal:
		all = l.flagAnswers() // It takes no words.
	}
	return all, files
}
