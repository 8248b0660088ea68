// Package limits tells in one line that the machine gives the program too little to
// run: address space, files or threads. The Go runtime would die of it with the
// stacks of its goroutines, partly before main. With cgo, C code looks before the
// runtime starts, and stays behind where a limit is low enough that the program may
// come to it later; without, Check looks in main.
package limits

// What the program needs; limits.h says how it was measured.
const (
	leastAddressSpace = 2 << 30
	leastData         = 512 << 20
	leastFiles        = 64
)
