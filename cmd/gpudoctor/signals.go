package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
)

// signalExitBase is the exit code of a program that a signal ended, less the number of the signal.
const signalExitBase = 128

type stopped struct{ Signal syscall.Signal }

func (e stopped) Error() string { return fmt.Sprintf("stopped by signal: %s", e.Signal) }

func (e stopped) ExitCode() int { return signalExitBase + int(e.Signal) }

// abandonWithin is how long an exit at once waits for a file system: longer than
// a report of some 100 KiB takes to be written, shorter than a person waits.
const abandonWithin = time.Second

// signalEnding are the signals by which others end the program. The runtime of Go would exit at once, or print a trace
// of its stacks. It still does so for a fault of the program itself, which comes as one of the last five.
var signalEnding = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGXCPU, syscall.SIGABRT,
	syscall.SIGTRAP, syscall.SIGSYS, syscall.SIGILL, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGSEGV,
}

// untilSignal returns a context that ends at the first signal that ends the
// program, so that children are ended and nothing is left half-written; its cause is
// Stopped. A second signal, or the end of the grace, ends the program at once. A pipe
// whose reader has gone, and a file of the largest size that is allowed, make a write fail instead of ending the program.
func untilSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	// A signal that is caught, unlike one that is ignored, is back at its default in a child.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGXFSZ)
	c := make(chan os.Signal, 2)
	for _, s := range signalEnding {
		if !signal.Ignored(s) { // As by nohup, and by shells for what runs in the background.
			signal.Notify(c, s)
		}
	}
	go func() {
		for s := range c {
			number, ok := s.(syscall.Signal)
			if !ok {
				continue
			}
			stopped := stopped{number}
			if ctx.Err() != nil {
				exitAtOnce(stopped)
			}
			cancel(stopped)
			time.AfterFunc(deadline.Signal, func() { exitAtOnce(stopped) })
		}
	}()
	return ctx, func() {
		signal.Stop(c) // Nothing is sent after it.
		close(c)
	}
}

// exitAtOnce exits without leaving a file half-written, or a child.
func exitAtOnce(by stopped) {
	stdio.Abandon(abandonWithin)
	checks.Exit(by.ExitCode())
}
