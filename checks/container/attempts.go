package container

import (
	"context"
	"net/netip"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/internal/attempt"
)

// readAttempts takes over what a child of gpudoctor tried.
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
	c.f.Attempts = &facts.Attempts{}
	for name, field := range map[string]**facts.Attempt{
		attempt.SharedMemory: &c.f.Attempts.SharedMemory, attempt.LockedMemory: &c.f.Attempts.LockedMemory,
		attempt.SetMempolicy: &c.f.Attempts.SetMempolicy, attempt.Mbind: &c.f.Attempts.Mbind, attempt.MovePages: &c.f.Attempts.MovePages,
		attempt.Connection: &c.f.Attempts.Connection,
	} {
		*field = c.attempt(name, answer.Results[name])
	}
}

// word is an outcome as one word: "ok" or the name of an error.
func (c *reader) word(fact string, r attempt.Result) string {
	switch {
	case r.Outcome == attempt.OK:
		return attempt.OK
	case r.Outcome == attempt.Refused && r.Errno != "":
		return escape.Printable(r.Errno, gather.MaxShown)
	}
	c.doubt(fact, r)
	return ""
}

// attempt is an outcome as a fact; nil for one that is not known.
func (c *reader) attempt(name string, r attempt.Result) *facts.Attempt {
	if r.Outcome != attempt.OK && r.Outcome != attempt.Refused || r.Bytes < 0 {
		c.doubt("attempts."+name, r)
		return nil
	}
	a := &facts.Attempt{
		Outcome: r.Outcome, Call: escape.Printable(r.Call, gather.MaxShown), Errno: escape.Printable(r.Errno, gather.MaxShown),
		Bytes: r.Bytes, Interface: escape.Printable(r.Interface, gather.MaxShown),
	}
	if address, err := netip.ParseAddr(r.Address); err == nil {
		a.Address = address.String()
	}
	return a
}

// doubt notes why an outcome is not known.
func (c *reader) doubt(fact string, r attempt.Result) {
	reason := r.Reason
	if reason == "" {
		reason = "it has no outcome"
	}
	c.g.Unknown("container", fact, escape.Printable(reason, gather.MaxShown), "")
}
