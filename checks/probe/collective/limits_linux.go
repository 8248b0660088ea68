package collective

import "golang.org/x/sys/unix"

// limitFiles sets the soft limit of this process on open files to that of a job, which Go raises for its own processes
// (os/rlimit.go), and never above the hard one; 0 leaves it.
func limitFiles(n int64) error {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil || n <= 0 {
		return err
	}
	r.Cur = min(uint64(n), r.Max)
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &r)
}
