package collective

import "golang.org/x/sys/unix"

// resources are the limits by the names of Arm.Raised.
var resources = map[string]int{limitFiles: unix.RLIMIT_NOFILE, limitLocked: unix.RLIMIT_MEMLOCK}

// raisable are the limits whose soft value is below the hard one, which they have: the soft limit
// on open files is that of a job, or not known if it is 0.
func raisable(files int64) map[string]int64 {
	all := map[string]int64{}
	for name, resource := range resources {
		var r unix.Rlimit
		if unix.Getrlimit(resource, &r) != nil {
			continue
		}
		soft := r.Cur
		if name == limitFiles {
			if files <= 0 {
				continue
			}
			soft = uint64(files)
		}
		if soft < r.Max {
			all[name] = int64(r.Max) // -1 for none: RLIM_INFINITY is the largest of 64 bits.
		}
	}
	return all
}

// apply sets the soft limits of this process. It never touches a hard one.
func (l limits) apply() error {
	for name, soft := range l {
		var r unix.Rlimit
		if err := unix.Getrlimit(resources[name], &r); err != nil {
			return err
		}
		r.Cur = min(uint64(soft), r.Max) // -1 is no limit.
		if err := unix.Setrlimit(resources[name], &r); err != nil {
			return err
		}
	}
	return nil
}
