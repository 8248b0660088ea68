package evidence

import (
	"strings"
	"testing"
)

// TestShareVerdicts holds that a row may have the verdict of another, that the rows
// that share one are a group, and what is refused.
func TestShareVerdicts(t *testing.T) {
	t.Parallel()
	own := func() *Verdict { return &Verdict{Rule: "r", Subject: "s", Grade: Grade{Text: "t"}} }
	rows := []*Statement{
		{ID: "a", Role: "cause", Verdict: &Verdict{As: "b"}},
		{ID: "b", Role: "cause", Verdict: own()},
		{ID: "c", Role: "cause", Verdict: own()},
	}
	if err := shareVerdicts(rows); err != nil {
		t.Fatal(err)
	}
	if rows[0].Verdict != rows[1].Verdict || rows[1].Verdict.Group != "b" || rows[2].Verdict.Group != "" {
		t.Errorf("a has %v, b %v, c %v", rows[0].Verdict, rows[1].Verdict, rows[2].Verdict)
	}
	for name, row := range map[string]struct {
		row  *Statement
		want string
	}{
		"of a row that has none": {&Statement{Role: "cause", Verdict: &Verdict{As: "nobody"}}, "has no verdict of its own"},
		"with more to say":       {&Statement{Role: "cause", Verdict: &Verdict{As: "b", ID: "x"}}, "says more"},
		"of a setting":           {&Statement{Role: "setting", Verdict: &Verdict{As: "b"}}, "is a setting"},
	} {
		err := shareVerdicts([]*Statement{row.row, {ID: "b", Role: "cause", Verdict: own()}})
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("a verdict %s: %v", name, err)
		}
	}
}
