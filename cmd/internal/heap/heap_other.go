//go:build !linux

package heap

// Prepare does nothing.
func Prepare() {}
