package main

import (
	"os"
	"syscall"
)

// maxMemory is the most memory that a process held, in bytes. Linux counts ru_maxrss in KiB (getrusage(2)).
func maxMemory(s *os.ProcessState) int64 {
	if usage, ok := s.SysUsage().(*syscall.Rusage); ok {
		return usage.Maxrss << 10
	}
	return 0
}
