// Package guard stops what takes too long or needs too much memory.
package guard

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/open-policy-agent/opa/v1/topdown"
)

// Error says that a rule was stopped because it exceeded a limit.
type Error struct {
	// Took is the limit of processor time, Bytes that of memory: the one
	// that was exceeded; the other is 0.
	Took  time.Duration
	Bytes uint64
}

// Error says which limit was exceeded.
func (e *Error) Error() string {
	if e.Bytes > 0 {
		return fmt.Sprintf("needed more than %d MiB of memory", e.Bytes>>20)
	}
	return fmt.Sprintf("took longer than %s", e.Took.Round(time.Millisecond))
}

// watchEvery is how often memory is measured: a step of an evaluation adds some
// 1 GB/s at most, which is 5 MB in that time.
const watchEvery = 5 * time.Millisecond

// Within runs a function that ends soon after its context does. It returns a *Error
// if that takes longer, or the program more memory, than allowed. A panic is an error.
func Within[T any](ctx context.Context, limit, grace time.Duration, heap uint64, do func(context.Context) (T, error)) (T, error) {
	if inUse() > heap {
		runtime.GC() // Garbage is not counted.
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
			case *Error: // See Stack.
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
	var limited *Error
	if r.err != nil && errors.As(context.Cause(ctx), &limited) {
		r.err = limited
	}
	return r.value, r.err
}

// started is when the program started.
var started = time.Now()

// watch stops the function when it has used more processor time than limit, or
// the memory in use grows by more than heap.
func watch(ctx context.Context, stop context.CancelCauseFunc, limit time.Duration, heap uint64) {
	until := CPUTime() + limit
	base := inUse()
	most := base + heap // What may be in use, garbage included, until the next check.
	every := time.NewTicker(watchEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		if CPUTime() > until {
			stop(&Error{Took: limit})
			return
		}
		if inUse() <= most {
			continue
		}
		runtime.GC()
		live := inUse()
		if live > base+heap {
			stop(&Error{Bytes: heap})
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
	// guardEvery is the number of steps between two checks of a Stack. A step takes less than
	// 4 KiB of stack, so it checks at least every 4 MiB.
	guardEvery = 1024
)

// Stack stops an evaluation between two steps of comparing lists. OPA compares
// the elements of two lists by a call inside the call for the element before, and
// does not look at its context meanwhile: the stack grows with the number of elements,
// and a list that holds another many times over has any number of them. Following each
// step takes time, so only the user's rules are watched.
type Stack struct {
	Context context.Context
	steps   int
}

// Enabled makes it a topdown.QueryTracer.
func (*Stack) Enabled() bool { return true }

// Config says that it does not read variables.
func (*Stack) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent panics with a *Error if the evaluation has to end: a tracer has no
// other way to stop it. See Within.
func (g *Stack) TraceEvent(topdown.Event) {
	if g.steps++; g.steps%guardEvery != 0 {
		return
	}
	if g.Context.Err() != nil {
		if limited, ok := errors.AsType[*Error](context.Cause(g.Context)); ok {
			panic(limited)
		}
		panic(context.Cause(g.Context))
	}
	if read("/memory/classes/heap/stacks:bytes") > maxStack {
		panic(&Error{Bytes: maxStack})
	}
}

// inUse is the number of bytes of objects and stacks, including garbage that is not collected yet.
func inUse() uint64 {
	return read("/memory/classes/heap/objects:bytes", "/memory/classes/heap/stacks:bytes")
}

// read returns the sum of metrics of the Go runtime.
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
