package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

// hostile checks what steers a terminal, turns the direction of writing, hides, or is no text: each control character
// of C0 and C1 but NUL and the line break, sequences of terminals, marks of direction, characters without width, tags,
// surrogates and bytes that are no UTF-8.
func hostile() string {
	var b strings.Builder
	b.WriteString("H\x1b[2J\x1b]0;owned\x07\x1bPq\x1b\\")
	for r := rune(1); r < 0xa0; r++ {
		if r != '\n' && (r < ' ' || r >= 0x7f) {
			b.WriteRune(r)
		}
	}
	b.WriteString("\u061c\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff\u00ad\u034f\u3164\ufe0f")
	b.WriteString("\U000e0001\U000e0041\U000e0100\ue000\uffff")
	b.WriteString("\x80\x9b31m\xff\xc0\xaf\xed\xa0\x80T")
	return b.String()
}

func shown(t *testing.T, what, output string) {
	t.Helper()
	expect.That(t, utf8.ValidString(output), "%s: the output is no UTF-8", what)
	for line := range strings.Lines(output) {
		for i, r := range strings.TrimSuffix(line, "\n") {
			keepsUnit := r == '\u00a0' && strings.HasSuffix(what, ".md") // Between a number and its unit.
			if !escape.Visible(r) && !keepsUnit {
				t.Errorf("%s: %U in %q", what, r, line[max(0, i-40):min(len(line), i+40)])
				return
			}
		}
	}
}

// runShown runs a command line in this process and checks that nothing that it prints or writes steers a terminal.
func runShown(t *testing.T, what string, args ...string) (code int, stdout string) {
	t.Helper()
	code, stdout, stderr := inProcess(args...)
	shown(t, what+", standard output", stdout)
	shown(t, what+", standard error", stderr)
	return code, stdout
}

func checkShown(t *testing.T, what string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	line := []string{"check", "--probe", "off", "--verbose", "--format", "text", "-o", filepath.Join(dir, "r.json"), "-o", filepath.Join(dir, "r.md")}
	code, _ := runShown(t, what, append(line, args...)...)
	expect.That(t, code != exitError || strings.Contains(what, "refused"), "%s: exit code %d", what, code)
	for _, name := range []string{"r.json", "r.md"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !strings.Contains(what, "refused") {
			t.Error(err)
		}
		shown(t, what+", "+name, string(raw))
	}
}

// planted puts the hostile text behind each string of a decoded document that
// the choice takes, and into the names of what maps hold.
func planted(v any, path string, take func(path string) bool) any {
	switch v := v.(type) {
	case string:
		if take(path) {
			return v + hostile()
		}
	case []any:
		for i := range v {
			v[i] = planted(v[i], path, take)
		}
	case map[string]any:
		for name, value := range v {
			v[name] = planted(value, path+"."+name, take)
		}
	}
	return v
}

// TestHostileFacts checks it for the strings of facts: of the whole machine, and of each section by itself.
func TestHostileFacts(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	facts := filepath.Join(t.TempDir(), "facts.json")
	_, machine := runShown(t, "facts", "facts", "--from", filepath.Join("..", "..", "fixtures", "hosts", "h200x2.txtar"))
	for _, section := range append(slices.Sorted(maps.Keys(decoded[map[string]any](t, machine))), "all") {
		if section == "schema" {
			continue
		}
		v := decoded[map[string]any](t, machine)
		count := 0
		planted(v, "", func(path string) bool {
			chosen := path != ".schema" && (section == "all" || strings.HasPrefix(path, "."+section))
			if chosen {
				count++
			}
			return chosen
		})
		delete(v, "schema")
		raw := expect.Value(json.Marshal(v))(t)                                                  // It writes bytes that are no UTF-8 as U+FFFD.
		writeTestFile(t, facts, append([]byte(`{"schema": "gpudoctor.facts/v1", `), raw[1:]...)) // By which it is recognised.
		code, out := runShown(t, "facts of "+section, "facts", "--no-redact", "--from", facts)
		expect.That(t, code == exitOK && (count <= 0 || strings.Contains(out, `\u202e`)), "facts of %s: exit code %d; %d strings are planted", section, code, count)
		runShown(t, "probe p2p of "+section, "probe", "p2p", "--from", facts)
		if section == "all" || section == "env" {
			checkShown(t, "check of "+section, "--from", facts)
		}
	}
}

func writeTestFile(t *testing.T, file string, raw []byte) {
	t.Helper()
	expect.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	expect.NoError(t, os.WriteFile(file, raw, 0o600))
}

// TestHostileTexts checks it for texts of every kind, in files, folders and
// archives with hostile names, and for recorded machines.
func TestHostileTexts(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	root := filepath.Join("..", "..", "fixtures", "texts")
	dir := filepath.Join(t.TempDir(), "ticket")
	expect.NoError(t, os.Mkdir(dir, 0o755))
	name := strings.ReplaceAll(hostile(), "/", "")
	name = name[:min(len(name), 200)] // NAME_MAX, with room for the rest.
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	n := 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(file)
		if err != nil || len(raw) > 20<<10 {
			return err // The large ones hold the same kinds.
		}
		var b bytes.Buffer
		for line := range bytes.Lines(raw) {
			text, ended := bytes.CutSuffix(line, []byte("\n"))
			b.Write(text)
			if n++; n%3 == 0 { // Else nothing would be recognised.
				b.WriteString(hostile())
			}
			if ended {
				b.WriteByte('\n')
			}
		}
		base := fmt.Sprintf("%d%s%s", n, name, filepath.Ext(file))
		writeTestFile(t, filepath.Join(dir, base), b.Bytes())
		if archive.Len() < 100<<10 {
			if err := w.WriteHeader(&tar.Header{Name: base, Size: int64(b.Len()), Mode: 0o600, Format: tar.FormatGNU}); err != nil {
				return err
			}
			_, err = w.Write(b.Bytes())
		}
		return err
	})
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	tarball := filepath.Join(t.TempDir(), "texts"+name+".tar")
	writeTestFile(t, tarball, archive.Bytes())
	checkShown(t, "check of a folder", "--from", dir)
	checkShown(t, "check of an archive", "--from", tarball)
	runShown(t, "facts of a folder", "facts", "--no-redact", "--from", dir)
	runShown(t, "facts of an archive", "facts", "--from", tarball)
	for _, bad := range []string{dir + "/no" + name, dir + "\n" + name} {
		checkShown(t, "refused check of no file", "--from", bad)
	}
	damaged := filepath.Join(dir, "machine"+name+".txtar")
	host := expect.Value(os.ReadFile(filepath.Join("..", "..", "fixtures", "hosts", "h200x2.txtar")))(t)
	for what, raw := range map[string][]byte{
		"content": bytes.ReplaceAll(host, []byte("NVIDIA"), []byte("NVIDIA"+hostile())),
		"entries": bytes.ReplaceAll(host, []byte(" --\n"), []byte(hostile()+" --\n")),
		"head":    append([]byte("gpudoctor.snapshot/v1\n"+hostile()), host...),
		"newer":   []byte("gpudoctor.snapshot/v9" + hostile() + "\n"),
		"schema":  []byte(`{"schema": "gpudoctor.facts/v1` + hostile() + `"}`),
		"field":   []byte(`{"schema": "gpudoctor.facts/v1", "` + hostile() + `": 1}`),
		"syntax":  []byte(`{"schema": "gpudoctor.facts/v1"` + hostile() + `}`),
	} {
		writeTestFile(t, damaged, raw)
		runShown(t, "facts of a recording with a hostile "+what, "facts", "--from", damaged)
	}
	writeTestFile(t, damaged, bytes.ReplaceAll(host, []byte("NVIDIA"), []byte("NVIDIA"+hostile())))
	checkShown(t, "refused check of a recording", "--from", damaged)
}

// TestHostilePolicy checks it for every text of a rule and of a remedy, and for
// the names of their files; and that line breaks of texts stay.
func TestHostilePolicy(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	visible := strings.ToValidUTF8(hostile(), "?") // YAML refuses anything else.
	text := "first line\nsecond line" + visible
	encoded := expect.Value(json.Marshal(text))(t)
	evil, inYAML := string(escape.JSON(encoded)), strconv.QuoteToASCII(text) // The escapes of Go are escapes of YAML.
	dir := filepath.Join(t.TempDir(), "policy")
	rule := fmt.Sprintf(`# METADATA
# title: %[2]s
# description: %[2]s
# related_resources:
#   - ref: https://example.com/gate
#     description: %[2]s
# custom:
#   severity: low
#   confidence: confirmed
#   remedies: [test-remedy]
#   since: %[2]s
package gpudoctor.rules.test_gate

findings contains {
	"subject": %[1]s,
	"severity": "high",
	"message": %[1]s,
	"evidence": [{"fact": %[1]s, "value": %[1]s, "source": %[1]s}],
}

missing contains %[1]s
`, evil, inYAML)
	remedy := fmt.Sprintf(`id: test-remedy
title: %[1]s
kind: fix
description: %[1]s
cost: %[1]s
needs: [job-restart]
risk: none
lasts: job
apply:
  commands: [%[1]s]
  steps: [%[1]s]
undo: %[1]s
verify: %[1]s
sources:
  - https://example.com/gate
`, inYAML)
	writeTestFile(t, filepath.Join(dir, "test_gate.rego"), []byte(rule))
	writeTestFile(t, filepath.Join(dir, "test-remedy.yaml"), []byte(remedy))
	machine := filepath.Join(t.TempDir(), "machine.json")
	expect.NoError(t, writeFacts(machine, eightGPUs()))
	for _, id := range []string{"test-gate", "test-remedy"} {
		code, out := runShown(t, "explain "+id, "explain", id, "--policy", dir)
		expect.Equal(t, exitOK, code, "explain %s: exit code", id)
		expect.That(t, strings.Count(out, "first line\n") >= 2, "explain %s lost line breaks:\n%s", id, out)
	}
	runShown(t, "rules list", "rules", "list", "--policy", dir)
	runShown(t, "completion", completeQuestion, "explain", "--policy", dir, "test")
	checkShown(t, "check with a policy", "--from", machine, "--policy", dir, "--only", "test-gate")

	var doc map[string]any
	expect.NoError(t, yaml.Unmarshal([]byte(remedy), &doc))
	for _, field := range []string{"kind", visible} {
		broken := maps.Clone(doc)
		broken[field] = map[string]any{visible: visible}
		raw := expect.Value(yaml.Marshal(broken))(t)
		writeTestFile(t, filepath.Join(dir, "test-remedy.yaml"), raw)
		runShown(t, "explain with a remedy with a hostile "+field, "explain", "test-remedy", "--policy", dir)
	}
	name := strings.ReplaceAll(visible, "/", "")[:200] // NAME_MAX, with room for the rest.
	for _, text := range []string{"package gpudoctor.rules.x\n" + hostile(), "package gpudoctor.rules.x\nx := \"" + hostile() + "\"\n"} {
		bad := filepath.Join(t.TempDir(), strings.ToValidUTF8(name, ""))
		writeTestFile(t, filepath.Join(bad, strings.ToValidUTF8(name, "")+".rego"), []byte(text))
		runShown(t, "rules list with a broken rule", "rules", "list", "--policy", bad)
	}
}

// restoring returns what undoes that a flag has kept the value of its variable:
// Apply of package cli writes it into the flag.
func restoring(f cli.Flag) func() {
	switch f := f.(type) {
	case *cli.StringFlag:
		old := *f
		return func() { *f = old }
	case *cli.DurationFlag:
		old := *f
		return func() { *f = old }
	}
	return func() {}
}

// TestHostileWords checks it for what is typed: each flag of each command, each
// argument, each name of a command, and each variable that stands for a flag.
func TestHostileWords(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	t.Chdir(t.TempDir()) // A word that names a file to write is taken.
	word := hostile()
	var walk func(before []string, commands []*cli.Command)
	walk = func(before []string, commands []*cli.Command) {
		for _, c := range commands {
			line := append(slices.Clone(before), c.Name)
			walk(line, c.Subcommands)
			runShown(t, fmt.Sprintf("%q with a word", line), append(slices.Clone(line), word)...)
			runShown(t, fmt.Sprintf("%q with an unknown flag", line), append(slices.Clone(line), "--"+word)...)
			runShown(t, fmt.Sprintf("%q completed", line), append(append([]string{completeQuestion}, line...), word)...)
			for _, f := range c.Flags {
				for _, name := range f.Names() {
					what := fmt.Sprintf("%q with --%s", line, name)
					if name == "version" || name == "help" {
						continue
					}
					if _, alone := f.(*cli.BoolFlag); alone {
						runShown(t, what, append(slices.Clone(line), "--"+name+"="+word)...)
						continue
					}
					runShown(t, what, append(slices.Clone(line), "--"+name, word)...)
					runShown(t, what+" completed", append(append([]string{completeQuestion}, line...), "--"+name, word)...)
				}
				if envs, ok := f.(cli.DocGenerationFlag); ok {
					restore := restoring(f)
					for _, env := range envs.GetEnvVars() {
						t.Setenv(env, word)
						runShown(t, fmt.Sprintf("%q with %s", line, env), append(slices.Clone(line), "--help")...)
						runShown(t, fmt.Sprintf("%q with %s", line, env), append(slices.Clone(line), "--from", "example:h200x4")...)
						t.Setenv(env, "")
						restore()
					}
				}
			}
		}
	}
	walk(nil, newApp(&bytes.Buffer{}).Commands)
	runShown(t, "a word", word)
	runShown(t, "a flag", "--"+word)
	runShown(t, "a flag with one dash", "-"+word)
}

// stoppedRules are the bodies of two rules that would never end.
var stoppedRules = map[string]string{
	"endless":     "some i in numbers.range(1, 100000)\n\tsome j in numbers.range(1, 100000)\n\ti * j == -1",
	"memory-bomb": "x := [[i, j, k] | some i in numbers.range(1, 1000); some j in numbers.range(1, 1000); some k in numbers.range(1, 1000)]\n\tcount(x) == 1",
}

// TestStoppedRules checks that a rule which is stopped is reported in every format, that
// what others find is reported, and that nothing is called healthy.
func TestStoppedRules(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	memory := ruleMemory
	ruleLimit, ruleMemory = 200*time.Millisecond, 0
	defer func() { ruleLimit, ruleMemory = 0, memory }()
	for _, tt := range expect.SomeRows(3, []struct {
		name   string
		honest string // The body of a third rule.
		args   []string
		code   int
		state  report.State
		found  []string
	}{
		{"beside a finding", "true", nil, 1, report.Findings, []string{"honest"}},
		{"alone", "false", nil, 0, report.Inconclusive, nil},
		{"alone and strict", "false", []string{"--strict", "--only", "honest,memory-bomb"}, 3, report.Inconclusive, nil},
	}) {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			writeRule(t, dir, "honest", tt.honest)
			for id, body := range stoppedRules {
				writeRule(t, dir, id, body)
			}
			args := []string{
				"check", "--from", filepath.Join("..", "..", "fixtures", "hosts", "model-8x-pcie.txtar"), "--policy", dir,
				"--format", "text", "-o", filepath.Join(dir, "r.json"), "-o", filepath.Join(dir, "r.md"),
			}
			code, stdout, stderr := inProcess(append(args, tt.args...)...)
			expect.That(t, code == tt.code && stderr == "", "exit code %d and %q, want %d", code, stderr, tt.code)
			document := decoded[report.Document](t, expect.Value(os.ReadFile(filepath.Join(dir, "r.json")))(t))
			expect.That(t, document.Verdict.State == tt.state && document.Verdict.ExitCode == tt.code, "%+v", document.Verdict)
			found := expect.Map(document.Findings, func(f rules.Finding) string { return f.Rule })
			expect.That(t, slices.Equal(found, tt.found), "found %v, want %v", found, tt.found)
			markdown := expect.Value(os.ReadFile(filepath.Join(dir, "r.md")))(t)
			for id := range stoppedRules {
				if len(tt.args) > 0 && id == "endless" {
					continue
				}
				i := slices.IndexFunc(document.Skipped, func(s report.Skipped) bool { return s.Rule == id })
				if i < 0 || !document.Skipped[i].Fault || !strings.HasPrefix(document.Skipped[i].Missing[0], "the rule was stopped: it ") {
					t.Errorf("%s is not skipped with its reason: %+v", id, document.Skipped)
					continue
				}
				toldInOneLine(t, "text", stdout, id, document.Skipped[i].Missing[0])
				toldInOneLine(t, "markdown", string(markdown), id, document.Skipped[i].Missing[0])
			}
		})
	}
}

func writeRule(t *testing.T, dir, id, body string) {
	t.Helper()
	pkg := strings.ReplaceAll(id, "-", "_")
	text := "# METADATA\n# title: T\n# description: D\n# custom:\n#   severity: high\n#   confidence: likely\n#   remedies: [reboot]\n" +
		"package gpudoctor.rules." + pkg + "\n\n" +
		`findings contains {"subject": "host", "message": "m", "evidence": [{"fact": "f", "value": 1, "source": "s"}]} if {` + "\n\t" + body + "\n}\n"
	expect.NoError(t, os.WriteFile(filepath.Join(dir, pkg+".rego"), []byte(text), 0o600))
}

// toldInOneLine checks that a rule and its reason stand together, whatever breaks the lines of a terminal. Rules
// with the same reason share a line.
func toldInOneLine(t *testing.T, format, text, id, reason string) {
	t.Helper()
	flat := strings.Join(strings.Fields(strings.ReplaceAll(text, "`", "")), " ")
	told := regexp.MustCompile(`(^|[ ,])` + id + `(, [a-z0-9-]+)* (\(` + regexp.QuoteMeta(reason) + `\)|\| ` + regexp.QuoteMeta(reason) + ` \|)`)
	expect.That(t, told.MatchString(flat), "%s does not say %q of %s:\n%s", format, reason, id, text)
}
