package rules

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"syscall"
	"time"
)

// limitError says that a rule was stopped because it exceeded a limit.
type limitError string

// Error says which limit was exceeded.
func (e limitError) Error() string { return string(e) }

// watchEvery is how often memory is measured: a step of an evaluation adds some
// 1 GB/s at most, which is 5 MB in that time.
const watchEvery = 5 * time.Millisecond

// withinLimits runs a function that ends soon after its context does. It returns a limitError
// if that takes longer, or the program more memory, than allowed. A panic is an error.
func withinLimits[T any](ctx context.Context, limit, grace time.Duration, heap uint64, do func(context.Context) (T, error)) (T, error) {
	if memoryInUse() > heap {
		runtime.GC() // Garbage is not counted.
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go watchLimits(ctx, stop, limit, heap)
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
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
	if limited, ok := errors.AsType[limitError](context.Cause(ctx)); ok && r.err != nil {
		r.err = limited
	}
	return r.value, r.err
}

// watchLimits stops the function when it has used more processor time than limit, or
// the memory in use grows by more than heap.
func watchLimits(ctx context.Context, stop context.CancelCauseFunc, limit time.Duration, heap uint64) {
	until := cpuTime() + limit
	base := memoryInUse()
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
			stop(limitError(fmt.Sprintf("took longer than %s", limit.Round(time.Millisecond))))
			return
		}
		if memoryInUse() <= most {
			continue
		}
		runtime.GC()
		live := memoryInUse()
		if live > base+heap {
			stop(limitError(fmt.Sprintf("needed more than %d MiB of memory", heap>>20)))
			return
		}
		most = live + heap
	}
}

// memoryInUse is the number of bytes of objects and stacks, including garbage that is not collected yet.
func memoryInUse() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() + samples[1].Value.Uint64()
}

// cpuTime is the processor time that this process has used. On a machine that is
// busy with other work, a rule may take long by the clock through no fault of its own.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // It fails for other processes only.
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
