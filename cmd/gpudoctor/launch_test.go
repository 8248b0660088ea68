package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
	"github.com/gpudoctor/gpudoctor/rules"
)

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

// whereOf replaces the text of a line by its number.
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

// judgedFiles are the verdict of files, and their findings of medium or above.
func judgedFiles(t *testing.T, file, target string) (*report.Document, []string) {
	t.Helper()
	a := expect.Value(txtar.ParseFile(file))(t)
	dir := t.TempDir()
	expect.NoError(t, os.CopyFS(dir, expect.Value(txtar.FS(a))(t)))
	d := expect.Value(diagnose(t.Context(), request{source: source{from: []string{dir}, target: target}, profile: rules.Launch, failOn: report.Threshold(rules.High), strict: true}))(t)
	var got []string
	for _, f := range d.Findings {
		if f.Severity.Rank() <= rules.Medium.Rank() {
			place := strings.TrimPrefix(f.Evidence[0].Source, dir+"/")
			got = append(got, fmt.Sprintf("%s %s %s %s", f.Rule, f.Severity, f.Subject, place))
		}
	}
	slices.Sort(got)
	return d, got
}

// TestLaunchFiles checks that each case of fixtures/launches is judged as its comment says,
// with the line of each fault, that the exit code follows, and that half of them are good.
func TestLaunchFiles(t *testing.T) {
	slowWithRace(t)
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
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			grave := slices.ContainsFunc(got, func(s string) bool { return !strings.Contains(s, " medium ") })
			if want := map[bool]int{true: exitFindings, false: exitOK}[grave]; d.Verdict.ExitCode != want {
				t.Errorf("exit code %d (%s), want %d", d.Verdict.ExitCode, d.Verdict.Reason, want)
			}
			expect.That(t, !c.healthy || d.Verdict.State == report.Healthy, "the verdict is %s: %v", d.Verdict.State, d.Verdict.Reasons)
		})
	}
	expect.That(t, good >= len(files)/3, "%d of %d cases are good", good, len(files))
}

// TestUnitsAreIndependent checks that what is found about each file of fixtures/launches is the same beside all the
// others as it is alone, whatever their order. The nodes of Slurm count for all batch jobs, and are left out.
func TestUnitsAreIndependent(t *testing.T) {
	slowWithRace(t)
	t.Parallel()
	dir := t.TempDir()
	found := func(paths ...string) []string {
		d := expect.Value(diagnose(t.Context(), request{source: source{from: paths}, profile: rules.Launch, failOn: report.Threshold(rules.High)}))(t)
		var all []string
		for _, f := range d.Findings {
			all = append(all, fmt.Sprintf("%s %d %s %s %s %s", filepath.Base(f.Object.File), f.Object.Line, f.Rule, f.Severity, f.Subject, strings.ReplaceAll(f.Message, dir+"/", "")))
		}
		slices.Sort(all)
		return all
	}
	var paths, alone []string
	for _, file := range night.Some(3, expect.Value(filepath.Glob("../../fixtures/launches/*.txtar"))(t)) {
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
		if !slices.Equal(got, alone) {
			t.Errorf("%s (+) and alone (-): %s", way, cmp.Diff(alone, got))
		}
	}
	expect.AtLeast(t, 8, len(alone), "findings")
}
