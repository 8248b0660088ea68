package main

import (
	"errors"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestSettle enumerates what may come of facts that are foretold: they are judged once
// where they came true, and what was gathered in the end counts in any case.
func TestSettle(t *testing.T) {
	t.Parallel()
	of := func(outcome probe.Outcome) *facts.Facts {
		return &facts.Facts{Transfers: &probe.Report{Outcome: outcome}}
	}
	failed := errors.New("interrupted")
	for name, c := range map[string]struct {
		foretold *facts.Facts
		came     gathered
		broken   bool // Judging the facts that were foretold fails.
		judged   int
		wantErr  error
	}{
		"nothing foretold":   {nil, gathered{facts: of(probe.OK)}, false, 1, nil},
		"came true":          {of(probe.OK), gathered{facts: of(probe.OK)}, false, 1, nil},
		"came otherwise":     {of(probe.OK), gathered{facts: of(probe.Hang)}, false, 2, nil},
		"could not judge":    {of(probe.OK), gathered{facts: of(probe.OK)}, true, 2, nil},
		"nothing came":       {nil, gathered{err: failed}, false, 0, failed},
		"nothing came then":  {of(probe.OK), gathered{err: failed}, false, 1, failed},
		"came with an error": {nil, gathered{facts: of(probe.OK), err: failed}, false, 1, nil},
	} {
		read, nearly := make(chan gathered, 1), make(chan *facts.Facts, 1)
		if c.foretold != nil {
			nearly <- c.foretold
		} else {
			read <- c.came
		}
		judged := 0
		var last *facts.Facts
		_, verdict, _, err := settle(read, nearly, func(f *facts.Facts) (*rules.Verdict, error) {
			judged++
			if c.foretold != nil && judged == 1 {
				read <- c.came // It comes while this is judged.
				if c.broken {
					return nil, errors.New("broken")
				}
			}
			last = f
			return &rules.Verdict{Passed: []string{string(f.Transfers.Outcome)}}, nil
		})
		if judged != c.judged || !errors.Is(err, c.wantErr) {
			t.Errorf("%s: judged %d times, %v", name, judged, err)
		}
		if c.wantErr == nil && (verdict == nil || verdict.Passed[0] != string(c.came.facts.Transfers.Outcome) || last == nil) {
			t.Errorf("%s: the verdict is %v", name, verdict)
		}
	}
}
