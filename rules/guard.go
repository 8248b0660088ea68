package rules

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
)

// LimitError says that a rule was stopped because it needed too much.
type LimitError struct {
	// Took is the processor time that it was let have, Bytes how much memory it was let have: the one
	// that it went beyond, the other is 0.
	Took  time.Duration
	Bytes uint64
}

// Error says which limit it was.
func (e *LimitError) Error() string {
	if e.Bytes > 0 {
		return fmt.Sprintf("needed more than %d MiB of memory", e.Bytes>>20)
	}
	return fmt.Sprintf("took longer than %s", e.Took.Round(time.Millisecond))
}

// limits are what rules may take: one alone, all of them, and compiling a policy.
type limits struct {
	rule, rules, compile time.Duration
	// grace is how long a step that is under way may take to end after the rule was
	// stopped. What takes longer is left behind, until the program ends.
	grace time.Duration
	// heap is what they may add to the memory that is in use.
	heap uint64
}

// usual are the limits of every run. All rules together take some 30 MB on a machine
// with eight GPUs; the program is to stay well below 512 MiB.
var usual = limits{rule: deadline.Rule, rules: deadline.Rules, compile: deadline.Compile, grace: time.Second, heap: 128 << 20}

// watchEvery is how often memory is looked at: a step of an evaluation adds some
// 1 GB/s at most, 5 MB in that time.
const watchEvery = 5 * time.Millisecond

// within runs something that ends soon after its context does. It gives a *LimitError
// where that took longer, or the program more memory, than it may. A panic is an error.
func within[T any](ctx context.Context, limit, grace time.Duration, heap uint64, do func(context.Context) (T, error)) (T, error) {
	if inUse() > heap {
		runtime.GC() // Garbage does not count.
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go watch(ctx, stop, limit, heap)
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			switch p := recover().(type) {
			case nil:
			case *LimitError: // See stackGuard.
				r.err = p
			default:
				r.err = fmt.Errorf("it panicked: %v", p)
			}
			done <- r
		}()
		r.value, r.err = do(ctx)
	}()
	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		select {
		case r = <-done:
		case <-time.After(grace):
			r.err = context.Cause(ctx)
		}
	}
	var limited *LimitError
	if r.err != nil && errors.As(context.Cause(ctx), &limited) {
		r.err = limited
	}
	return r.value, r.err
}

// started is when the program started.
var started = time.Now()

// watch stops what is under way when it has taken more processor time than limit, or
// the memory in use grows by more than heap.
func watch(ctx context.Context, stop context.CancelCauseFunc, limit time.Duration, heap uint64) {
	until := cpuTime() + limit
	base := inUse()
	most := base + heap // What may be in use, garbage included, until somebody looks.
	every := time.NewTicker(watchEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		if cpuTime() > until {
			stop(&LimitError{Took: limit})
			return
		}
		if inUse() <= most {
			continue
		}
		runtime.GC()
		live := inUse()
		if live > base+heap {
			stop(&LimitError{Bytes: heap})
			return
		}
		most = live + heap
	}
}

const (
	// maxStack bounds the stacks while the user's rules are evaluated. Go ends the
	// program, which nothing can prevent, where one needs more than 1 GB, or 250 MB on
	// 32 bits.
	maxStack = 64 << 20
	// guardEvery is after how many steps a stackGuard looks. A step takes less than
	// 4 KiB of stack, so that it looks at least every 4 MiB.
	guardEvery = 1024
)

// stackGuard stops an evaluation between two steps of comparing lists. OPA compares
// the elements of two lists by a call inside the call for the element before, and
// does not look at its context meanwhile: the stack grows with the number of elements,
// and a list that holds another many times over has any number of them. Following each
// step takes time, so only the user's rules are watched.
type stackGuard struct {
	ctx   context.Context
	steps int
}

// Enabled makes it a topdown.QueryTracer.
func (*stackGuard) Enabled() bool { return true }

// Config says that it does not read variables.
func (*stackGuard) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent panics with a *LimitError where the evaluation has to end: a tracer has no
// other way to end it. See within.
func (g *stackGuard) TraceEvent(topdown.Event) {
	if g.steps++; g.steps%guardEvery != 0 {
		return
	}
	if g.ctx.Err() != nil {
		if limited, ok := errors.AsType[*LimitError](context.Cause(g.ctx)); ok {
			panic(limited)
		}
		panic(context.Cause(g.ctx))
	}
	if read("/memory/classes/heap/stacks:bytes") > maxStack {
		panic(&LimitError{Bytes: maxStack})
	}
}

// inUse are the bytes of objects and stacks, what is not collected yet included.
func inUse() uint64 {
	return read("/memory/classes/heap/objects:bytes", "/memory/classes/heap/stacks:bytes")
}

// read is the sum of metrics of the Go runtime.
func read(names ...string) uint64 {
	samples := make([]metrics.Sample, len(names))
	for i, name := range names {
		samples[i].Name = name
	}
	metrics.Read(samples)
	var sum uint64
	for _, s := range samples {
		sum += s.Value.Uint64()
	}
	return sum
}
