package limits

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Check returns an error where a limit is lower than what the program needs.
func Check() error {
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
