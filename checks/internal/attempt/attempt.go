// Package attempt tries, in a child process, what communication libraries ask of the kernel: shared
// and locked memory, the placement of memory, a TCP connection. Sizes and limits say what should
// work; only the call itself shows what a seccomp filter, a security module, a quota or a firewall
// makes of it.
//
// Nothing that is tried outlives the child: files have no name, memory is the child's own, and a
// connection never leaves the machine.
package attempt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
)

// Question is answered with an Answer.
const Question = "attempts"

// The attempts, in the order in which they are made. The first two are made whenever facts are
// gathered, the others only with the probe.
const (
	GetMempolicy = "get_mempolicy"
	Mlock        = "mlock"

	SetMempolicy = "set_mempolicy"
	Mbind        = "mbind"
	MovePages    = "move_pages"
	LockedMemory = "locked_memory"
	SharedMemory = "shared_memory"
	Connection   = "connection"
)

var (
	basic = []string{GetMempolicy, Mlock}
	all   = []string{GetMempolicy, Mlock, SetMempolicy, Mbind, MovePages, LockedMemory, SharedMemory, Connection}
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
	Outcome   string `json:"outcome"`
	Call      string `json:"call,omitempty"`
	Errno     string `json:"errno,omitempty"`
	Bytes     int64  `json:"bytes,omitempty"`
	Interface string `json:"interface,omitempty"`
	Address   string `json:"address,omitempty"`
	// Reason says why the outcome is unknown.
	Reason string `json:"reason,omitempty"`
}

const task = "attempt"

func init() {
	child.Register(task, func(_ context.Context, args json.RawMessage, send func(any) error) error {
		var o order
		if err := json.Unmarshal(args, &o); err != nil {
			return err
		}
		prepare()
		for _, name := range o.Names {
			if err := send(message{Name: name}); err != nil {
				return err
			}
			r := perform(name, o.Sizes)
			if err := send(message{Name: name, Result: &r}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Sizes are the sizes that are tried.
type Sizes struct {
	// File is that of a file in /dev/shm, Locked the most memory that is locked.
	File   int64 `json:"file"`
	Locked int64 `json:"locked"`
}

// order says what a child tries.
type order struct {
	Names []string `json:"names"`
	Sizes Sizes    `json:"sizes"`
}

// message says that an attempt begins, or what came of it.
type message struct {
	Name   string  `json:"name"`
	Result *Result `json:"result,omitempty"`
}

// Ask makes the attempts: all of them, or only the basic ones.
func Ask(ctx context.Context, probing bool, sizes Sizes) (*Answer, error) {
	names := basic
	if probing {
		names = all
	}
	results, err := runAll(ctx, order{Names: names, Sizes: sizes}, nil)
	if err != nil {
		return nil, err
	}
	return &Answer{Probed: probing, Results: results}, nil
}

// errNotTried is why an attempt was not made.
var errNotTried = errors.New("it was not tried: the process that tries it ended before")

// runAll makes the attempts. One that ends the child, or hangs, is its own result, and another child
// continues with the next.
func runAll(ctx context.Context, o order, env []string) (map[string]Result, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline.Attempts)
	defer cancel()
	results := make(map[string]Result, len(o.Names))
	left := o.Names
	for len(left) > 0 {
		at := -1 // The attempt that has begun.
		r, err := child.Run(ctx, child.Spec{Task: task, Args: order{Names: left, Sizes: o.Sizes}, Env: env, Deadline: deadline.Attempt, Receive: func(raw json.RawMessage) {
			var m message
			if json.Unmarshal(raw, &m) != nil || !slices.Contains(left, m.Name) {
				return
			}
			if at = slices.Index(left, m.Name); m.Result != nil {
				results[m.Name] = m.Result.checked()
			}
		}})
		if err != nil && len(results) == 0 {
			return nil, fmt.Errorf("try what the kernel allows: %w", err)
		}
		if err != nil || at < 0 || r.Finished || r.Left {
			break
		}
		if _, known := results[left[at]]; !known {
			results[left[at]] = ending(left[at], &r)
		}
		left = left[at+1:]
	}
	for _, name := range o.Names {
		if _, known := results[name]; !known {
			results[name] = Result{Outcome: Unknown, Reason: errNotTried.Error()}
		}
	}
	return results, nil
}

// checked is a result that a child sent, with nothing but what a result may be.
func (r *Result) checked() Result {
	if r.Outcome != OK && r.Outcome != Refused {
		return Result{Outcome: Unknown, Reason: cmp.Or(r.Reason, "the process that tried it gave no answer")}
	}
	return *r
}

// ending is the result of an attempt during which the child ended.
func ending(name string, r *child.Result) Result {
	switch {
	case r.Signal == "SIGSYS":
		return Result{Outcome: Refused, Call: calls[name], Errno: r.Signal}
	case r.TimedOut:
		return Result{Outcome: Unknown, Reason: "it did not return within " + deadline.Attempt.String()}
	case r.Signal != "":
		return Result{Outcome: Unknown, Reason: "the process that tried it was ended by " + r.Signal}
	}
	return Result{Outcome: Unknown, Reason: "the process that tried it ended: " + cmp.Or(r.Why, r.Failure, "no reason is known")}
}

// calls are the calls by which the attempts begin.
var calls = map[string]string{
	GetMempolicy: "get_mempolicy", Mlock: "mlock", SetMempolicy: "set_mempolicy", Mbind: "mbind", MovePages: "move_pages",
	LockedMemory: "mlock2", SharedMemory: "open", Connection: "socket",
}
