package host

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// endingTime is how long an answer whose callers have all gone may take to end its child process.
const endingTime = 5 * time.Second

// Answerer answers a question on a live machine for which more is needed than this package may import.
type Answerer func(ctx context.Context) (any, error)

type asked struct {
	mu  sync.Mutex
	all map[string]*asking
}

type asking struct {
	done   chan struct{} // Closed when raw and err are set.
	raw    json.RawMessage
	err    error
	askers int // Guarded by asked.mu.
	stop   context.CancelFunc
}

// ask returns the answer to a question. Askers share a pending answer, which is canceled when all of them have gone.
func (a *asked) ask(ctx context.Context, question string, answer func(context.Context) (any, error)) (json.RawMessage, error) {
	a.mu.Lock()
	q := a.all[question]
	if q == nil {
		q = a.begin(ctx, question, answer)
	}
	q.askers++
	a.mu.Unlock()
	select {
	case <-q.done:
		return q.raw, q.err
	case <-ctx.Done():
	}
	a.mu.Lock()
	q.askers--
	last := q.askers == 0
	if last && a.all[question] == q {
		delete(a.all, question)
	}
	a.mu.Unlock()
	if last {
		q.stop()
		select {
		case <-q.done: // What it started has ended.
		case <-time.After(endingTime):
		}
	}
	return nil, fmt.Errorf("%s: %w", question, context.Cause(ctx))
}

// begin puts a question. The context that answers it outlives that of its first asker; a.mu is held.
func (a *asked) begin(ctx context.Context, question string, answer func(context.Context) (any, error)) *asking {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	q := &asking{done: make(chan struct{}), stop: stop}
	if a.all == nil {
		a.all = make(map[string]*asking)
	}
	a.all[question] = q
	go func() {
		defer stop()
		defer close(q.done)
		defer func() {
			if p := recover(); p != nil {
				q.err = fmt.Errorf("%s: the query panicked: %v; please report this bug", question, p)
			}
		}()
		v, err := answer(ctx)
		if err != nil {
			q.err = err
			return
		}
		if q.raw, q.err = json.Marshal(v); q.err != nil {
			q.err = fmt.Errorf("answer to %q: %w", question, q.err)
		}
	}()
	return q
}
