package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// junitSuite writes a suite of test cases. A finding that makes the exit code 1 is a failure;
// an exit code above that is an error. What was not examined is skipped, so a file in which
// all cases passed stands for a machine on which everything was examined and found good.
type junitSuite struct {
	d     *Document
	s     Style
	suite junit.Testsuite
	names map[string]int
}

// writeJUnit writes the rules and findings as a report on tests (JUnit XML).
func writeJUnit(b *bytes.Buffer, d *Document, s Style) {
	j := &junitSuite{d: d, s: s, names: map[string]int{}}
	j.suite.Name, j.suite.Time = "gpudoctor", fmt.Sprintf("%.3f", d.Timing.TotalMS/1000)
	for _, p := range []struct{ name, value string }{
		{"version", d.Version},
		{"profile", string(d.Profile)},
		{"fail-on", string(d.FailOn)},
		{"machine", d.Host.Summary},
		{"sources", strings.Join(d.Sources, ", ")},
		{"verdict", d.conclusion(s)},
	} {
		j.suite.AddProperty(p.name, lines.Printable(p.value, s.ASCII))
	}
	for _, i := range d.issues(s) {
		j.finding(i)
	}
	j.verdict()
	for _, skipped := range d.Skipped {
		j.add(skipped.Rule, "rule", junit.Testcase{Skipped: j.result("not judged: "+reasonOf(skipped), "not-judged", skipped.Missing)})
	}
	for _, id := range d.Passed {
		j.add(id, "rule", junit.Testcase{})
	}
	all := junit.Testsuites{Name: j.suite.Name, Time: j.suite.Time}
	all.AddSuite(j.suite)
	all.Skipped = 0 // The suite has the number; Jenkins' schema knows none here.
	b.WriteString(xml.Header)
	e := xml.NewEncoder(b)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		panic(fmt.Sprintf("encode JUnit: %v", err)) // All of it is strings and numbers.
	}
	b.WriteByte('\n')
}

// finding adds a finding. One that does not make the exit code 1 has passed, with its text as
// the output.
func (j *junitSuite) finding(i issue) {
	c := junit.Testcase{SystemOut: &junit.Output{Data: i.text()}}
	switch {
	case i.isWaived():
		c = junit.Testcase{Skipped: &junit.Result{Message: i.terms + "; " + i.message, Type: "waived", Data: j.where(i)}}
	case i.fails:
		c = junit.Testcase{Failure: &junit.Result{Message: fmt.Sprintf("%s: %s", i.severity, i.message), Type: i.rule, Data: j.where(i)}}
	}
	j.add(i.rule, i.subject, c)
}

// where is the text of an issue, with its place.
func (j *junitSuite) where(i issue) string {
	at := lines.Printable(i.place.file, j.s.ASCII)
	if i.place.line > 0 {
		at = fmt.Sprintf("%s:%d", at, i.place.line)
	}
	return i.title + " (" + i.rule + ", " + string(i.confidence) + ")\n" + at + "\n" + i.text()
}

// verdict adds what was not examined, and an exit code that is neither 0 nor 1.
func (j *junitSuite) verdict() {
	for _, g := range j.d.notExamined(j.s) {
		j.add("verdict", string(g.Code), junit.Testcase{Skipped: j.result(g.Text, string(g.Code), nil)})
	}
	if said := j.d.broken(j.s); said != "" {
		j.add("verdict", "exit-code", junit.Testcase{Error: j.result(said, "exit-code", nil)})
	}
}

// result is the outcome of a case that has not passed.
func (j *junitSuite) result(message, kind string, more []string) *junit.Result {
	cleaned := slices.Clone(more)
	for i := range cleaned {
		cleaned[i] = lines.Printable(cleaned[i], j.s.ASCII)
	}
	return &junit.Result{Message: lines.Printable(message, j.s.ASCII), Type: kind, Data: strings.Join(cleaned, "\n")}
}

// add adds a case under a name of its own.
func (j *junitSuite) add(class, name string, c junit.Testcase) {
	c.Classname, c.Name = "gpudoctor."+lines.Printable(class, j.s.ASCII), lines.Printable(name, j.s.ASCII)
	key := c.Classname + "\x00" + c.Name
	j.names[key]++
	if n := j.names[key]; n > 1 {
		c.Name += fmt.Sprintf(" (%d)", n)
	}
	j.suite.AddTestcase(c)
}
