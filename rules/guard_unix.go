//go:build unix

package rules

import (
	"syscall"
	"time"
)

// cpuTime is the processor time that this process has used. On a machine that is
// busy with other work, a rule may take long by the clock through no fault of its own.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return time.Since(programStart)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
