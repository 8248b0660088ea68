package container

import (
	"cmp"
	"context"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/internal/attempt"
)

func (c *reader) readAttempts(ctx context.Context) {
	var answer attempt.Answer
	if err := c.g.Attempts(ctx, &answer); err != nil {
		c.unknown("get_mempolicy", err)
		c.unknown("attempts", err)
		return
	}
	c.f.GetMempolicy = c.word("get_mempolicy", answer.Results[attempt.GetMempolicy])
	c.f.Mlock = c.word("mlock", answer.Results[attempt.Mlock])
	if !answer.Probed {
		c.g.Add(facts.Unknown{
			Section: "container", Fact: "attempts", Reason: "the probe was not requested", Hint: "use --probe quick or full", Kind: facts.NotAsked,
		})
		return
	}
	c.f.Attempts = &facts.Attempts{
		SharedMemory: c.attempt("attempts.shared_memory", answer.Results[attempt.SharedMemory]),
		LockedMemory: c.attempt("attempts.locked_memory", answer.Results[attempt.LockedMemory]),
	}
}

// word is an outcome as one word: "ok" or the name of an error.
func (c *reader) word(fact string, r attempt.Result) string {
	a := c.attempt(fact, r)
	if a == nil {
		return ""
	}
	return cmp.Or(a.Errno, a.Outcome)
}

// attempt is an outcome as a fact; nil for one that is not known.
func (c *reader) attempt(fact string, r attempt.Result) *facts.Attempt {
	a, why := r.Fact()
	if a == nil {
		c.g.Unknown("container", fact, why, "")
	}
	return a
}
