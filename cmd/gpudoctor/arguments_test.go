package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

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
	commands := leaves(app.Commands)
	for _, c := range commands {
		for _, f := range withHelp(c.Flags) {
			for _, n := range f.Names() {
				k := kind{f.Names()[0], takesValue(f)}
				before, ok := seen[n]
				expect.That(t, !ok || before == k, "%s: --%s is %v, and %v elsewhere", c.HelpName, n, k, before)
				seen[n] = k
			}
		}
	}
	expect.That(t, len(commands) >= 10 && len(seen) >= 20, "%d commands and %d names of flags were seen", len(commands), len(seen))
}

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
	for _, c := range leaves(app.Commands) {
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
	if _, isNumber := f.(*cli.IntFlag); isNumber {
		value = "7"
	}
	switch {
	case !takesValue(f):
		return []string{dashes + name}
	case n%2 == 0:
		return []string{dashes + name, value}
	}
	return []string{dashes + name + "=" + value}
}

// ownCommands are all commands but help, which the library adds.
func ownCommands() []*cli.Command {
	return lines.Filter(leaves(testApp().Commands), func(c *cli.Command) bool { return c.Name != "help" })
}

// TestAnyOrder checks that every command sees the same, in whatever order its name, its flags and its words are typed:
// each command, each pair of its flags, none to two words.
func TestAnyOrder(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	typed, commands, try := 0, 0, expect.EachNth(16)
	for _, c := range ownCommands() {
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
				typed++
				diff := cmp.Diff(want, parse(t, args))
				expect.Must(t, diff == "", "%q (-want +got):\n%s", args, diff)
			}
		}
		check(0)
		for i, f := range flags { // By day each flag with one before and one behind it.
			for n := range 6 {
				if try(c.HelpName + " " + f.Names()[0]) {
					check(n%3, form(f, n))
				}
			}
			for j, g := range flags[:i] {
				if try(c.HelpName+" "+f.Names()[0]+" before", c.HelpName+" before "+g.Names()[0]) {
					check((i+j)%3, form(f, i+j), form(g, i+2*j))
				}
			}
		}
	}
	t.Logf("%d command lines of %d commands", typed, commands)
	expect.That(t, typed >= 1000 && commands >= 9, "%d command lines of %d commands were tried", typed, commands)
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
		{"check -o=r.md -v", "check --output=r.md --verbose"},
		{"check -o a.md --output b.md -from c", "check --output=a.md --output=b.md --from=c"},
		{"--format md probe --quiet p2p", "probe p2p --format=md --quiet"},
		{"--version", "--version"},
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
	for _, c := range leaves(testApp().Commands) {
		for _, f := range c.Flags {
			if !takesValue(f) {
				continue
			}
			for _, n := range f.Names() {
				flag := dashed(n)
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
		"check -qx":            "unknown flag -qx|gpudoctor check --help lists the flags",
		"check ---from x":      "unknown flag ---from|did you mean --from?|gpudoctor check --help lists the flags",
		"check --=x":           "unknown flag --|gpudoctor check --help lists the flags",
		"facts --format json":  "unknown flag --format|gpudoctor facts --help lists the flags",
		"-v":                   "unknown flag -v|gpudoctor --help lists the flags",
	} {
		_, err := arrange(t.Context(), testApp(), append([]string{"gpudoctor"}, strings.Fields(line)...))
		h, _ := errors.AsType[complaint.Error](err)
		expect.Equal(t, want, strings.Join(append([]string{fmt.Sprint(err)}, h.Hints...), "|"), "%s", line)
	}
}

func asked(t *testing.T, words ...string) []string {
	t.Helper()
	answers := strings.FieldsFunc(complete(testApp(), words), func(r rune) bool { return r == '\n' })
	for _, a := range answers {
		expect.That(t, strings.HasPrefix(a, words[len(words)-1]), "%q: the answer %q does not begin as the word", words, a)
	}
	return answers
}

// TestCompletion checks that every command, flag and value is completed, and that each value that is offered is taken.
func TestCompletion(t *testing.T) {
	// offers checks that words are offered for what they begin with, behind others.
	offers := func(words []string, begun string, before ...string) {
		t.Helper()
		answers := asked(t, append(slices.Clone(before), begun)...)
		for _, word := range words {
			expect.That(t, slices.Contains(answers, begun+word), "%q is not offered behind %q", begun+word, before)
		}
	}
	known := expect.Value(learn(""))(t)
	for _, c := range ownCommands() {
		path := strings.Fields(c.HelpName)[1:]
		for i, word := range path {
			offers([]string{word}, "", path[:i]...)
		}
		for _, f := range withHelp(c.Flags) {
			name, flag := f.Names()[0], "--"+f.Names()[0]
			values := choices[name]
			offers([]string{name}, "--", path...)
			switch name {
			case formatFlag.Name:
				values = formatsOf(c)
			case fromFlag.Name:
				values = prefixed(examplePrefix, fixtures.Examples())
			}
			offers(values, "", append(slices.Clone(path), "--quiet", flag)...)
			offers(values, flag+"=", path...)
			for _, a := range asked(t, append(slices.Clone(path), flag, "")...) {
				expect.That(t, !takesValue(f) || name == armsFlag.Name || oneOf(c, name, a) == nil, "%s %s %s is offered and refused", c.HelpName, flag, a)
			}
		}
	}
	for _, list := range []string{"", "no-gpu,", "a,b,"} {
		rules := slices.DeleteFunc(known.ruleIDs(), func(id string) bool { return strings.Contains(list, id+",") })
		offers(rules, list, "check", "--only")
		offers(rules, "--skip="+list, "check")
	}
	offers(known.names(), "", "explain")
	offers(shellNames, "", "completion")
	for line, want := range map[string]string{
		"check --from x": "", "check --from -- ": "", "explain acs-redirect ": "", "explain -- disable-m": "disable-mig", "check -- ": "", "nonsense ": "",
		"-": "--help --version -h", "--format json ch": "check", "probe ": "nccl p2p",
	} {
		expect.Equal(t, want, strings.Join(asked(t, strings.Split(line, " ")...), " "), "%q", line)
	}
}

func requestOf(flags ...string) (got request, err error) {
	c := checkCommand()
	c.Action = func(c *cli.Context) (err error) {
		got, err = readRequest(c)
		return err
	}
	app := &cli.App{Name: "gpudoctor", Reader: strings.NewReader(""), Commands: []*cli.Command{c}}
	err = app.Run(append([]string{"gpudoctor", "check"}, flags...))
	got.source.stdin = nil
	return got, err
}

func parseRequest(t *testing.T, flags []string) request {
	t.Helper()
	return expect.Value(requestOf(flags...))(t)
}

// TestRecheck checks of each flag that the command that checks again asks for the same, or that it is left out on purpose.
func TestRecheck(t *testing.T) {
	policy := expect.Value(filepath.Abs(filepath.Join("testdata", "policy")))(t)
	t.Chdir(t.TempDir())
	for _, name := range []string{"my logs", "b.log"} {
		expect.NoError(t, os.WriteFile(name, []byte("NCCL INFO"), 0o600))
	}
	for _, line := range []string{
		"", "--from|my logs|--from|b.log", "--with|b.log", "--profile|image", "--policy|" + policy, "--waive|my waivers.yaml", "--fail-on|medium", "--strict",
		"--probe|full", "--probe-busy", "--probe-timeout|30s", "--deadline|45s", "--max-bytes|500MB", "--exclude|test/*|--exclude|b",
		"--from|b.log|--profile|launch|--target|example:h200x2", "--profile|image|--target|example:model-2x-zeros|--driver|550.54",
		"--profile|image|--from|docker://127.0.0.1:1/org/app:1|--platform|linux/arm64/v8|--plain-http",
	} {
		flags := strings.FieldsFunc(line, func(r rune) bool { return r == '|' })
		want := parseRequest(t, flags)
		got := parseRequest(t, want.again.Flags)
		expect.That(t, reflect.DeepEqual(got, want) && len(got.again.Flags) == len(flags), "%q checks again with %q: %+v, want %+v", flags, want.again.Flags, got, want)
	}
	left := []string{"baseline", "only", "skip", "redact", "no-redact", "format", "output", "verbose", "quiet", "color", "ascii"}
	for _, f := range checkCommand().Flags {
		name := f.Names()[0]
		expect.That(t, slices.Contains(repeated, name) != slices.Contains(left, name), "--%s: add it to repeated if it decides what is examined or how it is judged, else to the flags that are left out here", name)
	}
}

// dead is a file system in which files named dead never answer, as on a network share whose server is gone.
type dead struct {
	files.OS
	end chan struct{}
}

func (d dead) wait(name string) {
	if strings.HasPrefix(filepath.Base(name), "dead") {
		<-d.end
	}
}

func (d dead) Stat(name string) (fs.FileInfo, error) {
	d.wait(name)
	return d.OS.Stat(name)
}

func (d dead) Open(name string) (files.File, error) {
	d.wait(name)
	return d.OS.Open(name)
}

// TestDeadShare checks that files on a dead network share do not stop the command before it has begun: they are refused
// where they are all that was given, and else the others are examined.
func TestDeadShare(t *testing.T) {
	dir := t.TempDir()
	log, share := filepath.Join(dir, "job.log"), filepath.Join(dir, "dead.log")
	for _, name := range []string{log, share} {
		expect.NoError(t, os.WriteFile(name, []byte("NCCL version 2.21.5+cuda12.4\n"), 0o600))
	}
	system := dead{end: make(chan struct{})}
	t.Cleanup(func() { close(system.end) })
	// Each answer is waited for up to deadline.Silence; the context ends it sooner.
	over, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer stop()
	alone := source{from: []string{share}, system: system}
	err := alone.check(over)
	expect.That(t, err != nil && !strings.Contains(err.Error(), "\n"), "alone: %v", err)
	expect.That(t, !alone.isRecording(over, share), "it is taken for a recording")
	_, _, err = alone.openRecording(over, share)
	expect.ErrorIs(t, context.DeadlineExceeded, err, "opened")
	both := source{from: []string{log, share}, system: system}
	g := collect(t.Context(), both, gather.Options{Whole: 4 * time.Second})
	expect.NoError(t, g.err)
	for _, text := range g.facts.Texts {
		dead := text.Name == share
		expect.That(t, dead == (text.Unread == facts.UnreadTime) && dead != (len(text.Kinds) > 0), "%+v", text)
	}
}

func TestMaxBytesFlag(t *testing.T) {
	for value, want := range map[string]int64{"500MB": 500e6, "2GiB": 2 << 30, "64 KiB": 64 << 10, "1": 1, "0": 0, "-1": 0, "x": 0, "": 0, "1e30": 0, "1.5GiB": 3 << 29, "99999999EB": 0, "5QB": 0} {
		r, err := requestOf("--max-bytes", value)
		got := r.source.maxBytes
		expect.That(t, (err == nil) == (want > 0) && (err != nil || got == want), "%q: got %d, %v, want %d", value, got, err, want)
		expect.That(t, err == nil || strings.Contains(err.Error(), "--max-bytes"), "%q: %v", value, err)
	}
}
