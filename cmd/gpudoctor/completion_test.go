package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/arguments"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
)

// asked is what complete answers: the words, and what it asks the shell for.
func asked(t *testing.T, words ...string) (answers []string, files string) {
	t.Helper()
	for line := range strings.Lines(complete(testApp(), words)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, ":") {
			files = line
			continue
		}
		word, _, _ := strings.Cut(line, "\t")
		expect.That(t, strings.HasPrefix(word, words[len(words)-1]), "%q: the answer %q does not begin as the word", words, word)
		answers = append(answers, word)
	}
	return answers, files
}

// prefixes are all beginnings of a word, from the first n letters on.
func prefixes(word string, n int) []string {
	var all []string
	for ; n <= len(word); n++ {
		all = append(all, word[:n])
	}
	return all
}

// TestCompletion checks that every beginning of every command, flag and value is
// completed, in each way in which it can be typed.
func TestCompletion(t *testing.T) {
	night.NotShort(t, "it enumerates, and nothing in it runs side by side")
	questions := 0
	offers := func(want string, words ...string) {
		t.Helper()
		questions++
		answers, _ := asked(t, words...)
		expect.That(t, slices.Contains(answers, want), "%q: %q is not among the answers %q", words, want, answers)
	}
	app := testApp()
	known := expect.Value(learn(""))(t)
	for _, c := range arguments.Leaves(app.Commands) {
		if c.Name == "help" {
			continue
		}
		path := strings.Fields(c.HelpName)[1:]
		for i, word := range path {
			for _, p := range prefixes(word, 0) {
				offers(word, append(slices.Clone(path[:i]), p)...)
			}
		}
		for _, f := range arguments.WithHelp(c.Flags) {
			if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
				continue // An old name.
			}
			for _, n := range f.Names() {
				if len(n) == 1 {
					continue
				}
				for _, p := range prefixes("--"+n, 1) {
					offers("--"+n, append(slices.Clone(path), p)...)
				}
				values := choices[n]
				if n == formatFlag.Name {
					values = formatsOf(c)
				}
				for _, v := range values {
					for _, p := range prefixes(v, 0) {
						offers(v, append(slices.Clone(path), "--"+n, p)...)
						offers("--"+n+"="+v, append(slices.Clone(path), "--"+n+"="+p)...)
						offers(v, append(slices.Clone(path), "--quiet", "--"+n, p)...)
					}
				}
			}
		}
		if hasFlag(c, fromFlag.Name) {
			for _, e := range fixtures.Examples() {
				for _, p := range prefixes(examplePrefix+e, 0) {
					offers(examplePrefix+e, append(slices.Clone(path), "--from", p)...)
					offers("--from="+examplePrefix+e, append(slices.Clone(path), "--from="+p)...)
				}
			}
		}
	}
	for _, r := range known.rules.Rules() {
		for _, flag := range []string{"--only", "--skip"} {
			for _, list := range []string{"", "no-gpu,", "a,b,"} {
				offers(list+r.ID, "check", flag, list+r.ID[:len(r.ID)/2])
				offers(flag+"="+list+r.ID, "check", flag+"="+list+r.ID[:1])
			}
		}
	}
	for _, id := range known.names() {
		offers(id, "explain", id[:len(id)/2])
	}
	offers("test-gate", "explain", "--policy", filepath.Join("testdata", "policy"), "test")
	for _, s := range shellNames() {
		for _, p := range prefixes(s, 0) {
			offers(s, "completion", p)
		}
	}
	t.Logf("%d questions", questions)
	expect.AtLeast(t, 2500, questions, "questions were asked")
}

// freeText are flags that take any text.
var freeText = []string{subjectFlag, objectFlag, reasonFlag, expiresFlag, ownerFlag}

// TestCompletionIsTrue checks that each value that is offered is taken, that no flag that takes a value is left without
// an answer, and that what is there is not offered again.
func TestCompletionIsTrue(t *testing.T) {
	for _, c := range arguments.Leaves(testApp().Commands) {
		if c.Name == "help" {
			continue
		}
		path := strings.Fields(c.HelpName)[1:]
		for _, f := range c.Flags {
			name := "--" + f.Names()[0]
			if !arguments.TakesValue(f) {
				answers, _ := asked(t, append(slices.Clone(path), name, "-")...)
				expect.That(t, !slices.Contains(answers, name), "%s %s: it is offered again", c.HelpName, name)
				continue
			}
			answers, files := asked(t, append(slices.Clone(path), name, "")...)
			expect.That(t, len(answers) != 0 || files != "" || slices.Contains(freeText, f.Names()[0]), "%s %s: no value is offered", c.HelpName, name)
			for _, a := range answers {
				if choices[name[2:]] != nil {
					err := oneOf(name[2:], a)
					expect.That(t, err == nil, "%s %s %s is offered and refused: %v", c.HelpName, name, a, err)
				}
			}
			again, _ := asked(t, append(slices.Clone(path), name, "x", "--")...)
			_, repeats := f.(*cli.StringSliceFlag)
			expect.That(t, slices.Contains(again, name) == repeats, "%s %s x: offered again: %v", c.HelpName, name, !repeats)
		}
	}
	for _, tt := range []struct{ line, want, files string }{
		{"check --format ", strings.Join(report.FormatNames(), " "), ""},
		{"probe p2p --format ", "text json markdown html", ""},
		{"diff --format ", "text json markdown", ""},
		{"check --from x", "", completeFiles},
		{"check --policy ", "", completeFolders},
		{"check --only acs-redirect,acs-redirect", "", ""},
		{"check --from -- ", "", ""},
		{"explain acs-redirect ", "", ""},
		{"explain -- disable-m", "disable-mig", ""},
		{"check -- ", "", ""},
		{"nonsense ", "", ""},
		{"-", "--help --version -h", ""},
		{"--format json ch", "check", ""},
		{"probe ", "p2p nccl", ""},
		{"probe --from x p", "p2p", ""},
		{"completion z", "zsh", ""},
	} {
		answers, files := asked(t, strings.Split(tt.line, " ")...)
		got := strings.Join(answers, " ")
		expect.That(t, got == tt.want && files == tt.files, "%q: got %q and %q, want %q and %q", tt.line, got, files, tt.want, tt.files)
	}
}

// bashWords splits a line as bash does for a completion: at blanks, and at each run of ":" and "=".
func bashWords(line string) []string {
	var words []string
	for word := range strings.SplitSeq(line, " ") {
		part := ""
		for i, r := range word {
			isBreak := r == ':' || r == '='
			if i > 0 && isBreak != strings.ContainsAny(part[len(part)-1:], ":=") {
				words, part = append(words, part), ""
			}
			part += string(r)
		}
		words = append(words, part)
	}
	return words
}

// TestBashCompletion checks that the script for bash, run by bash, offers what
// complete answers, cut to what bash puts in place.
func TestBashCompletion(t *testing.T) {
	slowWithRace(t)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	lines := map[string][]string{
		"gpudoctor ch":                                 {"check"},
		"gpudoctor check --fail":                       {"--fail-on"},
		"gpudoctor check --fail-on ":                   report.Thresholds(),
		"gpudoctor check --format m":                   {"markdown"},
		"gpudoctor check --format=m":                   {"markdown"},
		"gpudoctor check --format=":                    report.FormatNames(),
		"gpudoctor check --from example:h200x":         {"h200x2", "h200x4"},
		"gpudoctor check --from=example:h200x":         {"h200x2", "h200x4"},
		"gpudoctor check --from example:":              fixtures.Examples(),
		"gpudoctor check -q --from example:h200x4 --p": {"--plain-http", "--platform", "--policy", "--probe", "--probe-busy", "--probe-timeout", "--profile"},
		"gpudoctor check --only acs-redirect,iommu-t":  {"acs-redirect,iommu-translation"},
		"gpudoctor check --only=acs-redirect,iommu-t":  {"acs-redirect,iommu-translation"},
		"gpudoctor explain disable-m":                  {"disable-mig"},
		"gpudoctor probe p2p --col":                    {"--color"},
		"gpudoctor check --from exam":                  append(examples(), "exam.log"),
		"gpudoctor nonsense ":                          nil,
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"gpudoctor.bash": completionScripts["bash"], "exam.log": ""} {
		expect.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	for line, want := range lines {
		words := bashWords(line)
		c := exec.Command(bash, append([]string{
			"--norc", "-c",
			`. ./gpudoctor.bash; COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gpudoctor; printf '%s\n' "${COMPREPLY[@]}"`,
			"bash",
		}, words...)...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		expect.That(t, err == nil, "%s: %v: %s", line, err, out)
		got := strings.Fields(string(out))
		expect.NoDiff(t, slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got)), "%s", line)
	}
}

func examples() []string {
	var all []string
	for _, e := range fixtures.Examples() {
		all = append(all, examplePrefix+e)
	}
	return all
}
