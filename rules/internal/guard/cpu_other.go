//go:build !unix

package guard

import "time"

// CPUTime is the time since the start, as the processor time is not known.
func CPUTime() time.Duration { return time.Since(started) }
