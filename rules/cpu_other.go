//go:build !unix

package rules

import "time"

// cpuTime is the time since the start, where that of the processor is not known.
func cpuTime() time.Duration { return time.Since(started) }
