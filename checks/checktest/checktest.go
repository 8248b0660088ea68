// Package checktest runs checks on machines that a test makes up, or that it makes of the files of a recorded one.
// Recorded machines it also writes as what people send of them: an archive with copies of /sys and /proc.
package checktest

import (
	"context"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/attempt"
	"github.com/gpudoctor/gpudoctor/checks/internal/nvml"
)

// On is a gathering of facts about a machine, as a check sees it. The management library
// answers what the machine has recorded of it.
func On(src host.Source, f *facts.Facts) *gather.Gathering {
	h := host.New(src)
	g := gather.New(h, f, gather.Options{Deadline: deadline.Check, Progress: func(string) {}})
	g.NVML = func(ctx context.Context, answer *nvml.Answer) error { return h.Ask(ctx, host.AskNVML, answer) }
	g.Attempts = func(ctx context.Context, answer *attempt.Answer) error { return h.Ask(ctx, attempt.Question, answer) }
	g.Linked = func(*facts.Facts) {}
	return g
}

// One runs one check over a machine and returns the facts, with what is unknown.
func One(t *testing.T, c *gather.Check, m *host.Memory) *facts.Facts {
	t.Helper()
	f := &facts.Facts{Schema: facts.FactsSchema}
	g := On(m, f)
	if err := c.Gather(t.Context(), g); err != nil {
		g.Unknown(c.Name, "", err.Error(), gather.HintFor(err))
	}
	f.Unknown = g.Unknowns()
	return f
}

// UnknownOf lists the reasons of one section.
func UnknownOf(f *facts.Facts, section string) []string {
	var reasons []string
	for _, u := range f.Unknown {
		if u.Section == section {
			reasons = append(reasons, u.Fact+": "+u.Reason)
		}
	}
	return reasons
}
