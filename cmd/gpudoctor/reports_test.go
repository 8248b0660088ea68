package main

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestReportsOfAll checks, for all situations, what people need to act on a report.
func TestReportsOfAll(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not with -short: it enumerates, and nothing in it runs side by side")
	}
	known := learnt(t)
	seen := adviceTally{}
	situations(t, func(s situation) {
		d := tellOf(t.Context(), t, known, s)
		written := map[string]string{}
		for _, name := range []string{"text", "markdown", "html"} {
			f, _ := report.FormatNamed(name)
			var b bytes.Buffer
			if err := f.Write(&b, d, report.Style{}); err != nil {
				t.Fatal(err)
			}
			written[name] = b.String()
		}
		for _, hold := range []func(*report.Document, map[string]string, adviceTally) []string{titlesDiffer, verdictCounts, certaintySaysOfWhat, namesTheLine, keepsUnits, marksCode, explainsTerms} {
			for _, fault := range hold(d, written, seen) {
				t.Errorf("%s: %s", s.name, fault)
			}
		}
	})
	for _, name := range []string{"titles", "titles with a suffix", "slight findings beside a verdict", "lines to look at", "terms", "reports without terms", "units in text", "units in html", "variables in code"} {
		if seen[name] == 0 {
			t.Errorf("nothing looked at: %s", name)
		}
	}
	t.Logf("looked at: %v", seen)
}

var (
	markdownTitle = regexp.MustCompile(`(?m)^### \d+\. (.*)$`)
	htmlTitle     = regexp.MustCompile(`<h3 [^>]*><span class="number">\d+</span> (.*)</h3>`)
)

// titlesDiffer checks that no two findings of a report have the same title.
func titlesDiffer(d *report.Document, written map[string]string, seen adviceTally) (faults []string) {
	for format, title := range map[string]*regexp.Regexp{"markdown": markdownTitle, "html": htmlTitle} {
		var titles []string
		for _, m := range title.FindAllStringSubmatch(written[format], -1) {
			seen["titles"]++
			if slices.Contains(titles, m[1]) {
				faults = append(faults, format+" has two findings with the title "+m[1])
			}
			titles = append(titles, m[1])
			if !slices.ContainsFunc(d.Findings, func(f rules.Finding) bool { return strings.HasSuffix(html.UnescapeString(m[1]), f.Title) }) {
				seen["titles with a suffix"]++
			}
		}
	}
	return faults
}

// verdictCounts checks that a verdict which is not made of the findings counts them.
func verdictCounts(d *report.Document, written map[string]string, seen adviceTally) (faults []string) {
	if d.Verdict.State == report.Findings || len(d.Findings) == 0 {
		return nil
	}
	seen["slight findings beside a verdict"]++
	counts := d.Verdict.Counts.String()
	head, _, _ := strings.Cut(written["markdown"], "\n")
	_, page, _ := strings.Cut(written["html"], "<h1>")
	page, _, _ = strings.Cut(page, "</h1>")
	for format, title := range map[string]string{"markdown": head, "html": page} {
		if !strings.HasSuffix(title, counts) {
			faults = append(faults, format+" does not count "+counts+" in its title: "+title)
		}
	}
	if d.Verdict.State == report.Healthy && !strings.Contains(written["text"], "\nHealthy; "+counts+".") && !strings.Contains(written["text"], "\nNothing worse than low found in this image.") {
		faults = append(faults, "text does not count "+counts+" after its verdict")
	}
	return faults
}

var (
	certainties = regexp.MustCompile("^(?:cause (?:confirmed|likely|possible|open)|symptom (?:confirmed|likely), cause (?:likely|possible|open))$")
	// certainty is where each format tells it.
	certainty = map[string]*regexp.Regexp{
		"text":     regexp.MustCompile(`(?m)[a-z0-9-](?: x \d+)?, ((?:symptom [a-z]+, )?cause [a-z]+)$`),
		"markdown": regexp.MustCompile("(?m)^`[a-z0-9-]+`, ((?:cause|symptom) [a-z, ]+)[:.]"),
		"html":     regexp.MustCompile(`<span class="severity">(?:critical|high|medium)</span> <span>([^<]*)</span>`),
	}
)

// certaintySaysOfWhat checks that each finding of medium severity or above says whether the
// cause or only the symptom is known, in all formats with the same words.
func certaintySaysOfWhat(_ *report.Document, written map[string]string, seen adviceTally) (faults []string) {
	var told []string
	for _, format := range []string{"html", "markdown", "text"} {
		var said []string
		for _, m := range certainty[format].FindAllStringSubmatch(written[format], -1) {
			seen[m[1]]++
			if !certainties.MatchString(m[1]) {
				faults = append(faults, format+" says "+m[1])
			}
			said = append(said, m[1])
		}
		if format == "html" {
			told = said
		} else if !slices.Equal(said, told) {
			faults = append(faults, format+" says "+strings.Join(said, "; ")+", and html "+strings.Join(told, "; "))
		}
	}
	return faults
}

// namesTheLine checks that the advice to debug a program begins with what the finding knows
// of the place: the line that failed.
func namesTheLine(d *report.Document, _ map[string]string, seen adviceTally) (faults []string) {
	for _, a := range d.Advice {
		if a.Remedy != "fix-application" {
			continue
		}
		if len(a.Apply.Steps) == 0 {
			faults = append(faults, "fix-application has no steps")
			continue
		}
		steps := strings.Join(a.Apply.Steps, "\n")
		for _, f := range d.Findings {
			if !slices.Contains(a.Cures, remedies.Cure{Rule: f.Rule, Subject: f.Subject}) {
				continue
			}
			if line, known := f.Params["failed_line"]; known && isPlain(fmt.Sprint(f.Params["failed_file"])) {
				seen["lines to look at"]++
				if want := fmt.Sprintf("Look first at line %v of %v,", line, f.Params["failed_file"]); !strings.Contains(steps, want) {
					faults = append(faults, "no step says "+want)
				}
			}
		}
	}
	return faults
}

// isPlain reports whether a file's name is one that may be put into advice.
func isPlain(name string) bool {
	return regexp.MustCompile(`^(?:/?[A-Za-z0-9_][A-Za-z0-9._+-]*|(?:/[A-Za-z0-9_+][A-Za-z0-9._+-]*)+)$`).MatchString(name)
}

var (
	// partedUnit is a number at the end of a line whose unit begins the next.
	partedUnit = regexp.MustCompile(`[ (][0-9][0-9.,]*\n *(?:GB/s|GiB|MiB|KiB|GT/s|%|ms|s)[ .,;)\n]`)
	wholeUnit  = regexp.MustCompile(`[0-9] (?:GB/s|GiB|MiB|GT/s|%|ms)[ .,;)]`)
	// pageSentence is what a page says in sentences; breaking is a blank that breaks in one.
	pageSentence = regexp.MustCompile(`<(p|li|dd)(?: class="(?:effort|proof|caution|steps|note|transfers)")?>(.*?)</(?:p|li|dd)>`)
	evidence     = regexp.MustCompile(`(?s)<details class="evidence">.*?</details>`)
	breaking     = regexp.MustCompile(`[0-9] (?:GB/s|GiB|MiB|GT/s|%|ms)(?:[ .,;)<]|$)`)
	markedUp     = regexp.MustCompile(`<code>.*?</code>|<[^>]*>`)
	variableName = regexp.MustCompile(`\b(?:NCCL|UCX|CUDA|TORCH|NVSHMEM|HSA|HIP|ROCR)_[A-Z0-9_]+[A-Z0-9]\b`)
)

// keepsUnits checks that no line of a text, and no blank that breaking of a page, parts a
// number from its unit.
func keepsUnits(_ *report.Document, written map[string]string, seen adviceTally) (faults []string) {
	seen["units in text"] += len(wholeUnit.FindAllString(written["text"], -1))
	if found := partedUnit.FindString(written["text"]); found != "" {
		faults = append(faults, fmt.Sprintf("text parts %q", found))
	}
	for _, m := range pageSentence.FindAllStringSubmatch(findingsOf(written["html"]), -1) {
		said := markedUp.ReplaceAllString(m[2], "")
		seen["units in html"] += strings.Count(said, "\u00a0")
		if found := breaking.FindString(said); found != "" {
			faults = append(faults, fmt.Sprintf("html parts %q in %q", found, said))
		}
	}
	return faults
}

// marksCode checks that a page marks the variables that its remedies and findings name.
func marksCode(_ *report.Document, written map[string]string, seen adviceTally) (faults []string) {
	body := findingsOf(written["html"])
	seen["variables in code"] += len(variableName.FindAllString(strings.Join(regexp.MustCompile(`<p>.*</p>`).FindAllString(body, -1), ""), -1))
	for _, m := range pageSentence.FindAllStringSubmatch(body, -1) {
		if found := variableName.FindString(markedUp.ReplaceAllString(m[2], "")); found != "" {
			faults = append(faults, fmt.Sprintf("html does not mark %s in %q", found, m[2]))
		}
	}
	return faults
}

// findingsOf are the findings of a page without the evidence.
func findingsOf(page string) string {
	_, body, _ := strings.Cut(page, `<h2 id="findings">`)
	body, _, _ = strings.Cut(body, "</section>")
	return evidence.ReplaceAllString(body, "")
}

// explainsTerms checks that a term which a finding of medium severity or above uses in its
// title or message is explained once in text and Markdown, and that none is explained where
// there is no such finding.
func explainsTerms(d *report.Document, written map[string]string, seen adviceTally) (faults []string) {
	var said []string
	for _, f := range d.Findings {
		if f.Severity.Rank() <= rules.Medium.Rank() {
			said = append(said, f.Title, f.Message)
		}
	}
	text := strings.Join(strings.Fields(written["text"]), " ")
	markdown := strings.ReplaceAll(written["markdown"], "\\", "")
	if len(said) == 0 {
		seen["reports without terms"]++
		if strings.Contains(text, " terms ") || strings.Contains(markdown, "\nTerms: ") {
			faults = append(faults, "a report without grave findings explains terms")
		}
		return faults
	}
	for _, term := range report.TermsIn(strings.Join(said, "\n")) {
		seen["terms"]++
		for format, report := range map[string]string{"text": text, "markdown": markdown} {
			if n := strings.Count(report, term.Name+": "+term.Means); n != 1 {
				faults = append(faults, fmt.Sprintf("%s explains %s %d times", format, term.Name, n))
			}
		}
	}
	return faults
}
