//go:build !unix

package rules

import "time"

// cpuTime is the time since the start, as the processor time is not known.
func cpuTime() time.Duration { return time.Since(programStart) }
