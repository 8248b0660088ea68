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
		check := func(is bool, words string, args ...any) { t.Helper(); expect.That(t, is, row.ID+": "+words, args...) }
		check(row.Fault == "" || ids[row.Fault], "no row has the id %s of its fault", row.Fault)
		check(slices.Contains(row.Remedies, "unset-env") == (row.Variable != ""), "it is cured by unset-env, or names a variable, not both")
		check(slices.Contains(libraries, row.Library), "library %q", row.Library)
		for _, v := range []string{row.Since, row.Fixed} {
			check(v == "" || version.MatchString(v), "version %q", v)
		}
		check(row.Since == "" || row.Since != row.Fixed, "no version has it")
		check(row.Symptom == "" || slices.Contains(symptoms, row.Symptom), "symptom %q", row.Symptom)
		check(row.Lacks == "" && !row.Telltale || len(row.Said) != 0, "lacks or telltale needs a message, and there is none")
		check(row.Said == nil || row.Symptom == "", "a message and a symptom: the message alone counts")
		check(len(row.Said)+len(row.When) != 0 || row.Symptom != "", "nothing shows it")
		check(slices.Contains(confidences, row.Confidence), "confidence %q", row.Confidence)
		check(row.Severity == "" || slices.Contains(severities, row.Severity), "severity %q", row.Severity)
		check(row.What != "" && !strings.HasSuffix(row.What, "."), "what is %q", row.What)
		check(len(row.Remedies) != 0, "no remedy")
		checkSources(t, row.ID, row.Source)
	}
}
