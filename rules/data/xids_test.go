package data

import (
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// severities are those of a finding, from the worst.
var severities = []string{"critical", "high", "medium", "low", "info"}

// severityOfClass is what a class that says nothing against the machine weighs.
var severityOfClass = map[string]string{"application": "low", "secondary": "info", "note": "info"}

func TestXIDs(t *testing.T) {
	table := XIDs()
	last, used := 0, map[string]bool{}
	for _, x := range table.XIDs {
		expect.That(t, x.Code > last, "Xid %d comes after %d", x.Code, last)
		last = x.Code
		expect.That(t, x.Name != "", "Xid %d has no name", x.Code)
		expect.That(t, table.Actions[x.Action] != nil, "Xid %d: unknown action %q", x.Code, x.Action)
		used[x.Action] = true
		switch want, harmless := severityOfClass[x.Class]; {
		case harmless && x.Severity != want:
			t.Errorf("Xid %d: severity %s, want %s of the class %s", x.Code, x.Severity, want, x.Class)
		case !harmless && !slices.Contains([]string{"fault", "link"}, x.Class):
			t.Errorf("Xid %d: unknown class %q", x.Code, x.Class)
		case !harmless && !slices.Contains(severities[:3], x.Severity):
			t.Errorf("Xid %d: severity %q of a fault", x.Code, x.Severity)
		}
	}
	for action := range table.Actions {
		expect.That(t, used[action], "no Xid has the action %s", action)
	}
	checkSources(t, "xids", table.Sources...)
}

func TestSXIDs(t *testing.T) {
	severity := map[int]string{}
	for s, codes := range XIDs().SXIDs {
		expect.That(t, s == "critical" || s == "high" || s == "noted", "SXids of severity %q", s)
		expect.That(t, slices.IsSorted(codes), "the SXids of severity %s are not sorted", s)
		for _, code := range codes {
			if severity[code] != "" || code < 10001 || code > 30006 { // The range of the driver (ctrl_dev_nvswitch.h).
				t.Errorf("SXid %d is %s, and %q before", code, s, severity[code])
			}
			severity[code] = s
		}
	}
	expect.That(t, len(severity) > 0, "no SXid")
}
