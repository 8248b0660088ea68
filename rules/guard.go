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

// LimitError says that a rule was stopped because it exceeded a limit.
type LimitError struct {
	// Took is the limit of processor time, Bytes that of memory: the one
	// that was exceeded; the other is 0.
	Took  time.Duration
	Bytes uint64
}

// Error says which limit was exceeded.
func (e *LimitError) Error() string {
	if e.Bytes > 0 {
		return fmt.Sprintf("needed more than %d MiB of memory", e.Bytes>>20)
	}
	return fmt.Sprintf("took longer than %s", e.Took.Round(time.Millisecond))
}

// limits are those of a single rule, of all rules, and of compiling a policy.
type limits struct {
	rule, rules, compile time.Duration
	// grace is how long a running step may take to end after the rule was
	// stopped. A step that takes longer is left running until the program ends.
	grace time.Duration
	// heap is how much they may add to the memory in use.
	heap uint64
}

// usual are the default limits. All rules together take some 30 MB on a machine
// with eight GPUs; the program must stay well below 512 MiB.
var usual = limits{rule: deadline.Rule, rules: deadline.Rules, compile: deadline.Compile, grace: time.Second, heap: 128 << 20}

// watchEvery is how often memory is measured: a step of an evaluation adds some
// 1 GB/s at most, which is 5 MB in that time.
const watchEvery = 5 * time.Millisecond

// within runs a function that ends soon after its context does. It returns a *LimitError
// if that takes longer, or the program more memory, than allowed. A panic is an error.
func within[T any](ctx context.Context, limit, grace time.Duration, heap uint64, do func(context.Context) (T, error)) (T, error) {
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

// watch stops the function when it has used more processor time than limit, or
// the memory in use grows by more than heap.
func watch(ctx context.Context, stop context.CancelCauseFunc, limit time.Duration, heap uint64) {
	until := cpuTime() + limit
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
	// guardEvery is the number of steps between two checks of a stackGuard. A step takes less than
	// 4 KiB of stack, so it checks at least every 4 MiB.
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

// TraceEvent panics with a *LimitError if the evaluation has to end: a tracer has no
// other way to stop it. See within.
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
