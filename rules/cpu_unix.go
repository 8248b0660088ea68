//go:build unix

package rules

import (
	"syscall"
	"time"
)

// cpuTime is the processor time that this process has taken. On a machine that is
// busy with other things a rule takes long by the clock, and is not to blame.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return time.Since(started)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
