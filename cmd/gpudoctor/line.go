package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/remedies"
)

// argument is one flag of a command line, with its value.
type argument struct {
	// Name is the flag's first name; the name as typed if no command has such a flag.
	Name string
	// Typed is the flag as it was typed, without its value.
	Typed string
	Value string
	// Given is true where there is a value, or an equals sign.
	Given bool
	// Known is true where some command has the flag, Takes where it takes a value.
	Known, Takes bool
}

// String is the argument as the flag parser reads it.
func (a argument) String() string {
	if a.Given {
		return "--" + a.Name + "=" + a.Value
	}
	return "--" + a.Name
}

// line is a command line, taken apart.
type line struct {
	App *cli.App
	// Path are the commands that it names, the outermost first.
	Path  []*cli.Command
	Flags []argument
	Words []string
	// Literal is true behind "--", where all that follow are words.
	Literal bool
	// Open is true where the last argument is a flag that lacks its value.
	Open bool
}

// parseLine takes a command line apart. Flags and words may stand in any order:
// which flags take a value is the same for all commands (a test checks it).
func parseLine(app *cli.App, args []string) *line {
	l := &line{App: app}
	all := allFlags(app)
	for i := 0; i < len(args); i++ {
		arg := args[i]
		l.Open = false
		switch {
		case l.Literal || arg == "-" || !strings.HasPrefix(arg, "-"): // "-" is standard input.
			l.word(arg)
		case arg == "--":
			l.Literal = true
		default:
			a := parseFlag(all, arg)
			if a.Takes && !a.Given && i+1 < len(args) && !isFlag(all, args[i+1]) {
				i++
				a.Value, a.Given = args[i], true
			}
			l.Open = a.Takes && !a.Given && i+1 == len(args)
			l.Flags = append(l.Flags, a)
		}
	}
	return l
}

// word adds a word: the name of a command, or what a command is to take.
func (l *line) word(word string) {
	if len(l.Words) == 0 {
		for _, c := range l.Commands() {
			if c.HasName(word) {
				l.Path = append(l.Path, c)
				return
			}
		}
	}
	l.Words = append(l.Words, word)
}

// Command is the innermost command that is named, nil where there is none.
func (l *line) Command() *cli.Command {
	if len(l.Path) == 0 {
		return nil
	}
	return l.Path[len(l.Path)-1]
}

// Commands are those that can be named next.
func (l *line) Commands() []*cli.Command {
	if c := l.Command(); c != nil {
		return c.Subcommands
	}
	return l.App.Commands
}

func (l *line) help() string {
	names := lines.Map(l.Path, func(c *cli.Command) string { return c.Name })
	return strings.Join(append([]string{l.App.Name}, names...), " ") + " --help lists the flags"
}

// LevelFlags are the flags of the innermost command that is named, or of the program.
func (l *line) LevelFlags() []cli.Flag {
	if c := l.Command(); c != nil {
		return withHelp(c.Flags)
	}
	return withHelp(l.App.Flags)
}

// withHelp adds --help, which the library adds to a command once it runs.
func withHelp(flags []cli.Flag) []cli.Flag {
	if slices.Contains(flags, cli.HelpFlag) {
		return flags
	}
	return append(slices.Clone(flags), cli.HelpFlag)
}

// Arranged is the command line as the library reads it, which takes everything
// behind a word for words: the command, its flags, and the words at the end.
func (l *line) Arranged() ([]string, error) {
	args := lines.Map(l.Path, func(c *cli.Command) string { return c.Name })
	words := l.Words
	for _, a := range l.Flags {
		if l.Misnamed() { // A word that is no command is told first.
			break
		}
		names := lines.Map(l.LevelFlags(), func(f cli.Flag) string { return f.Names()[0] })
		switch {
		case !a.Known || !slices.Contains(names, a.Name):
			return nil, complaint.UnknownName("flag", a.Typed, prefixed("--", names), l.help())
		case a.Takes && !a.Given:
			return nil, complaint.Hinted(fmt.Errorf("%s needs a value", dashed(a.Typed)), l.help())
		case a.Takes && a.Value == "": // Mostly a variable of a script that is not set.
			return nil, complaint.Hinted(fmt.Errorf("%s has an empty value", dashed(a.Typed)), "leave the flag out, or give it a value")
		}
		args = append(args, a.String())
		if a.Name == cli.HelpFlag.Names()[0] { // The library would show the help of a word.
			words = nil
		}
	}
	if len(words) > 0 {
		args = append(append(args, "--"), words...)
	}
	return args, nil
}

// Misnamed reports whether there is a word where the name of a command is expected.
func (l *line) Misnamed() bool { return len(l.Words) > 0 && len(l.Commands()) > 0 }

// allFlags are the flags of the program and of all commands, by all their names.
func allFlags(app *cli.App) map[string]cli.Flag {
	all := map[string]cli.Flag{}
	add := func(flags []cli.Flag) {
		for _, f := range flags {
			for _, n := range f.Names() {
				all[n] = f
			}
		}
	}
	for _, c := range leaves(app.Commands) {
		add(c.Flags)
	}
	add(withHelp(app.Flags))
	return all
}

// leaves are the commands that hold no others.
func leaves(commands []*cli.Command) []*cli.Command {
	var all []*cli.Command
	for _, c := range commands {
		if len(c.Subcommands) == 0 {
			all = append(all, c)
		}
		all = append(all, leaves(c.Subcommands)...)
	}
	return all
}

func takesValue(f cli.Flag) bool { return docOf(f).TakesValue() }

// flagName is a flag's name as it was typed, without dashes and value.
func flagName(arg string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
	return name
}

// isFlag reports whether an argument is a flag of some command, or ends the
// flags: such a one is no value, unless it stands behind an equals sign.
func isFlag(all map[string]cli.Flag, arg string) bool {
	return arg == "--" || len(arg) > 1 && arg[0] == '-' && all[flagName(arg)] != nil
}

func parseFlag(all map[string]cli.Flag, arg string) argument {
	typed, value, given := strings.Cut(arg, "=")
	a := argument{Name: flagName(arg), Typed: typed, Value: value, Given: given}
	if f := all[a.Name]; f != nil {
		a.Name, a.Known, a.Takes = f.Names()[0], true, takesValue(f)
	}
	return a
}

func commandNames(commands []*cli.Command) []string {
	visible := lines.Filter(commands, func(c *cli.Command) bool { return !c.Hidden && c.Name != "help" })
	return lines.Map(visible, func(c *cli.Command) string { return c.Name })
}

// usageError turns an error of the flag parser into one line with a hint.
func usageError(c *cli.Context, err error, _ bool) error {
	m := badValue.FindStringSubmatch(err.Error())
	if m == nil {
		return complaint.Hinted(err, c.Command.HelpName+" --help lists the flags")
	}
	hint := c.Command.HelpName + " --help lists the flags"
	if _, isTime := allFlags(c.App)[m[2]].(*cli.DurationFlag); isTime {
		hint = "a time has a unit: 30s, 2m"
	}
	return complaint.Hinted(fmt.Errorf("invalid value %s for %s", m[1], dashed(m[2])), hint)
}

// badValue matches the flag parser's error for an invalid value (package flag).
var badValue = lazy.New(`^invalid (?:boolean )?value (".*") for (?:flag )?-([a-z-]+): `)

// arrange puts flags before words, so that they may be typed in any order.
// "help COMMAND" is "COMMAND --help". What files set is added.
func arrange(ctx context.Context, app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	l := parseLine(app, args[1:])
	if len(l.Path) == 1 && l.Path[0].HasName("help") {
		l = parseLine(app, append(slices.Clone(l.Words), "--help"))
	}
	if _, err := l.Arranged(); err != nil { // The command line is at fault before a file is.
		return nil, err
	}
	set, err := addSettings(ctx, l)
	if err != nil {
		return nil, err
	}
	app.Metadata[settingsKey] = set
	arranged, err := l.Arranged()
	return append([]string{args[0]}, arranged...), explained(err, set)
}

// refused is what is wrong with a command line in itself: an argument of a command that says nothing of
// arguments, values that a flag does not take, and flags that exclude each other.
func refused(c *cli.Context) error {
	if c.Command.ArgsUsage == "" && c.Args().Present() {
		hints := append(meantAs(c), c.Command.HelpName+" --help describes its arguments")
		return complaint.Hinted(errors.New("unexpected argument: "+complaint.Quote(c.Args().First())), hints...)
	}
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if value := c.String(name); name != armsFlag.Name && (value != "" || c.IsSet(name)) {
			if err := oneOf(c.Command, name, value); err != nil {
				return err
			}
		}
	}
	if c.Bool(redactFlag.Name) && c.Bool(noRedactFlag.Name) {
		return complaint.Hinted(errors.New("--redact and --no-redact cannot be used together"), "by default, names are replaced in files, and secrets everywhere")
	}
	if dir := c.String(policyFlag.Name); dir != "" {
		return checkPolicy(dir)
	}
	return nil
}

// meantAs says how to examine files that were given without a flag: what exists, or has the form of a path.
func meantAs(c *cli.Context) []string {
	word := c.Args().First()
	if _, err := os.Stat(word); err != nil && word != standardInput && !strings.HasPrefix(word, examplePrefix) && !strings.ContainsAny(word, `./\`) {
		return nil
	}
	return []string{"to examine it: gpudoctor check --from " + remedies.Quote(word)}
}
