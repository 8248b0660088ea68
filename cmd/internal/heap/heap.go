// Package heap prepares and bounds the memory that judging a machine takes.
package heap

import "runtime/debug"

// Shared is true in a process that makes many judgments, such as a test: its memory is not
// that of one of them, and the limits of one would make it collect garbage all the time.
var Shared bool

// Limit sets the soft limit on memory.
func Limit(bytes int64) {
	if !Shared {
		debug.SetMemoryLimit(bytes)
	}
}

// Garbage sets how much garbage may lie beside what is kept, in percent of it.
func Garbage(percent int) {
	if !Shared {
		debug.SetGCPercent(percent)
	}
}
