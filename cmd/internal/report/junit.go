package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"
)

// junitSuite writes a suite of test cases. A finding that makes the exit code 1 is a failure;
// an exit code above that is an error. What was not examined is skipped, so a file in which
// all cases passed stands for a machine on which everything was examined and found good.
type junitSuite struct {
	r     *ciReport
	suite junit.Testsuite
	names map[string]int
}

// writeJUnit writes the rules and findings as a report on tests (JUnit XML).
func writeJUnit(b *bytes.Buffer, r *ciReport) {
	j := &junitSuite{r: r, names: map[string]int{}}
	j.suite.Name, j.suite.Time = "gpudoctor", fmt.Sprintf("%.3f", r.Timing.TotalMS/1000)
	for _, p := range []struct{ name, value string }{
		{"version", r.Version},
		{"profile", string(r.Profile)},
		{"fail-on", string(r.FailOn)},
		{"machine", r.Host.Summary},
		{"sources", strings.Join(r.Sources, ", ")},
		{"verdict", r.conclusion()},
	} {
		j.suite.AddProperty(p.name, p.value)
	}
	for _, i := range r.issues {
		j.finding(i)
	}
	j.verdict()
	for _, skipped := range r.Skipped {
		j.add(skipped.Rule, "rule", junit.Testcase{Skipped: j.result("not judged: "+reasonOf(skipped), "not-judged", skipped.Missing)})
	}
	for _, id := range r.Passed {
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
	case i.waived():
		c = junit.Testcase{Skipped: &junit.Result{Message: i.Terms + "; " + i.Message, Type: "waived", Data: j.where(i)}}
	case i.fails:
		c = junit.Testcase{Failure: &junit.Result{Message: fmt.Sprintf("%s: %s", i.Severity, i.Message), Type: i.Rule, Data: j.where(i)}}
	}
	j.add(i.Rule, i.Subject, c)
}

// where is the text of an issue, with its place.
func (j *junitSuite) where(i issue) string {
	at := j.r.shown(i.place)
	if i.place.line > 0 {
		at = fmt.Sprintf("%s:%d", at, i.place.line)
	}
	return i.Title + " (" + i.Rule + ", " + string(i.Confidence) + ")\n" + at + "\n" + i.text()
}

// verdict adds what was not examined, and an exit code that is neither 0 nor 1.
func (j *junitSuite) verdict() {
	for _, g := range j.r.gaps {
		j.add("verdict", string(g.Code), junit.Testcase{Skipped: j.result(g.Text, string(g.Code), nil)})
	}
	if j.r.broken != "" {
		j.add("verdict", "exit-code", junit.Testcase{Error: j.result(j.r.broken, "exit-code", nil)})
	}
}

// result is the outcome of a case that has not passed.
func (j *junitSuite) result(message, kind string, more []string) *junit.Result {
	return &junit.Result{Message: message, Type: kind, Data: strings.Join(more, "\n")}
}

// add adds a case under a name of its own.
func (j *junitSuite) add(class, name string, c junit.Testcase) {
	c.Classname, c.Name = "gpudoctor."+class, name
	key := c.Classname + "\x00" + c.Name
	j.names[key]++
	if n := j.names[key]; n > 1 {
		c.Name += fmt.Sprintf(" (%d)", n)
	}
	j.suite.AddTestcase(c)
}
