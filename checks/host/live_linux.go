package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

func uname() (Uname, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Uname{}, fmt.Errorf("uname: %w", err)
	}
	return Uname{
		Node:    unix.ByteSliceToString(u.Nodename[:]),
		Release: unix.ByteSliceToString(u.Release[:]),
		Machine: unix.ByteSliceToString(u.Machine[:]),
	}, nil
}

// clock reads the state of the kernel's clock, and sets nothing.
func clock() (facts.Clock, error) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return facts.Clock{}, fmt.Errorf("adjtimex: %w", err)
	}
	synchronized := state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0
	return facts.Clock{Synchronized: synchronized, MaxErrorUS: int64(t.Maxerror)}, nil //nolint:unconvert // It has 32 bits on some architectures.
}

// fileSystems names the file systems by their magic numbers, as statfs(2) and
// include/uapi/linux/magic.h list them. Those without a name there are from
// their own sources: Lustre (lustre_user.h), ZFS (zfs_znode.h), GPFS and
// BeeGFS (their documentation), WekaFS.
var fileSystems = map[uint32]string{
	0x01021994: "tmpfs", 0x858458f6: "ramfs", 0x958458f6: "hugetlbfs",
	0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x2fc12fc1: "zfs", 0xf2f52010: "f2fs",
	0x794c7630: "overlay", 0x73717368: "squashfs", 0xe0f5e1e2: "erofs",
	0x6969: "nfs", 0xff534d42: "cifs", 0xfe534d42: "smb2", 0x00c36400: "ceph", 0x01021997: "9p",
	0x65735546: "fuse", 0x0bd00bd0: "lustre", 0x47504653: "gpfs", 0x19830326: "beegfs",
	0x62656572: "sysfs", 0x9fa0: "proc", 0x27e0eb: "cgroup", 0x63677270: "cgroup2", 0x1cd1: "devpts",
}

func statfs(name string) (Statfs, error) {
	var st unix.Statfs_t
	err := unix.Statfs(name, &st)
	for errors.Is(err, unix.EINTR) { // Go's runtime sends its threads signals, to preempt goroutines.
		err = unix.Statfs(name, &st)
	}
	if err != nil {
		return Statfs{}, err
	}
	magic := uint32(st.Type) // The magic numbers are of 32 bits on every architecture.
	kind := fileSystems[magic]
	if kind == "" {
		kind = fmt.Sprintf("0x%x", magic)
	}
	unit := int64(st.Frsize) //nolint:unconvert // It has 32 bits on some architectures, as have the next two.
	if unit == 0 {
		unit = int64(st.Bsize) //nolint:unconvert // See above.
	}
	return Statfs{
		Type:       kind,
		SizeBytes:  int64(st.Blocks) * unit,
		FreeBytes:  int64(st.Bfree) * unit,
		AvailBytes: int64(st.Bavail) * unit,
		ReadOnly:   int64(st.Flags)&unix.ST_RDONLY != 0, //nolint:unconvert // See above.
	}, nil
}

// access checks with the effective ids, as open does.
func access(name string) (string, error) {
	if err := unix.Faccessat(unix.AT_FDCWD, name, unix.F_OK, unix.AT_EACCESS); err != nil {
		return "", err
	}
	may := ""
	if unix.Faccessat(unix.AT_FDCWD, name, unix.R_OK, unix.AT_EACCESS) == nil {
		may += "r"
	}
	if unix.Faccessat(unix.AT_FDCWD, name, unix.W_OK, unix.AT_EACCESS) == nil {
		may += "w"
	}
	if may == "" {
		return "none", nil
	}
	return may, nil
}

// limits returns the resource limits of this process. That of open files is
// left out if it is unknown: Go raises the soft limit as a process
// starts (os/rlimit.go), so it is read from the parent, from which this process
// inherited it.
func (l *live) limits() (map[string]Limit, error) {
	limits := make(map[string]Limit)
	for name, resource := range map[string]int{"memlock": unix.RLIMIT_MEMLOCK, "nofile": unix.RLIMIT_NOFILE, "as": unix.RLIMIT_AS} {
		var r unix.Rlimit
		if err := unix.Getrlimit(resource, &r); err != nil {
			return nil, fmt.Errorf("getrlimit %s: %w", name, err)
		}
		limits[name] = Limit{Soft: bound(r.Cur), Hard: bound(r.Max)}
	}
	own := limits["nofile"]
	delete(limits, "nofile")
	b, err := l.ReadFile(fmt.Sprintf("/proc/%d/limits", os.Getppid()), 1<<14)
	if err == nil {
		if parent, ok := openFiles(b); ok && parent.Hard == own.Hard {
			limits["nofile"] = parent
		}
	}
	return limits, nil
}

// bound returns a limit as a number, -1 for none.
func bound(limit uint64) int64 {
	if limit >= 1<<63 { // RLIM_INFINITY is the largest of 64 bits.
		return -1
	}
	return int64(limit)
}

// openFiles returns the limit of open files that a /proc/PID/limits shows.
func openFiles(limits []byte) (Limit, bool) {
	for line := range strings.Lines(string(limits)) {
		rest, ok := strings.CutPrefix(line, "Max open files")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 2 {
			continue
		}
		var l Limit
		for i, at := range []*int64{&l.Soft, &l.Hard} {
			n, err := strconv.ParseUint(fields[i], 10, 64)
			switch {
			case fields[i] == "unlimited":
				n = unix.RLIM_INFINITY
			case err != nil:
				return Limit{}, false
			}
			*at = bound(n)
		}
		return l, true
	}
	return Limit{}, false
}

// readKernelLog returns the wanted lines of the kernel log.
func readKernelLog() (string, error) {
	const device = "/dev/kmsg"
	fd, err := unix.Open(device, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &fs.PathError{Op: opRead, Path: device, Err: err}
	}
	defer func() { _ = unix.Close(fd) }() // Nothing was written.
	var log kernelLog
	// A record is at most 8 KiB with its properties (CONSOLE_EXT_LOG_MAX,
	// kernel/printk/internal.h, PRINTK_MESSAGE_MAX 2048 since 6.2); a buffer
	// that is too small gives EINVAL.
	buf := make([]byte, 16<<10)
	total := 0
	for end := time.Now().Add(fileDeadline); total < maxKernelLog && time.Now().Before(end); {
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return log.text.String(), nil // This was the last one.
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.EINTR):
			// EPIPE: records were overwritten before they were read; the
			// next read continues with the oldest remaining one.
		case err != nil:
			return "", &fs.PathError{Op: opRead, Path: device, Err: err}
		case n == 0:
			return log.text.String(), nil
		default:
			total += n
			log.add(buf[:n])
		}
	}
	return log.text.String(), nil
}
