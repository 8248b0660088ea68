//go:build unix

package guard

import (
	"syscall"
	"time"
)

// CPUTime is the processor time that this process has used. On a machine that is
// busy with other work, a rule may take long by the clock through no fault of its own.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return time.Since(started)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
