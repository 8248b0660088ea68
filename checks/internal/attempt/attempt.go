// Package attempt tries, in a child process, what communication libraries ask of the kernel: shared and locked memory, and
// the placement of memory. Sizes and limits say what should work; only the call itself shows what a seccomp filter, a
// security module or a quota makes of it.
//
// Nothing that is tried outlives the child: files have no name, and memory is the child's own.
package attempt

import (
	"cmp"
	"context"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// Question is answered with an Answer.
const Question = "attempts"

// The attempts in their order. The first two are always made, the others only with the probe.
const (
	GetMempolicy = "get_mempolicy"
	Mlock        = "mlock"

	LockedMemory = "locked_memory"
	SharedMemory = "shared_memory"
)

var (
	basic = []string{GetMempolicy, Mlock}
	all   = []string{GetMempolicy, Mlock, LockedMemory, SharedMemory}
)

// The outcomes.
const (
	OK      = "ok"
	Refused = "refused"
	Unknown = "unknown"
)

// Answer is what the attempts showed, by name.
type Answer struct {
	// Probed is true if all were requested.
	Probed  bool              `json:"probed"`
	Results map[string]Result `json:"results"`
}

// Result is the outcome of one attempt; its fields are those of facts.Attempt.
type Result struct {
	Outcome string `json:"outcome"`
	Call    string `json:"call,omitempty"`
	Errno   string `json:"errno,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`
	// Reason says why the outcome is unknown.
	Reason string `json:"reason,omitempty"`
}

// Fact is the result as a fact; nil for one that is not known, and why.
func (r Result) Fact() (a *facts.Attempt, why string) {
	shown := func(s string) string { return escape.Printable(s, 256) }
	if r.Outcome != OK && r.Outcome != Refused || r.Bytes < 0 {
		return nil, shown(cmp.Or(r.Reason, "it has no outcome"))
	}
	return &facts.Attempt{Outcome: r.Outcome, Call: shown(r.Call), Errno: shown(r.Errno), Bytes: r.Bytes}, ""
}

const task = "try what the kernel allows"

func init() {
	Register(task, func() func(try) Result {
		prepare()
		return func(t try) Result { return perform(t.Name, t.Sizes) }
	})
}

// Sizes are the sizes that are tried.
type Sizes struct {
	// File is that of a file in /dev/shm, Locked the most memory that is locked.
	File   int64 `json:"file"`
	Locked int64 `json:"locked"`
}

type try struct {
	Name  string `json:"name"`
	Sizes Sizes  `json:"sizes"`
}

// Ask makes the attempts: all of them, or only the basic ones.
func Ask(ctx context.Context, probing bool, sizes Sizes) (*Answer, error) {
	names := basic
	if probing {
		names = all
	}
	results, err := runAll(ctx, names, sizes)
	if err != nil {
		return nil, err
	}
	return &Answer{Probed: probing, Results: results}, nil
}

// runAll makes attempts, and returns the result of each by its name.
func runAll(ctx context.Context, names []string, sizes Sizes) (map[string]Result, error) {
	var tries []try
	for _, name := range names {
		tries = append(tries, try{name, sizes})
	}
	s := Series[try]{Task: task, Step: deadline.Attempt, All: deadline.Attempts, Children: len(names), Filtered: filtered}
	list, err := s.Run(ctx, tries)
	results := make(map[string]Result, len(names))
	for i, r := range list {
		results[names[i]] = r
	}
	return results, err
}

func filtered(t try) Result {
	return Result{Outcome: Refused, Call: cmp.Or(calls[t.Name], t.Name), Errno: "SIGSYS"}
}

// calls are the calls by which those attempts begin that are not named after it.
var calls = map[string]string{LockedMemory: "mlock2", SharedMemory: "open"}
