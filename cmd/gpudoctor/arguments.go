package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/flags"
)

// argument is one flag of a command line, with its value.
type argument struct {
	// name is the flag's first name; that which was typed if no command has
	// such a flag.
	name string
	// typed is the flag as it was typed, without its value.
	typed string
	value string
	// given is true where there is a value, or an equals sign.
	given bool
	// known is true where some command has the flag, takes where it takes a
	// value.
	known, takes bool
}

// String is the argument as the flag parser reads it.
func (a argument) String() string {
	if a.given {
		return "--" + a.name + "=" + a.value
	}
	return "--" + a.name
}

// commandLine is a command line, taken apart.
type commandLine struct {
	app *cli.App
	// path are the commands that it names, the outermost first.
	path  []*cli.Command
	flags []argument
	words []string
	// literal is true behind "--", where all that follows are words.
	literal bool
	// open is true where the last argument is a flag that lacks its value.
	open bool
}

// parseLine takes a command line apart. Flags and words may stand in any order:
// which flags take a value is the same for all commands (a test holds it).
func parseLine(app *cli.App, args []string) *commandLine {
	l := &commandLine{app: app}
	all := allFlags(app)
	for i := 0; i < len(args); i++ {
		arg := args[i]
		l.open = false
		switch {
		case l.literal || arg == standardInput || !strings.HasPrefix(arg, "-"):
			l.word(arg)
		case arg == "--":
			l.literal = true
		default:
			for _, a := range parseFlag(all, arg) {
				if a.takes && !a.given && i+1 < len(args) && !isFlag(all, args[i+1]) {
					i++
					a.value, a.given = args[i], true
				}
				l.open = a.takes && !a.given && i+1 == len(args)
				l.flags = append(l.flags, a)
			}
		}
	}
	return l
}

// word adds a word: the name of a command, or what a command is to take.
func (l *commandLine) word(word string) {
	if len(l.words) == 0 {
		for _, c := range l.commands() {
			if c.HasName(word) {
				l.path = append(l.path, c)
				return
			}
		}
	}
	l.words = append(l.words, word)
}

// command is the innermost command that is named, nil where there is none.
func (l *commandLine) command() *cli.Command {
	if len(l.path) == 0 {
		return nil
	}
	return l.path[len(l.path)-1]
}

// commands are those that can be named next.
func (l *commandLine) commands() []*cli.Command {
	if c := l.command(); c != nil {
		return c.Subcommands
	}
	return l.app.Commands
}

// name is the command line without flags and words.
func (l *commandLine) name() string {
	names := []string{l.app.Name}
	for _, c := range l.path {
		names = append(names, c.Name)
	}
	return strings.Join(names, " ")
}

// help is where the flags are listed.
func (l *commandLine) help() string { return l.name() + " --help lists the flags" }

// levelFlags are the flags of the program (0) or of a command on the path.
func (l *commandLine) levelFlags(level int) []cli.Flag {
	if level == 0 {
		return withHelp(l.app.Flags)
	}
	return withHelp(l.path[level-1].Flags)
}

// withHelp adds --help, which the library adds to a command once it runs.
func withHelp(flags []cli.Flag) []cli.Flag {
	if slices.Contains(flags, cli.HelpFlag) {
		return flags
	}
	return append(slices.Clone(flags), cli.HelpFlag)
}

// level is where a flag belongs: to the innermost command that has it. It is
// -1 where none has.
func (l *commandLine) level(a argument) int {
	for level := len(l.path); level >= 0 && a.known; level-- {
		if slices.ContainsFunc(l.levelFlags(level), func(f cli.Flag) bool { return f.Names()[0] == a.name }) {
			return level
		}
	}
	return -1
}

// arranged is the command line as the library reads it, which takes everything
// behind a word for words: each command, its flags, and the words at the end.
func (l *commandLine) arranged() ([]string, error) {
	levels := make([][]string, len(l.path)+1)
	words := l.words
	for _, a := range l.flags {
		level := l.level(a)
		switch {
		case l.misnamed(): // A word that is no command is told first.
			continue
		case level < 0:
			return nil, l.unknownFlag(a)
		}
		if err := l.checkValue(a); err != nil {
			return nil, err
		}
		levels[level] = append(levels[level], a.String())
		if a.name == cli.HelpFlag.Names()[0] { // The library would show the help of a word.
			words = nil
		}
	}
	args := levels[0]
	for i, c := range l.path {
		args = append(append(args, c.Name), levels[i+1]...)
	}
	if len(words) > 0 {
		args = append(append(args, "--"), words...)
	}
	return args, nil
}

// misnamed reports whether there is a word where the name of a command is
// expected.
func (l *commandLine) misnamed() bool { return len(l.words) > 0 && len(l.commands()) > 0 }

// checkValue refuses a flag without its value. An empty one is mostly a
// variable of a script that is not set.
func (l *commandLine) checkValue(a argument) error {
	switch {
	case a.takes && !a.given:
		return complaint.Hinted(fmt.Errorf("%s needs a value", flags.Dashed(a.typed)), l.help())
	case a.takes && a.value == "":
		return complaint.Hinted(fmt.Errorf("%s has an empty value", flags.Dashed(a.typed)), "leave the flag out, or give it a value")
	}
	return nil
}

// unknownFlag says which flag may have been meant, or which command takes it.
func (l *commandLine) unknownFlag(a argument) error {
	name := flagName(a.typed)
	var near, names []string
	for _, f := range l.levelFlags(len(l.path)) {
		for _, n := range f.Names() {
			if len(n) == 1 {
				continue
			}
			names = append(names, "--"+n)
			if name == n[:1] {
				near = append(near, "--"+n)
			}
		}
	}
	var hints []string
	if slices.Contains(commandNames(l.commands()), name) {
		hints = append(hints, "did you mean "+l.name()+" "+name+"?")
	}
	if len(near) > 0 {
		hints = append(hints, "did you mean "+strings.Join(near, " or ")+"?")
	}
	if takers := takersOf(l.app, name); len(takers) > 0 {
		hints = append(hints, "it is a flag of: "+join(takers))
	}
	if len(hints) > 0 {
		return complaint.Hinted(fmt.Errorf("unknown flag %s", complaint.Quote(a.typed)), append(hints, l.help())...)
	}
	return complaint.UnknownName("flag", a.typed, names, l.help())
}

// takersOf are the commands that take a flag.
func takersOf(app *cli.App, name string) []string {
	var takers []string
	for _, c := range leaves(app.Commands) {
		if slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }) {
			takers = append(takers, c.HelpName)
		}
	}
	return takers
}

// arrange puts flags before words, so that they may be typed in any order.
// "help COMMAND" is "COMMAND --help". What files set is added.
func arrange(ctx context.Context, app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	l := parseLine(app, args[1:])
	if len(l.path) == 1 && l.path[0].HasName("help") {
		l = parseLine(app, append(slices.Clone(l.words), "--help"))
	}
	if _, err := l.arranged(); err != nil { // The command line is at fault before a file is.
		return nil, err
	}
	set, err := l.addSettings(ctx)
	if err != nil {
		return nil, err
	}
	app.Metadata[settingsKey] = set
	arranged, err := l.arranged()
	return append([]string{args[0]}, arranged...), set.explain(err)
}

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

// takesValue reports whether a flag takes a value.
func takesValue(f cli.Flag) bool {
	doc, ok := f.(cli.DocGenerationFlag)
	return ok && doc.TakesValue()
}

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

// parseFlag reads an argument that begins with a dash: a flag, or several
// letters that are one each, of which the last may take a value.
func parseFlag(all map[string]cli.Flag, arg string) []argument {
	typed, value, given := strings.Cut(arg, "=")
	a := argument{name: flagName(arg), typed: typed, value: value, given: given}
	if f := all[a.name]; f != nil {
		a.name, a.known, a.takes = f.Names()[0], true, takesValue(f)
		return []argument{a}
	}
	if strings.HasPrefix(arg, "--") || len(a.name) < 2 {
		return []argument{a}
	}
	var letters []argument
	for i, letter := range a.name {
		last := i == len(a.name)-1
		f := all[string(letter)]
		if f == nil || takesValue(f) && !last {
			return []argument{a}
		}
		one := argument{name: f.Names()[0], typed: "-" + string(letter), known: true, takes: takesValue(f)}
		if last {
			one.value, one.given = value, given
		}
		letters = append(letters, one)
	}
	return letters
}
