package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestEvidenceStands checks that what a report says of a text stands there: for
// each text of the repository, and each incident where those are at hand, every
// place that evidence names, and every place that the facts name, is a line of
// that text, and that line says what is shown (see stands).
//
// The same is held of bundles of several texts, so that a fact of one is not put
// down to another. That the check can tell is shown by moving each place by a
// line, and to another text: nearly none of those pass. By day that is every eighth text.
func TestEvidenceStands(t *testing.T) {
	t.Parallel()
	night.NotShort(t, "it enumerates, and nothing in it runs side by side")
	known := learnt(t)
	try, share := night.Every(8), 8
	if night.Is() {
		share = 1
	}
	all := slices.DeleteFunc(tickets(t), func(ticket) bool { return !try() })
	parts := make([]tally, runtime.GOMAXPROCS(0))
	t.Run("tickets", func(t *testing.T) { // It ends when all parts have.
		for part := range parts {
			t.Run(strconv.Itoa(part), func(t *testing.T) {
				t.Parallel()
				for i := part; i < len(all); i += len(parts) {
					parts[part].examine(t, known, all[i])
				}
			})
		}
	})
	var sum tally
	for _, part := range parts {
		sum.add(part)
	}
	t.Logf("%d tickets with %d texts: %d places of evidence and %d of facts are checked; %d lines moved by one and %d moved to another text, of which %d and %d were noticed; %d sources of evidence name a text alone and %d a tool",
		len(all), sum.texts, sum.evidence, sum.facts, sum.moved, sum.swapped, sum.movedNoticed, sum.swappedNoticed, sum.textAlone, sum.elsewhere)
	if night.Few() {
		share *= 4
	}
	if sum.evidence*share < 1000 || sum.facts*share < 3000 {
		t.Errorf("only %d places of evidence and %d of facts were checked", sum.evidence, sum.facts)
	}
	// A place that is not known is left out, which must not become the rule.
	if without := sum.textAlone + sum.elsewhere; without*50 > sum.evidence {
		t.Errorf("%d of %d pieces of evidence name no line", without, without+sum.evidence)
	}
	for _, m := range []struct {
		what          string
		made, noticed int
	}{{"moved by a line", sum.moved, sum.movedNoticed}, {"moved to another text", sum.swapped, sum.swappedNoticed}} {
		least := 93 // A sample of 250 varies by one and a half percent.
		if !night.Few() {
			least = 95
		}
		expect.That(t, m.noticed*100 >= m.made*least, "of %d places %s only %d were noticed", m.made, m.what, m.noticed)
	}
}

// ticket is what is given to one run.
type ticket struct {
	name  string
	paths []string
	// lines are those of each text, by the names that the report gives them.
	lines map[string][]string
	// factsOnly is set for texts that no rule need judge once more.
	factsOnly bool
}

// tickets are all texts of the repository: the cases of fixtures/texts, those of
// the scripts, the texts in the tests under checks/text, the examples of the
// catalogue of messages, bundles of them, and the incidents.
func tickets(t *testing.T) []ticket {
	t.Helper()
	var list []ticket
	for _, pattern := range []string{"../../fixtures/texts/*.txtar", "testdata/script/*.txtar"} {
		files, err := filepath.Glob(pattern)
		expect.Must(t, err == nil && len(files) > 0, "no texts in %s: %v", pattern, err)
		for _, file := range files {
			raw := expect.Value(os.ReadFile(file))(t)
			archive := txtar.Parse(raw)
			c := ticket{name: file, paths: []string{file}, lines: map[string][]string{}}
			script := strings.Contains(pattern, "script")
			if script { // It is no archive to the program: its files are given.
				c.paths = nil
			}
			dir := t.TempDir()
			for i, f := range archive.Files {
				name := f.Name
				if script {
					name = filepath.Join(dir, strconv.Itoa(i)+"-"+filepath.Base(f.Name))
					c.paths = append(c.paths, name)
					expect.NoError(t, os.WriteFile(name, f.Data, 0o600))
				}
				c.lines[name] = linesOf(string(f.Data))
			}
			list = append(list, c)
		}
	}
	list = append(list, literals(t)...)
	folders := expect.Value(filepath.Glob("../../../shared/incidents/*/case.yaml"))(t)
	if len(folders) == 0 {
		t.Log("no incidents beside the repository: its own texts alone are checked")
	}
	machines := expect.Value(filepath.Glob("../../../shared/data/*/topo.txt"))(t)
	for _, file := range append(folders, machines...) {
		c := ticket{name: filepath.Base(filepath.Dir(file)), lines: map[string][]string{}}
		files := expect.Value(filepath.Glob(filepath.Join(filepath.Dir(file), "*")))(t)
		for _, text := range files {
			if filepath.Base(text) == "case.yaml" || filepath.Ext(text) == ".gz" {
				continue
			}
			raw := expect.Value(os.ReadFile(text))(t)
			c.paths, c.lines[text] = append(c.paths, text), linesOf(string(raw))
		}
		list = append(list, c)
	}
	return list
}

// literals are the texts in the tests under checks/text and the examples of
// its catalogue: each by itself, and bundles of eight.
func literals(t *testing.T) []ticket {
	t.Helper()
	files := texttest.Sources(t)
	folder := t.TempDir()
	var list []ticket
	seen := map[string]bool{}
	add := func(text string) {
		if seen[text] || len(text) < 12 || !strings.ContainsAny(text, " =:\t") {
			return
		}
		seen[text] = true
		path := filepath.Join(folder, strconv.Itoa(len(list))+".txt")
		// Lines before and behind, so that a place that is off by one is seen.
		whole := "\n" + strings.TrimSuffix(text, "\n") + "\n\n"
		expect.NoError(t, os.WriteFile(path, []byte(whole), 0o600))
		list = append(list, ticket{name: text[:min(len(text), 40)], paths: []string{path}, lines: map[string][]string{path: linesOf(whole)}})
	}
	for _, file := range files {
		parsed := expect.Value(parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution))(t)
		ast.Inspect(parsed, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := literal(e)
			if ok {
				add(text)
			}
			return !ok
		})
	}
	for _, row := range message.Statements() {
		add(strings.Join(row.Examples, "\n"))
	}
	single := len(list)
	for i := 0; i+8 <= single; i += 8 {
		bundle := ticket{name: fmt.Sprintf("texts %d to %d", i, i+7), lines: map[string][]string{}}
		for _, c := range list[i : i+8] {
			bundle.paths = append(bundle.paths, c.paths...)
			maps.Copy(bundle.lines, c.lines)
		}
		list = append(list, bundle)
	}
	for i := range list[:single] {
		list[i].factsOnly = !strings.Contains(strings.TrimSpace(strings.Join(list[i].lines[list[i].paths[0]], "\n")), "\n")
	}
	return list
}

// literal is the value of a string in a program, put together with + or not.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		a, ok := literal(e.X)
		b, also := literal(e.Y)
		return a + b, ok && also && e.Op == token.ADD
	case *ast.ParenExpr:
		return literal(e.X)
	}
	return "", false
}

// tally counts what was examined.
type tally struct {
	texts, evidence, facts, textAlone, elsewhere int
	moved, movedNoticed, swapped, swappedNoticed int
}

func (s *tally) add(other tally) {
	s.texts, s.evidence, s.facts = s.texts+other.texts, s.evidence+other.evidence, s.facts+other.facts
	s.textAlone, s.elsewhere = s.textAlone+other.textAlone, s.elsewhere+other.elsewhere
	s.moved, s.movedNoticed = s.moved+other.moved, s.movedNoticed+other.movedNoticed
	s.swapped, s.swappedNoticed = s.swapped+other.swapped, s.swappedNoticed+other.swappedNoticed
}

// examine runs one ticket through the program and checks every place.
func (s *tally) examine(t *testing.T, known knowledge, c ticket) {
	t.Helper()
	read, err := text.Read(t.Context(), c.paths, text.Options{})
	if err != nil && !errors.Is(err, text.ErrNothing) || read.Facts == nil {
		return // A recording, or a file that is to be refused.
	}
	s.texts += len(c.lines)
	claims := factClaims(t, read.Facts)
	s.facts += len(claims)
	if !c.factsOnly && err == nil {
		found := evidenceClaims(t, known, read.Facts)
		for _, e := range found {
			switch {
			case c.lines[e.source] != nil:
				s.textAlone++
			case e.text == "":
				s.elsewhere++
			case c.lines[e.text] == nil:
				t.Errorf("%s: %s is put down to %s, and there is no such text", c.name, e.fact, e.source)
			}
		}
		found = slices.DeleteFunc(found, func(e claim) bool { return c.lines[e.text] == nil })
		s.evidence += len(found)
		claims = append(claims, found...)
	}
	indexes := map[string]string{}
	if gpus := read.Facts.GPUs; gpus != nil {
		for _, g := range gpus.Devices {
			if g.Index != nil {
				indexes[g.Address] = strconv.Itoa(*g.Index)
			}
		}
	}
	texts := slices.Sorted(maps.Keys(c.lines))
	for i, e := range claims {
		e.indexes = indexes
		if problem := e.problem(c.lines); problem != "" {
			t.Errorf("%s: %s = %v is put down to %s:%d: %s", c.name, e.fact, e.value, e.text, e.line, problem)
			continue
		}
		if repeated.MatchString(e.fact) {
			continue
		}
		for _, by := range []int{-1, 1} {
			other := e
			other.line += by
			s.moved++
			if other.problem(c.lines) != "" {
				s.movedNoticed++
			}
		}
		if len(texts) > 1 {
			other := e
			for n := i; other.text == e.text; n++ {
				other.text = texts[n%len(texts)]
			}
			s.swapped++
			if other.problem(c.lines) != "" {
				s.swappedNoticed++
			}
		}
	}
}

// repeated are facts that each rank of a job tells, and each channel, in lines
// next to each other: to move them changes nothing.
var repeated = regexp.MustCompile(`^logs\.(?:transports|networks|communicators)`)

// claim says that a line of a text tells a value of a fact.
type claim struct {
	fact   string
	value  any
	source string
	text   string
	line   int
	// indexes are those of the GPUs, by their addresses.
	indexes map[string]string
}

var placeOf = regexp.MustCompile(`^(.+):(\d+)$`)

func newClaim(fact string, value any, source string) claim {
	c := claim{fact: fact, value: value, source: source}
	if m := placeOf.FindStringSubmatch(source); m != nil {
		c.text = m[1]
		c.line, _ = strconv.Atoi(m[2]) // The pattern lets digits through alone.
	}
	return c
}

// evidenceClaims are the places that the report names as it gives them to
// programs.
func evidenceClaims(t *testing.T, known knowledge, f *facts.Facts) []claim {
	t.Helper()
	verdict := expect.Value(known.rules.Evaluate(t.Context(), f, rules.Options{Profile: rules.Training, Memory: ruleMemory}))(t)
	d := report.New(report.Input{TextsOnly: true, Facts: f, Verdict: *verdict, Profile: rules.Training, FailOn: report.Threshold(rules.High)})
	var claims []claim
	var walk func([]rules.Finding)
	walk = func(list []rules.Finding) {
		for _, finding := range list {
			for _, e := range finding.Evidence {
				claims = append(claims, newClaim(e.Fact, asJSON(t, e.Value), e.Source))
			}
			walk(finding.Explains)
		}
	}
	walk(d.Findings)
	return claims
}

// factClaims are the places that the facts themselves name: those of
// facts.origins, and those of entries that bear their own.
func factClaims(t *testing.T, f *facts.Facts) []claim {
	t.Helper()
	document := asJSON(t, f)
	var claims []claim
	for _, o := range f.Origins {
		if strings.HasSuffix(o.Fact, ".acs") { // Another name of acs.control.
			continue
		}
		if strings.HasPrefix(o.Fact, "env.") { // Below, each of them.
			continue
		}
		value, ok := factAt(document, o.Fact)
		if !ok {
			t.Errorf("the facts have no %s, of which the origins tell", o.Fact)
			continue
		}
		claims = append(claims, newClaim(o.Fact, value, fmt.Sprintf("%s:%d", o.Source, o.Line)))
	}
	note := func(fact string, value any, source string, line int) {
		if line > 0 {
			claims = append(claims, newClaim(fact, asJSON(t, value), fmt.Sprintf("%s:%d", source, line)))
		}
	}
	for _, p := range f.Software {
		note("software["+p.Name+"]", p.Version, p.Source, p.Line)
	}
	for _, l := range f.Launches {
		for part, line := range l.Lines {
			value, ok := factAt(asJSON(t, l), "."+part)
			if ok {
				note("launches["+l.Name+"]."+part, value, l.Source, line)
			}
		}
	}
	if f.Env != nil {
		for _, v := range f.Env.Variables {
			note("env.variables["+v.Name+"]", v.Value, v.Source, v.Line)
		}
	}
	if f.Logs != nil {
		for _, m := range f.Logs.Messages {
			note("logs.messages["+m.ID+"]", m.Text, m.Source, m.Line)
		}
		for _, n := range f.Logs.Networks {
			note("logs.networks", n.Name, n.Source, n.Line)
		}
		for _, a := range f.Logs.Affinities {
			note("logs.affinities", a.Mask, a.Source, a.Line)
		}
		for _, c := range f.Logs.Communicators {
			note("logs.communicators", c.Ranks, c.Source, c.Line)
		}
		for _, c := range f.Logs.Transports {
			note("logs.transports["+c.Kind+"]", []int{c.A, c.B}, c.Source, c.Line)
		}
	}
	if f.NICs != nil {
		for _, n := range f.NICs.Interfaces {
			note("nics.interfaces["+n.Name+"]", n.Name, n.Source, n.Line)
		}
	}
	for _, b := range f.Benchmarks {
		for _, p := range b.Points {
			fact := fmt.Sprintf("benchmarks[%s].points[%s -> %s]", b.Tool, p.A, p.B)
			if p.GBps != nil {
				note(fact, p.GBps, b.Source, p.Line)
			} else if p.Microseconds != nil {
				note(fact, p.Microseconds, b.Source, p.Line)
			}
		}
	}
	if f.KernelLog != nil {
		for _, e := range f.KernelLog.Events {
			note("kernel_log.events["+e.Kind+"]", e.Message, e.Source, e.Line)
		}
	}
	return claims
}

// asJSON is a value as a program reads it from the report.
func asJSON(t *testing.T, value any) any {
	t.Helper()
	raw := expect.Value(json.Marshal(value))(t)
	var plain any
	expect.NoError(t, json.Unmarshal(raw, &plain))
	return plain
}

// factAt follows a path into the facts: "pci.devices[0000:40:01.1].acs.control".
func factAt(document any, path string) (any, bool) {
	for path != "" {
		path = strings.TrimPrefix(path, ".")
		if key, ok := strings.CutPrefix(path, "["); ok {
			key, rest, _ := strings.Cut(key, "]")
			path = rest
			if entries, ok := document.(map[string]any); ok {
				if document, ok = entries[key]; !ok {
					return nil, false
				}
				continue
			}
			list, _ := document.([]any)
			i := slices.IndexFunc(list, func(e any) bool { return entryKey(e) == key })
			if i < 0 {
				return nil, false
			}
			document = list[i]
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		object, _ := document.(map[string]any)
		value, ok := object[path[:end]]
		if !ok {
			return nil, false
		}
		document, path = value, path[end:]
	}
	return document, true
}

// entryKey names an entry of a list as rules do.
func entryKey(entry any) string {
	e, _ := entry.(map[string]any)
	if a, ok := e["a"]; ok {
		return fmt.Sprint(a, " -> ", e["b"])
	}
	for _, name := range []string{"address", "name", "path", "id", "block", "interface", "index", "pid", "link"} {
		if key, ok := e[name]; ok {
			return fmt.Sprint(key)
		}
	}
	return ""
}

// controlSequence is a terminal's control sequence.
var controlSequence = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\-_])")

// linesOf are the lines of a text as readers see them: without terminal escapes
// and control characters, and of a progress bar what stayed on the screen.
func linesOf(text string) []string {
	lines := strings.Split(strings.ToValidUTF8(text, "\ufffd"), "\n")
	for i, l := range lines {
		l = strings.TrimRight(l, "\r")
		l = controlSequence.ReplaceAllString(l[strings.LastIndexByte(l, '\r')+1:], "")
		lines[i] = strings.Map(func(c rune) rune {
			if c < ' ' && c != '\t' || c == 0x7f {
				return -1
			}
			return c
		}, l)
	}
	return lines
}

// problem says why a claim does not hold; empty where it does.
func (c claim) problem(lines map[string][]string) string {
	text, ok := lines[c.text]
	switch {
	case !ok:
		return "there is no such text"
	case c.line < 1 || c.line > len(text):
		return "there is no such line"
	case !stands(c, text[c.line-1]):
		return fmt.Sprintf("that line is %q", text[c.line-1])
	}
	return ""
}
