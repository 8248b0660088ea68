package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/units"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

func grave(findings []rules.Finding) []rules.Finding {
	return lines.Filter(findings, func(f rules.Finding) bool { return f.Severity.Rank() <= rules.Medium.Rank() })
}

// launchCase is a case of fixtures/launches. The lines of its comment say what holds: "want: RULE SEVERITY SUBJECT
// FILE: LINE" is a finding of medium or above with the text of the line that its first evidence names, and "healthy"
// that there is none; "target: NAME" is the machine.
type launchCase struct {
	want    []string
	target  string
	healthy bool
}

func readLaunchCase(t *testing.T, file string) launchCase {
	t.Helper()
	a := expect.Value(txtar.ParseFile(file))(t)
	var c launchCase
	for line := range strings.Lines(string(a.Comment)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "want: "); ok {
			c.want = append(c.want, whereOf(t, a, rest))
		} else if rest, ok := strings.CutPrefix(line, "target: "); ok {
			c.target = rest
		}
		c.healthy = c.healthy || line == "healthy"
	}
	expect.Must(t, c.healthy != (len(c.want) > 0), "%s says neither what is wanted nor that all is well, or both", file)
	slices.Sort(c.want)
	return c
}

func whereOf(t *testing.T, a *txtar.Archive, want string) string {
	t.Helper()
	for _, f := range a.Files {
		head, text, ok := strings.Cut(want, " "+f.Name+": ")
		if !ok {
			continue
		}
		number := 0
		for i, line := range strings.Split(string(f.Data), "\n") {
			if strings.TrimSpace(line) == text && number == 0 {
				number = i + 1
			}
		}
		expect.Must(t, number != 0, "no line of %s is %q", f.Name, text)
		return fmt.Sprintf("%s %s:%d", head, f.Name, number)
	}
	t.Fatalf("no file is named in %q", want)
	return ""
}

func judgedFiles(t *testing.T, file, target string) (*report.Document, []string) {
	t.Helper()
	a := expect.Value(txtar.ParseFile(file))(t)
	dir := t.TempDir()
	expect.NoError(t, os.CopyFS(dir, expect.Value(txtar.FS(a))(t)))
	d := expect.Value(diagnose(t.Context(), request{source: source{from: []string{dir}, target: target}, profile: rules.Launch, failOn: report.Threshold(rules.High), strict: true}))(t)
	got := expect.Map(grave(d.Findings), func(f rules.Finding) string {
		return fmt.Sprintf("%s %s %s %s", f.Rule, f.Severity, f.Subject, strings.TrimPrefix(f.Evidence[0].Source, dir+"/"))
	})
	slices.Sort(got)
	return d, got
}

// TestLaunchFiles checks that each case of fixtures/launches is judged as its comment says,
// with the line of each fault, that the exit code follows, and that half of them are good.
func TestLaunchFiles(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	t.Parallel()
	files, err := filepath.Glob("../../fixtures/launches/*.txtar")
	expect.Must(t, err == nil && len(files) >= 30, "%d cases: %v", len(files), err)
	good := 0
	for _, file := range files {
		c := readLaunchCase(t, file)
		if c.healthy {
			good++
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			d, got := judgedFiles(t, file, c.target)
			expect.That(t, slices.Equal(got, c.want), "got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			grave := slices.ContainsFunc(got, func(s string) bool { return !strings.Contains(s, " medium ") })
			expect.Equal(t, map[bool]int{true: exitFindings, false: exitOK}[grave], d.Verdict.ExitCode, "exit code (%s)", d.Verdict.Reason)
			expect.That(t, !c.healthy || d.Verdict.State == report.Healthy, "the verdict is %s: %v", d.Verdict.State, d.Verdict.Reasons)
		})
	}
	expect.That(t, good >= len(files)/3, "%d of %d cases are good", good, len(files))
}

// TestUnitsAreIndependent checks that what is found about each file of fixtures/launches is the same beside all the
// others as it is alone, whatever their order. The nodes of Slurm count for all batch jobs, and are left out.
func TestUnitsAreIndependent(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	t.Parallel()
	dir := t.TempDir()
	found := func(paths ...string) []string {
		d := expect.Value(diagnose(t.Context(), requestFor(rules.Launch, paths...)))(t)
		all := expect.Map(d.Findings, func(f rules.Finding) string {
			return fmt.Sprintf("%s %d %s %s %s %s", filepath.Base(f.Object.File), f.Object.Line, f.Rule, f.Severity, f.Subject, strings.ReplaceAll(f.Message, dir+"/", ""))
		})
		slices.Sort(all)
		return all
	}
	var paths, alone []string
	for _, file := range expect.SomeRows(3, expect.Value(filepath.Glob("../../fixtures/launches/*.txtar"))(t)) {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		if strings.HasPrefix(name, "slurm-conf") {
			continue
		}
		for _, f := range expect.Value(txtar.ParseFile(file))(t).Files {
			path := filepath.Join(dir, name+"-"+filepath.Base(f.Name))
			expect.NoError(t, os.WriteFile(path, f.Data, 0o600))
			paths = append(paths, path)
			alone = append(alone, found(path)...)
		}
	}
	slices.Sort(alone)
	reversed := slices.Clone(paths)
	slices.Reverse(reversed)
	for way, got := range map[string][]string{"together": found(paths...), "in reverse": found(reversed...), "as a folder": found(dir)} {
		expect.NoDiff(t, alone, got, "%s, and alone", way)
	}
	expect.AtLeast(t, 8, len(alone), "findings")
}

// breaks are ways in which a line of a manifest is damaged.
var breaks = map[string]func(line string) string{
	"indented less":    func(line string) string { return strings.TrimPrefix(line, " ") },
	"indented more":    func(line string) string { return "   " + line },
	"tab":              func(line string) string { return "\t" + strings.TrimLeft(line, " ") },
	"unclosed quote":   func(line string) string { return strings.Replace(line, ": ", `: "`, 1) },
	"unclosed bracket": func(line string) string { return strings.Replace(line, ": ", ": [", 1) },
	"unclosed brace":   func(line string) string { return line + " }" },
	"no colon":         func(line string) string { return strings.Replace(line, ":", "", 1) },
	"second colon":     func(line string) string { return strings.Replace(line, ": ", ": a: ", 1) },
	"key given twice":  func(line string) string { return line + "\n" + line },
	"unknown anchor":   func(line string) string { return strings.Replace(line, ": ", ": *none ", 1) },
	"anchor in itself": func(line string) string { return line + " &a [*a]" },
	"zero byte":        func(line string) string { return line + " \x00" },
	"binary":           func(string) string { return "\x89PNG\x1a\x00\x01\x02\xff\xfe" + strings.Repeat("\x03", 400) },
	"invalid UTF-8":    func(line string) string { return line + " # \xff" },
	"cut":              func(line string) string { return line[:len(line)/2] }, // With what follows.
	"second document":  func(line string) string { return line + "\n---\n" + line + ": [" },
}

// accepted reports whether a YAML parser takes all of a text. Of a key that an object of Kubernetes has twice,
// the last counts.
func accepted(text string) bool {
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var value any
		err := d.Decode(&value)
		if twice, ok := errors.AsType[*yaml.TypeError](err); ok && strings.Contains(text, "apiVersion:") {
			if !slices.ContainsFunc(twice.Errors, func(s string) bool { return !strings.Contains(s, "already defined at line") }) {
				continue
			}
		}
		if err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// gateOf is the exit code for the files of a folder or for one file where no rule finds anything, and what is said of it.
func gateOf(t *testing.T, path string) (code int, said string) {
	t.Helper()
	g := collect(t.Context(), source{from: []string{path}}, gather.Options{})
	if g.err == nil {
		g.err = units.DropBroken(g.facts)
	}
	if g.err != nil {
		return exitError, g.err.Error()
	}
	v := report.New(report.Input{Facts: g.facts, TextsOnly: true, Profile: rules.Launch, FailOn: report.Threshold(rules.High)}).Verdict
	for _, r := range v.Reasons {
		said += string(r.Code) + ": " + r.Text + "\n"
	}
	expect.That(t, v.State != report.Healthy || v.ExitCode == exitOK, "healthy, and exit code %d", v.ExitCode)
	return v.ExitCode, said
}

// TestBrokenManifests checks that no manifest of fixtures/launches that is damaged, in any line and in any way, gives exit
// code 0 unless it is still valid: alone it is refused, or its good documents are judged; beside a good file it is named with
// the line.
func TestBrokenManifests(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	t.Parallel()
	cases := expect.Value(filepath.Glob("../../fixtures/launches/*.txtar"))(t)
	dir := t.TempDir()
	good := filepath.Join(dir, "good.sh")
	expect.NoError(t, os.WriteFile(good, []byte("docker run --gpus all --shm-size=16g image\n"), 0o600))
	code, said := gateOf(t, dir)
	expect.Must(t, code == exitOK && said == "", "the good file alone gives %d: %s", code, said)
	every := 7 // All of them take a minute; each way is tried at each line of some manifest.
	if expect.FewRows() {
		every *= 5
	}
	seen, broken := 0, map[string]int{}
	for _, file := range cases {
		for _, f := range expect.Value(txtar.ParseFile(file))(t).Files {
			if filepath.Ext(f.Name) != ".yaml" {
				continue
			}
			lines := strings.Split(strings.TrimSuffix(string(f.Data), "\n"), "\n")
			for i := range lines {
				for _, how := range slices.Sorted(maps.Keys(breaks)) {
					if seen++; seen%every > 0 {
						continue
					}
					rest := lines[i+1:]
					if how == "cut" {
						rest = nil
					}
					text := strings.Join(slices.Concat(lines[:i], []string{breaks[how](lines[i])}, rest), "\n") + "\n"
					if accepted(text) {
						continue
					}
					broken[how]++
					checkBroken(t, dir, fmt.Sprintf("%s: %s at line %d", filepath.Base(file), how, i+1), text)
				}
			}
		}
	}
	for how := range breaks {
		expect.That(t, broken[how] != 0, "no manifest was broken by %q", how)
	}
}

var namesLine = regexp.MustCompile(`not valid (YAML|JSON) at line \d+: |binary data`)

func checkBroken(t *testing.T, dir, name, text string) {
	t.Helper()
	bad := filepath.Join(dir, "bad.yaml")
	expect.NoError(t, os.WriteFile(bad, []byte(text), 0o600))
	defer os.Remove(bad) //nolint:errcheck // The folder is temporary.
	code, said := gateOf(t, bad)
	whole := strings.Contains(text, "\n---") // Documents before the broken one may be judged.
	expect.That(t, (code == exitError || code == exitUnproven && whole) && namesLine.MatchString(said) && (code != exitError || !strings.Contains(said, "\n")), "%s: alone: exit code %d, %s\n%s", name, code, said, text)
	code, said = gateOf(t, dir)
	expect.That(t, code == exitUnproven && strings.Contains(said, "file-broken: bad.yaml (") && namesLine.MatchString(said), "%s: beside a good file: exit code %d, %s\n%s", name, code, said, text)
}
