package child

import "golang.org/x/sys/unix"

// get returns a limit of this process, which its children inherit, and whether
// one is set.
func (l limit) get() (n uint64, set bool) {
	which := map[limit]int{limitProcesses: unix.RLIMIT_NPROC, limitFiles: unix.RLIMIT_NOFILE, limitMemory: unix.RLIMIT_AS}[l]
	var r unix.Rlimit
	if unix.Getrlimit(which, &r) != nil {
		return 0, false
	}
	return r.Cur, r.Cur != unix.RLIM_INFINITY
}
