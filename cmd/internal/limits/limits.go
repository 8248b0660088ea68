// Package limits tells in one line that the machine gives the program too little to run: address space, memory or
// files. Under far lower limits, the Go runtime dies before main.
package limits

// What the program needs, measured on Linux 6.18 with Go 1.26 and 2 cores: 1.9 GiB of address space (the runtime's
// tables, and for each thread of libc 8 MiB of stack and 64 MiB for malloc), 255 MiB of data, 27 open files.
const (
	leastAddressSpace = 2 << 30
	leastData         = 512 << 20
	leastFiles        = 64
)
