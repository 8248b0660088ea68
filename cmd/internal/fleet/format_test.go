package fleet

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/joshdk/go-junit"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/formattest"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/fixtures/contract"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// schemaFile is where the contract is published.
var schemaFile = filepath.Join("..", "..", "..", "docs", "fleet.schema.json")

// TestGoldenSchema checks that the published contract equals the Go types.
func TestGoldenSchema(t *testing.T) {
	s := contract.Schema(t, Schema, &Fleet{}, nil, "rules", filepath.Join("cmd", "internal", "fleet"))
	expect.Golden(t, schemaFile, expect.Value(lines.JSON(s))(t))
}

// hostile are texts that steer a terminal, a browser, a ticket or a reader of a format.
var hostile = []string{
	"<script>alert(1)</script>", "\x1b[31m\u202e", "| a |\n# b\n- c", "]]>&lt;", `"\`, "größe-日本-n1", "@all https://evil.example ![a](b)", strings.Repeat("long ", 2000), "",
}

// hostileFleet is nodes of which every text is hostile.
func hostileFleet(t *testing.T) *Fleet {
	t.Helper()
	var all []string
	for i, s := range hostile {
		for j := range 3 {
			all = append(all, fmt.Sprintf(`{"schema":"gpudoctor.report/v1","version":%[1]s,"host":{"hostname":%[2]s,"driver":%[1]s,"kernel":%[1]s,"gpus":[{"name":"H200"}]},
"verdict":{"state":"findings","exit_code":1},"findings":[{"rule":%[1]s,"title":%[1]s,"subject":%[1]s,"severity":%[1]s,"remedies":[%[1]s]}],
"transfers":{"transfers":[{"test":%[1]s,"gbps":%[3]d}]}}`, quoted(t, s), quoted(t, s+fmt.Sprint(j)), 40+i/len(hostile)))
		}
	}
	all = append(all, strings.Repeat("]", 9))
	r := expect.Value(Read(t.Context(), []string{"-"}, strings.NewReader(strings.Join(all, "\n")), nil))(t)
	return Fold(r, append(hostile[:len(hostile)-1], "n9"), "1.0")
}

func quoted(t *testing.T, s string) string {
	t.Helper()
	return strings.TrimSpace(string(expect.Value(lines.JSON(s))(t)))
}

// samples are fleets of all kinds.
func samples(t *testing.T) map[string]*Fleet {
	t.Helper()
	small := expect.Value(Read(t.Context(), []string{"-"}, strings.NewReader(reportOf("n1", "570")+reportOf("n2", "575", "acs-redirect")+`{"schema":"x"}{"sch`), nil))(t)
	return map[string]*Fleet{
		"nothing": Fold(&Reading{}, nil, "1.0"), "small": Fold(small, []string{"n3"}, "1.0"), "hostile": hostileFleet(t),
	}
}

// TestFormats checks that each format is valid, whatever the reports say, and that none hides the exit code.
func TestFormats(t *testing.T) {
	schema := expect.Value(validator.NewCompiler().Compile(schemaFile))(t)
	for name, f := range samples(t) {
		written := map[string]string{}
		for _, format := range Formats() {
			var b bytes.Buffer
			expect.NoError(t, f.Write(&b, format, report.Style{Width: 80}))
			written[format] = b.String()
			for _, s := range []string{"\x1b", "\u202e", "\r"} {
				expect.That(t, !strings.Contains(b.String(), s), "%s as %s holds %q", name, format, s)
			}
		}
		for line := range strings.Lines(written["text"]) {
			wide := utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))
			expect.That(t, wide <= 80 || !strings.Contains(strings.TrimSpace(line), " "), "%s: a line of %d columns: %s", name, wide, line)
		}
		expect.That(t, name == "hostile" || strings.Count(written["text"], "\n") <= 50, "%s does not fit on a screen:\n%s", name, written["text"])
		expect.Len(t, 0, formattest.MarkdownFaults([]byte(written["markdown"])), "%s as Markdown", name)
		expect.That(t, len(written["markdown"]) <= report.MaxMarkdown, "%s as Markdown has %d bytes", name, len(written["markdown"]))
		expect.That(t, !strings.Contains(written["html"], "<script") && strings.Contains(written["html"], "default-src &#39;none&#39;"), "%s: a page with a script", name)
		expect.Equal(t, len(f.Nodes)+len(f.Unreported), strings.Count(written["html"], `<li class="n-`), "%s: nodes in the picture", name)
		v := expect.Value(validator.UnmarshalJSON(strings.NewReader(written["json"])))(t)
		expect.NoError(t, schema.Validate(v))
		expect.Len(t, 0, expect.Value(promlint.New(strings.NewReader(written["prometheus"])).Lint())(t), "%s: problems of the metrics", name)
		samples := map[string]bool{}
		for line := range strings.Lines(written["prometheus"]) {
			labels := line[:strings.LastIndexByte(line, ' ')]
			expect.That(t, line[0] == '#' || !samples[labels], "%s: two samples have the labels %s", name, labels)
			samples[labels] = true
		}
		suites := expect.Value(junit.Ingest([]byte(written["junit"])))(t)
		expect.That(t, suites[0].Totals.Passed < suites[0].Totals.Tests || f.ExitCode == 0, "%s as JUnit has passed, with exit code %d", name, f.ExitCode)
	}
}
