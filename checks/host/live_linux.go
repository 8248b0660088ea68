package host

import (
	"cmp"
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
	return facts.Clock{Synchronized: state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0}, nil
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
	unit := cmp.Or(int64(st.Frsize), int64(st.Bsize)) //nolint:unconvert // They have 32 bits on some architectures, as has the next one.
	return Statfs{
		SizeBytes: int64(st.Blocks) * unit,
		FreeBytes: int64(st.Bfree) * unit,
		ReadOnly:  int64(st.Flags)&unix.ST_RDONLY != 0, //nolint:unconvert // See above.
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
	return cmp.Or(may, "none"), nil
}

// limits returns the resource limits of this process. Go raises that of open files as a process starts (os/rlimit.go), so it is
// read from the parent.
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

func readKernelLog() (string, error) {
	const device = "/dev/kmsg"
	fd, err := unix.Open(device, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &fs.PathError{Op: read.String(), Path: device, Err: err}
	}
	defer func() { _ = unix.Close(fd) }() // Nothing was written.
	var log kernelLog
	// A record is at most 8 KiB with its properties (CONSOLE_EXT_LOG_MAX, kernel/printk/internal.h); a buffer that is too small
	// gives EINVAL.
	buf := make([]byte, 16<<10)
	total := 0
	for end := time.Now().Add(fileDeadline); total < maxKernelLog && time.Now().Before(end); {
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return log.text.String(), nil // This was the last one.
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.EINTR):
			// EPIPE: records were overwritten before they were read; the next read continues with the oldest one.
		case err != nil:
			return "", &fs.PathError{Op: read.String(), Path: device, Err: err}
		case n == 0:
			return log.text.String(), nil
		default:
			total += n
			log.add(buf[:n])
		}
	}
	return log.text.String(), nil
}
