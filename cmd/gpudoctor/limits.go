package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// What the program needs, measured on Linux 6.18 with Go 1.26 and 2 cores: 1.8 to 2.1 GiB of address space (the
// runtime's tables, and for each of 8 to 11 threads 8 MiB of stack and 64 MiB for malloc; a busy machine has more
// threads), 255 MiB of data, 27 open files.
const (
	leastAddressSpace = 4 << 30
	leastData         = 512 << 20
	leastFiles        = 64
)

// checkLimits returns an error where a limit is lower than what the program needs. Under far lower limits, the Go
// runtime ends before main.
func checkLimits() error {
	for _, l := range []struct {
		which       int
		name, flag  string
		least, unit uint64
		unitName    string
	}{
		{unix.RLIMIT_AS, "address space", "-v", leastAddressSpace, 1 << 20, " MiB"},
		{unix.RLIMIT_DATA, "data", "-d", leastData, 1 << 20, " MiB"},
		{unix.RLIMIT_NOFILE, "open files", "-n", leastFiles, 1, ""},
	} {
		var r unix.Rlimit
		if unix.Getrlimit(l.which, &r) == nil && r.Cur < l.least {
			return fmt.Errorf("the limit on %s (ulimit %s) is %d%s; gpudoctor needs %d%s", l.name, l.flag, r.Cur/l.unit, l.unitName, l.least/l.unit, l.unitName)
		}
	}
	return nil
}
