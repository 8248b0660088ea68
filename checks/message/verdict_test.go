package message

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// TestShare holds that a row may take the verdict of another row, of another file as
// well, and that one without a verdict of its own has none to give.
func TestShare(t *testing.T) {
	t.Parallel()
	row := func(id, verdict string) string {
		return strings.NewReplacer("ID", id, "VERDICT", verdict).Replace(
			"- {id: ID, program: p, says: s, role: cause, anchors: [anchor], source: s, examples: [anchor], verdict: {VERDICT}}\n")
	}
	files := func(second string) fstest.MapFS {
		return fstest.MapFS{
			"a.yaml": {Data: []byte(row("first", "as: second"))},
			"b.yaml": {Data: []byte(row("second", second) + row("third", "as: second"))},
		}
	}
	rows, err := readStatements(files("rule: r, subject: s, text: t"))
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Verdict != rows[1].Verdict || rows[2].Verdict != rows[1].Verdict || rows[1].Verdict.Text != "t" || rows[1].Verdict.Group != "second" {
		t.Errorf("%v, %v, %v", rows[0].Verdict, rows[1].Verdict, rows[2].Verdict)
	}
	for verdict, want := range map[string]string{
		"as: third":        "has no verdict of its own",
		"as: third, id: x": "has no verdict of its own",
		"rule: r, subject: s, text: t, unless: [third]": "beside its own message",
	} {
		if _, err := readStatements(files(verdict)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", verdict, err)
		}
	}
}

// TestVerdictOfSetting holds that a row which is no complaint raises no alarm by itself.
func TestVerdictOfSetting(t *testing.T) {
	t.Parallel()
	for severity, refused := range map[string]bool{"info": false, "low": false, "medium": true, "high": true, "": true} {
		v := &Verdict{Rule: "r", Subject: "s", Grade: Grade{Severity: severity, Text: "t"}}
		if err := v.check(&Statement{ID: "a-row", Role: "setting"}); (err != nil) != refused {
			t.Errorf("severity %q: %v", severity, err)
		}
		if err := v.check(&Statement{ID: "a-row", Role: "cause"}); err != nil {
			t.Errorf("severity %q of a cause: %v", severity, err)
		}
	}
}

func TestFillWho(t *testing.T) {
	t.Parallel()
	three := 3
	for want, m := range map[string]facts.Message{
		"rank 3 on node7":            {Rank: &three, Host: "node7", PID: 12, Device: &three},
		"rank 3":                     {Rank: &three},
		"node7, GPU 3 of process 12": {Host: "node7", PID: 12, Device: &three},
		"node7":                      {Host: "node7", PID: 12},
		"the log":                    {PID: 12},
	} {
		if got := Fill("{who}: it", &m, &Said{}); got != want+": it" {
			t.Errorf("%s: %s", want, got)
		}
	}
}
