package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
)

// signalError is why the work was stopped.
type signalError struct{ signal syscall.Signal }

func (e signalError) Error() string { return fmt.Sprintf("stopped by signal: %s", e.signal) }

// grace is how long the program takes at most to end its children and to
// tidy up once it is told to stop. A child ends with the program in any case.
const grace = deadline.Signal

// untilSignal returns a context that ends at the first SIGINT or SIGTERM, so
// that children are ended and nothing is left half-written. A second one, or
// the end of the grace, ends the program at once. A pipe whose reader has gone
// makes a write fail in place of ending the program.
func untilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	// A signal that is caught, unlike one that is ignored, is back at its
	// default in a child.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	c := make(chan os.Signal, 2)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		for s := range c {
			number, ok := s.(syscall.Signal)
			if !ok {
				continue
			}
			if ctx.Err() != nil {
				os.Exit(exitSignal + int(number))
			}
			cancel(signalError{number})
			time.AfterFunc(grace, func() { os.Exit(exitSignal + int(number)) })
		}
	}()
	return ctx, func() { signal.Stop(c) }
}
