package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"
)

// TestSuite is a suite of test cases (JUnit XML).
type TestSuite struct {
	junit.Testsuite
	names map[string]int
}

// Add adds a case under a name of its own.
func (s *TestSuite) Add(class, name string, c junit.Testcase) {
	c.Classname, c.Name = "gpudoctor."+class, name
	key := c.Classname + "\x00" + c.Name
	if s.names == nil {
		s.names = map[string]int{}
	}
	s.names[key]++
	if n := s.names[key]; n > 1 {
		c.Name += fmt.Sprintf(" (%d)", n)
	}
	s.AddTestcase(c)
}

// Write writes the suite as a report.
func (s *TestSuite) Write(b *bytes.Buffer) {
	all := junit.Testsuites{Name: s.Name, Time: s.Time}
	all.AddSuite(s.Testsuite)
	all.Skipped = 0 // The suite has the number; Jenkins' schema knows none here.
	b.WriteString(xml.Header)
	e := xml.NewEncoder(b)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		panic(fmt.Sprintf("encode JUnit: %v", err)) // All of it is strings and numbers.
	}
	b.WriteByte('\n')
}

// writeJUnit writes the rules and findings as a report on tests. A finding that makes the exit code 1 is a failure;
// an exit code above that is an error. What was not examined is skipped, so a file in which
// all cases passed stands for a machine on which everything was examined and found good.
func writeJUnit(b *bytes.Buffer, r *ciReport) {
	s := TestSuite{Testsuite: junit.Testsuite{Name: "gpudoctor", Time: fmt.Sprintf("%.3f", r.Timing.TotalMS/1000)}}
	for _, p := range []pair{
		{"version", r.Version},
		{"profile", string(r.Profile)},
		{"fail-on", string(r.FailOn)},
		{"machine", r.Host.Summary},
		{"sources", strings.Join(r.Sources, ", ")},
		{"verdict", r.conclusion()},
	} {
		s.AddProperty(p.Name, p.Text)
	}
	for _, i := range r.issues {
		c := junit.Testcase{SystemOut: &junit.Output{Data: i.text()}} // It has passed, with its text as the output.
		switch {
		case i.waived():
			c = junit.Testcase{Skipped: &junit.Result{Message: i.Terms + "; " + i.Message, Type: "waived", Data: r.where(i)}}
		case i.fails:
			c = junit.Testcase{Failure: &junit.Result{Message: fmt.Sprintf("%s: %s", i.Severity, i.Message), Type: i.Rule, Data: r.where(i)}}
		}
		s.Add(i.Rule, i.Subject, c)
	}
	for _, g := range r.gaps {
		s.Add("verdict", string(g.Code), junit.Testcase{Skipped: &junit.Result{Message: g.Text, Type: string(g.Code)}})
	}
	if r.broken != "" {
		s.Add("verdict", "exit-code", junit.Testcase{Error: &junit.Result{Message: r.broken, Type: "exit-code"}})
	}
	for _, skipped := range r.Skipped {
		s.Add(skipped.Rule, "rule", junit.Testcase{Skipped: &junit.Result{Message: "not judged: " + reasonOf(skipped), Type: "not-judged", Data: strings.Join(skipped.Missing, "\n")}})
	}
	for _, id := range r.Passed {
		s.Add(id, "rule", junit.Testcase{})
	}
	s.Write(b)
}

func (r *ciReport) where(i issue) string {
	at := lineAt(i.place.shown(), i.place.line)
	return i.Title + " (" + i.Rule + ", " + string(i.Confidence) + ")\n" + at + "\n" + i.text()
}
