package host

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// endingTime is how long an answer that was called off may take to end its child process.
const endingTime = 5 * time.Second

// Answerer answers a question on a live machine for which more is needed than this package may import.
type Answerer func(ctx context.Context) (any, error)

// asked are the questions that were put: those under way, and the outcomes of the others.
type asked struct {
	pending  singleflight.Group
	outcomes sync.Map
}

// ask returns the answer to a question. Askers share a pending answer, which is canceled when the first of them has gone.
func (a *asked) ask(ctx context.Context, question string, answer func(context.Context) (any, error)) (json.RawMessage, error) {
	pending := a.pending.DoChan(question, func() (any, error) {
		if known, ok := a.outcomes.Load(question); ok {
			return known, nil
		}
		answering, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer context.AfterFunc(ctx, stop)()
		raw, err := encoded(answering, question, answer)
		if answering.Err() == nil {
			a.outcomes.Store(question, &outcome{raw, err})
		}
		return &outcome{raw, err}, nil
	})
	select {
	case r := <-pending:
		o, _ := r.Val.(*outcome)
		raw, _ := o.value.(json.RawMessage)
		return raw, o.err
	case <-ctx.Done():
	}
	select {
	case <-pending: // What it started has ended.
	case <-time.After(endingTime):
		a.pending.Forget(question)
	}
	return nil, fmt.Errorf("%s: %w", question, context.Cause(ctx))
}

func encoded(ctx context.Context, question string, answer func(context.Context) (any, error)) (raw json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: the query panicked: %v; please report this bug", question, p)
		}
	}()
	v, err := answer(ctx)
	if err != nil {
		return nil, err
	}
	if raw, err = json.Marshal(v); err != nil {
		err = fmt.Errorf("answer to %q: %w", question, err)
	}
	return raw, err
}
