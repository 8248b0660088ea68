package container

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/internal/attempt"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// attempted is a machine that recorded an answer.
func attempted(answer any) aMachine {
	return aMachine{answers: map[string]any{attempt.Question: answer}}
}

func TestAttempts(t *testing.T) {
	ok, refused := attempt.Result{Outcome: attempt.OK}, attempt.Result{Outcome: attempt.Refused, Call: "mlock2", Errno: "EPERM", Bytes: 64 << 10}
	got := checktest.One(t, Check, attempted(attempt.Answer{Probed: true, Results: map[string]attempt.Result{
		attempt.GetMempolicy: {Outcome: attempt.Refused, Call: "get_mempolicy", Errno: "SIGSYS"}, attempt.Mlock: ok,
		attempt.LockedMemory: refused,
		attempt.SharedMemory: {Outcome: attempt.Unknown, Reason: "only 5 KiB are free"},
	}}).build())
	c := got.Container
	expect.That(t, c.GetMempolicy == "SIGSYS" && c.Mlock == "ok", "got %q and %q", c.GetMempolicy, c.Mlock)
	expect.NoDiff(t, &facts.Attempts{
		LockedMemory: &facts.Attempt{Outcome: "refused", Call: "mlock2", Errno: "EPERM", Bytes: 64 << 10},
	}, c.Attempts, "attempts")
	expect.Equal(t, "only 5 KiB are free", reasonOf(got, "attempts.shared_memory"), "shared memory is unknown because of")
}

func reasonOf(f *facts.Facts, fact string) string {
	for _, u := range f.Unknown {
		if u.Section == "container" && u.Fact == fact {
			return u.Reason
		}
	}
	return ""
}

// TestAttemptsAreUntrusted checks that no answer of a recording becomes an outcome that attempts cannot have, and
// that what is left out has a reason.
func TestAttemptsAreUntrusted(t *testing.T) {
	for name, answer := range map[string]any{
		"empty":                map[string]any{},
		"no answer":            "rubbish",
		"no results":           attempt.Answer{Probed: true},
		"an outcome of no use": attempt.Answer{Probed: true, Results: map[string]attempt.Result{attempt.LockedMemory: {Outcome: "fine", Errno: "\x1b[2J"}, attempt.GetMempolicy: {Outcome: "refused"}}},
		"a negative size":      attempt.Answer{Probed: true, Results: map[string]attempt.Result{attempt.LockedMemory: {Outcome: "ok", Bytes: -1}}},
	} {
		got := checktest.One(t, Check, attempted(answer).build())
		c := got.Container
		expect.That(t, c.GetMempolicy != "" || reasonOf(got, "get_mempolicy") != "", "%s: get_mempolicy is unknown without a reason", name)
		if c.Attempts == nil {
			expect.That(t, reasonOf(got, "attempts") != "", "%s: nothing was tried, without a reason", name)
			continue
		}
		expect.That(t, c.Attempts.LockedMemory == nil && reasonOf(got, "attempts.locked_memory") != "", "%s: got %+v, %v", name, c.Attempts, got.Unknown)
	}
}
