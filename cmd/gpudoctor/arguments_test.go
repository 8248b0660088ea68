package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/arguments"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
)

// testApp is the command line, set up.
func testApp() *cli.App {
	app := newApp(io.Discard)
	app.Setup()
	return app
}

// TestFlagsAgree checks what parseLine rests on: a flag's name means the same
// flag in all commands, and takes a value in all or in none.
func TestFlagsAgree(t *testing.T) {
	app := testApp()
	type kind struct {
		first string
		takes bool
	}
	seen := map[string]kind{}
	commands := arguments.Leaves(app.Commands)
	for _, c := range commands {
		for _, f := range arguments.WithHelp(c.Flags) {
			for _, n := range f.Names() {
				k := kind{f.Names()[0], arguments.TakesValue(f)}
				before, ok := seen[n]
				expect.That(t, !ok || before == k, "%s: --%s is %v, and %v elsewhere", c.HelpName, n, k, before)
				seen[n] = k
			}
		}
	}
	expect.That(t, len(commands) >= 10 && len(seen) >= 20, "%d commands and %d names of flags were seen", len(commands), len(seen))
}

// parsed is what a command sees of a command line.
type parsed struct {
	Command string
	Flags   map[string]string
	Words   []string
}

// parse runs a command line whose commands do nothing but tell what they see.
func parse(t *testing.T, args []string) parsed {
	t.Helper()
	app := newApp(io.Discard)
	var saw *parsed
	for _, c := range arguments.Leaves(app.Commands) {
		c.Action = func(c *cli.Context) error {
			saw = &parsed{Command: c.Command.HelpName, Flags: map[string]string{}, Words: c.Args().Slice()}
			for _, f := range c.Command.Flags {
				if name := f.Names()[0]; c.IsSet(name) {
					saw.Flags[name] = fmt.Sprint(c.Value(name))
				}
			}
			return nil
		}
	}
	err := runLine(t.Context(), app, append([]string{"gpudoctor"}, args...))
	expect.Must(t, err == nil, "%q: %v", args, err)
	expect.Must(t, saw != nil, "%q: no command was run", args)
	return *saw
}

// orders are all orders of units in which the first fixed ones keep theirs.
func orders(units [][]string, fixed int) [][]string {
	if len(units) == 0 {
		return [][]string{nil}
	}
	var all [][]string
	for i := range units {
		if i > 0 && i < fixed {
			continue
		}
		rest := slices.Concat(units[:i], units[i+1:])
		left := fixed
		if i < fixed {
			left--
		}
		for _, o := range orders(rest, left) {
			all = append(all, slices.Concat(units[i], o))
		}
	}
	return all
}

// form writes a flag in one of the ways in which it can be typed.
func form(f cli.Flag, n int) []string {
	names := f.Names()
	name := names[n%len(names)]
	dashes := "--"
	if len(name) == 1 || n%3 == 2 {
		dashes = "-"
	}
	value := "a value of " + names[0]
	if c := choices[names[0]]; len(c) > 0 {
		value = c[n%len(c)]
	}
	if _, isTime := f.(*cli.DurationFlag); isTime {
		value = "7s"
	}
	switch {
	case !arguments.TakesValue(f):
		return []string{dashes + name}
	case n%2 == 0:
		return []string{dashes + name, value}
	}
	return []string{dashes + name + "=" + value}
}

// TestAnyOrder checks that every command sees the same, in whatever order its name, its flags and its words are typed:
// each command, each pair of its flags, none to two words.
func TestAnyOrder(t *testing.T) {
	t.Parallel()
	night.NotShort(t, "it enumerates, and nothing in it runs side by side")
	lines, commands, try := 0, 0, night.Every(16)
	for _, c := range arguments.Leaves(testApp().Commands) {
		if c.Name == "help" {
			continue
		}
		commands++
		var path [][]string
		for word := range strings.FieldsSeq(c.HelpName) {
			path = append(path, []string{word})
		}
		path = path[1:]
		flags := slices.DeleteFunc(slices.Clone(c.Flags), func(f cli.Flag) bool { return f == cli.HelpFlag })
		check := func(words int, given ...[]string) {
			fixed := slices.Clone(path)
			for i := range words {
				fixed = append(fixed, []string{fmt.Sprint("word", i)})
			}
			want := parse(t, slices.Concat(slices.Concat(path...), slices.Concat(given...), slices.Concat(fixed[len(path):]...)))
			expect.Must(t, want.Command == c.HelpName && len(want.Words) == words && len(want.Flags) == len(given), "%s with %q: saw %v", c.HelpName, given, want)
			for _, args := range orders(slices.Concat(fixed, given), len(fixed)) {
				lines++
				diff := cmp.Diff(want, parse(t, args))
				expect.Must(t, diff == "", "%q (-want +got):\n%s", args, diff)
			}
		}
		for words := range 3 {
			check(words)
			for i, f := range flags {
				if night.Few() && words > 0 {
					continue
				}
				for n := range 6 {
					check(words, form(f, n))
				}
				for j, g := range flags[:i] { // By day each flag with one before and one behind it, and every 16th pair.
					if !try(c.HelpName+" "+f.Names()[0], c.HelpName+" before "+g.Names()[0]) {
						continue
					}
					check(words, form(f, i+j+words), form(g, i+2*j+words))
				}
			}
		}
	}
	t.Logf("%d command lines of %d commands", lines, commands)
	expect.That(t, lines >= 3000 && commands >= 9, "%d command lines of %d commands were tried", lines, commands)
}

// TestArrange checks what becomes of words that look like flags, and of letters in one.
func TestArrange(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"explain a --policy p", "explain --policy=p -- a"},
		{"explain --policy=p -- --a --policy", "explain --policy=p -- --a --policy"},
		{"explain -- a -- b", "explain -- a -- b"},
		{"-- explain --policy", "explain -- --policy"},
		{"check --from - -", "check --from=- -- -"},
		{"check --probe-timeout -5s", "check --probe-timeout=-5s"},
		{"check --from -x", "check --from=-x"},
		{"check --from=--verbose", "check --from=--verbose"},
		{"check --from=a=b", "check --from=a=b"},
		{"check -vq", "check --verbose --quiet"},
		{"check -qo r.md", "check --quiet --output=r.md"},
		{"check -qo=r.md", "check --quiet --output=r.md"},
		{"check -o a.md --output b.md -from c", "check --output=a.md --output=b.md --from=c"},
		{"--format md probe --quiet p2p", "probe p2p --format=md --quiet"},
		{"--version check", "--version check"},
		{"check --version", "--version check"},
		{"help", "--help"},
		{"help check", "check --help"},
		{"help probe p2p", "probe p2p --help"},
		{"explain acs -h", "explain --help"},
		{"probe nonsense --from a", "probe -- nonsense"},
		{"nonsense --from a --bogus", "-- nonsense"},
		{"help nonsense", "-- nonsense"},
		{"", ""},
	} {
		got, err := arrange(t.Context(), testApp(), append([]string{"gpudoctor"}, strings.Fields(tt.in)...))
		expect.That(t, err == nil, "%s: %v", tt.in, err)
		expect.Equal(t, tt.want, strings.Join(got[1:], " "), "%s", tt.in)
	}
}

// FuzzArrange checks that no command line is a crash, and that what is arranged stays as it is.
func FuzzArrange(f *testing.F) {
	for _, line := range []string{"check --from a -qv", "explain x --policy\x00p", "-- --", "--=", "-=x check", "help probe p2p", "probe --help nonsense", "check -o= ---"} {
		f.Add(strings.ReplaceAll(line, " ", "\n"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		app := testApp()
		args := append([]string{"gpudoctor"}, strings.Split(line, "\n")...)
		complete(app, args[1:])
		once, err := arrange(t.Context(), app, args)
		if err != nil {
			var h complaint.Error
			expect.That(t, errors.As(err, &h) && len(h.Hints) > 0, "an error without a hint: %v", err)
			return
		}
		twice, err := arrange(t.Context(), app, once)
		expect.That(t, err == nil && slices.Equal(once, twice), "%q becomes %q, and that %q: %v", args, once, twice, err)
	})
}

// TestValueNeeded checks that every flag of every command says by its name that its value is missing or empty.
func TestValueNeeded(t *testing.T) {
	tried := 0
	for _, c := range arguments.Leaves(testApp().Commands) {
		for _, f := range c.Flags {
			if !arguments.TakesValue(f) {
				continue
			}
			for _, n := range f.Names() {
				flag := arguments.Dashed(n)
				for _, tt := range []struct {
					args []string
					want string
				}{
					{[]string{flag}, " needs a value"},
					{[]string{flag, "--help"}, " needs a value"},
					{[]string{flag, "--"}, " needs a value"},
					{[]string{flag, ""}, " has an empty value"},
					{[]string{flag + "="}, " has an empty value"},
				} {
					tried++
					args := append(strings.Fields(c.HelpName), tt.args...)
					var b bytes.Buffer
					expect.Equal(t, exitError, run(args, io.Discard, &b), "%q ended with", args)
					first, hint, _ := strings.Cut(b.String(), "\n")
					expect.That(t, first == "gpudoctor: "+flag+tt.want && strings.HasPrefix(hint, "hint: "), "%q said %q", args, b.String())
				}
			}
		}
	}
	expect.AtLeast(t, 100, tried, "command lines were tried")
}

// TestUnknownFlag checks that a flag that a command lacks is named as it was typed, with a hint that leads on.
func TestUnknownFlag(t *testing.T) {
	for line, want := range map[string]string{
		"check --fial-on high": "unknown flag --fial-on|did you mean --fail-on?|gpudoctor check --help lists the flags",
		"check -fial-on=high":  "unknown flag -fial-on|did you mean --fail-on?|gpudoctor check --help lists the flags",
		"check -f":             "unknown flag -f|did you mean --from or --fail-on or --format?|gpudoctor check --help lists the flags",
		"check -qx":            "unknown flag -qx|gpudoctor check --help lists the flags",
		"check ---from x":      "unknown flag ---from|did you mean --from?|gpudoctor check --help lists the flags",
		"check --=x":           "unknown flag --|gpudoctor check --help lists the flags",
		"facts --format json":  "unknown flag --format|it is a flag of: gpudoctor check, gpudoctor advise, gpudoctor image, gpudoctor probe p2p, gpudoctor probe nccl, gpudoctor diff|gpudoctor facts --help lists the flags",
		"--check":              "unknown flag --check|did you mean gpudoctor check?|gpudoctor --help lists the flags",
		"probe --p2p":          "unknown flag --p2p|did you mean gpudoctor probe p2p?|gpudoctor probe --help lists the flags",
		"-v":                   "unknown flag -v|did you mean --version?|it is a flag of: gpudoctor check, gpudoctor image, gpudoctor probe p2p, gpudoctor probe nccl, gpudoctor diff|gpudoctor --help lists the flags",
		"explain x -o":         "unknown flag -o|it is a flag of: gpudoctor check, gpudoctor advise, gpudoctor image, gpudoctor snapshot|gpudoctor explain --help lists the flags",
	} {
		_, err := arrange(t.Context(), testApp(), append([]string{"gpudoctor"}, strings.Fields(line)...))
		var h complaint.Error
		if !errors.As(err, &h) {
			t.Errorf("%s: %v", line, err)
			continue
		}
		expect.Equal(t, want, strings.Join(append([]string{err.Error()}, h.Hints...), "|"), "%s", line)
	}
}
