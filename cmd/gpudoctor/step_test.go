package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gpudoctor/gpudoctor/cmd/internal/outfile"
)

// steppingProgram is the program that signalAtStep changes.
const steppingProgram = "gpudoctor-stepping"

// stepVariable holds a step of outfile.Write, a signal's number, how many times
// the program under test gets it there, and whether it is to write as on a file
// system that knows no files without a name: "filled 15 1 false".
const stepVariable = "GPUDOCTOR_TEST_STEP"

// signalAtStep makes the program under test send itself signals.
func signalAtStep() {
	order, ok := os.LookupEnv(stepVariable)
	if !ok {
		return
	}
	if err := os.Unsetenv(stepVariable); err != nil { // Children have nothing to do with it.
		panic(err)
	}
	var at string
	var number, times int
	if _, err := fmt.Sscan(order, &at, &number, &times, &outfile.Testing.Named); err != nil {
		panic(err)
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		panic(err)
	}
	arrived := make(chan os.Signal, times)
	outfile.Testing.Step = func(step string) {
		for ; step == at && times > 0; times-- {
			signal.Notify(arrived, syscall.Signal(number))
			if err := self.Signal(syscall.Signal(number)); err != nil {
				panic(err)
			}
			<-arrived
			time.Sleep(20 * time.Millisecond) // For the other one who is notified.
		}
	}
}
