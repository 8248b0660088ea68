package data

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

var (
	libraries = []string{"nccl", "rccl", "rocm"}
	symptoms  = []string{"hang", "stall", "crash", "corrupt", "fail"}
	version   = regexp.MustCompile(`^[0-9]+(\.[0-9]+){1,2}$`)
)

func TestKnownFaults(t *testing.T) {
	rows := KnownFaults().Rows
	ids := map[string]bool{}
	for _, row := range rows {
		expect.That(t, !ids[row.ID] && regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(row.ID), "the id %q is there twice, or is none", row.ID)
		ids[row.ID] = true
	}
	for _, row := range rows {
		fault := func(format string, args ...any) { t.Helper(); t.Errorf(row.ID+": "+format, args...) }
		if row.Fault != "" && !ids[row.Fault] {
			fault("no row has the id %s of its fault", row.Fault)
		}
		if slices.Contains(row.Remedies, "unset-env") != (row.Variable != "") {
			fault("it is cured by unset-env, or names a variable, not both")
		}
		if !slices.Contains(libraries, row.Library) {
			fault("library %q", row.Library)
		}
		for _, v := range []string{row.Since, row.Fixed} {
			if v != "" && !version.MatchString(v) {
				fault("version %q", v)
			}
		}
		if row.Since != "" && row.Since == row.Fixed {
			fault("no version has it")
		}
		if row.Symptom != "" && !slices.Contains(symptoms, row.Symptom) {
			fault("symptom %q", row.Symptom)
		}
		if (row.Lacks != "" || row.Telltale) && len(row.Said) == 0 {
			fault("lacks or telltale speaks of a message, and there is none")
		}
		if row.Said != nil && row.Symptom != "" {
			fault("a message and a symptom: the message alone counts")
		}
		if len(row.Said)+len(row.When) == 0 && row.Symptom == "" {
			fault("nothing shows it")
		}
		if !slices.Contains(confidences, row.Confidence) {
			fault("confidence %q", row.Confidence)
		}
		if row.Severity != "" && !slices.Contains(severities, row.Severity) {
			fault("severity %q", row.Severity)
		}
		if row.What == "" || strings.HasSuffix(row.What, ".") {
			fault("what is %q", row.What)
		}
		if len(row.Remedies) == 0 {
			fault("no remedy")
		}
		checkSources(t, row.ID, row.Source)
	}
}
