package attempt

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
)

// Series is how children try one thing after the other. One that ends its child, or hangs, is unknown, and
// another child continues with the next.
type Series[T any] struct {
	// Task is what Register named.
	Task string
	Env  []string
	// Step bounds each of the tries, All bounds all of them, and Children how many children continue.
	Step, All time.Duration
	Children  int
	// Filtered, if set, is the result of a try whose child a seccomp filter ended.
	Filtered func(T) Result
}

// message is what a child sends: that it begins with a try, or what came of it. At is -1 when it has started.
type message struct {
	At     int     `json:"at"`
	Result *Result `json:"result,omitempty"`
}

// Register names the task of a child. begin prepares it, and what it returns tries one thing.
func Register[T any](task string, begin func() func(T) Result) {
	child.Register(task, func(_ context.Context, tries []T, send func(any) error) error {
		if err := send(message{At: -1}); err != nil {
			return err
		}
		perform := begin()
		for i, t := range tries {
			if err := send(message{At: i}); err != nil {
				return err
			}
			r := perform(t)
			if err := send(message{At: i, Result: &r}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Run makes the tries and returns the result of each.
func (s *Series[T]) Run(ctx context.Context, tries []T) ([]Result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.All)
	defer cancel()
	results := make([]Result, len(tries))
	for i := range results {
		results[i] = NotKnown("it was not tried: the process that tries it ended before")
	}
	done := 0
	for range s.Children {
		if done == len(tries) {
			break
		}
		at, more, err := s.child(ctx, tries[done:], results[done:])
		if err != nil && done == 0 {
			return nil, fmt.Errorf("%s: %w", s.Task, err)
		}
		if !more {
			break
		}
		done += at + 1
	}
	return results, nil
}

// child makes tries in one child. If more is true, it ended at the one whose index is returned.
func (s *Series[T]) child(ctx context.Context, tries []T, results []Result) (at int, more bool, err error) {
	at = -1
	known, limit := false, deadline.Spawn
	r, err := child.Run(ctx, child.Spec{Task: s.Task, Args: tries, Env: s.Env, Silence: func() time.Duration { return limit }, Receive: func(raw json.RawMessage) {
		var m message
		if json.Unmarshal(raw, &m) != nil || m.At >= len(tries) {
			return
		}
		limit = s.Step
		switch {
		case m.At < 0:
		case m.Result == nil:
			at, known = m.At, false
		case m.At == at:
			results[at], known = *m.Result, true
		}
	}})
	if err != nil || r.Finished {
		return 0, false, err
	}
	why := NotKnown(ending(&r, s.Step))
	if at < 0 || r.Left || ctx.Err() != nil { // Another child would fare no better.
		for i := range results {
			if i > at || i == at && !known {
				results[i] = why
			}
		}
		return 0, false, nil
	}
	switch {
	case known:
	case r.Signal == "SIGSYS" && s.Filtered != nil:
		results[at] = s.Filtered(tries[at])
	default:
		results[at] = why
	}
	return at, true, nil
}

// NotKnown is the result of a try that says nothing.
func NotKnown(reason string) Result { return Result{Outcome: Unknown, Reason: reason} }

func ending(r *child.Result, step time.Duration) string {
	call := "it"
	if len(r.Inside) > 0 {
		call = r.Inside[0]
	}
	switch {
	case r.Silent:
		return fmt.Sprintf("%s did not return within %s", call, step)
	case r.TimedOut || r.Canceled:
		return "the time for it ran out"
	case r.Death == child.DeathByLibrary:
		return fmt.Sprintf("%s crashed: %s", call, r.End())
	}
	return "its process was ended: " + r.End()
}
