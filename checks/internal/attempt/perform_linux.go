package attempt

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// prepare makes this child the first to be killed if memory runs out while it holds some, and lets a file
// over RLIMIT_FSIZE give an error and no signal.
func prepare() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // Without it, little is at risk: see tooLittle.
	signal.Ignore(syscall.SIGXFSZ)
	runtime.LockOSThread() // A memory policy is that of a thread.
}

func perform(name string, sizes Sizes) Result {
	switch name {
	case GetMempolicy:
		_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, 0, 0, 0, 0, 0, 0)
		return Of("get_mempolicy", errno)
	case Mlock:
		return onPages(os.Getpagesize(), func(memory []byte) Result { return Of("mlock", unix.Mlock(memory)) })
	case LockedMemory:
		return lockMemory(sizes.Locked)
	case SharedMemory:
		return shareMemory("/dev/shm", sizes.File)
	}
	return Result{Outcome: Unknown, Reason: "no such attempt"}
}

// Of is the result of a call: what its error says.
func Of(call string, err error) Result {
	var errno syscall.Errno
	switch {
	case err == nil:
		return Result{Outcome: OK}
	case !errors.As(err, &errno):
		return Result{Outcome: Unknown, Reason: call + ": " + err.Error()}
	case errno == 0:
		return Result{Outcome: OK}
	}
	return Result{Outcome: Refused, Call: call, Errno: cmp.Or(unix.ErrnoName(errno), "errno "+strconv.Itoa(int(errno)))}
}

func onPages(size int, f func(memory []byte) Result) Result {
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		r := Of("mmap", err)
		r.Bytes = int64(size)
		return r
	}
	defer func() { _ = unix.Munmap(memory) }() // It goes with the process at the latest.
	return f(memory)
}

// lockOnFault is MLOCK_ONFAULT (include/uapi/asm-generic/mman-common.h, since Linux 4.4).
const lockOnFault = 1

// lockMemory locks 64 KiB, the default limit of old kernels, 8 MiB, that of newer ones (since 5.16) and of systemd, and the
// most. The whole size counts against the limit (do_mlock in mm/mlock.c), and only pages that are touched are allocated.
func lockMemory(most int64) Result {
	r := Result{Outcome: Unknown, Reason: "nothing was tried"}
	for _, size := range []int64{min(64<<10, most), min(8<<20, most), most} {
		r = onPages(int(size), func(memory []byte) Result {
			_, _, errno := unix.Syscall(unix.SYS_MLOCK2, uintptr(unsafe.Pointer(&memory[0])), uintptr(size), lockOnFault)
			switch {
			case errors.Is(errno, unix.ENOSYS):
				return Result{Outcome: Unknown, Reason: "this kernel has no mlock2"}
			case errno != 0:
				return Of("mlock2", errno)
			}
			memory[0] = 1
			return Result{Outcome: OK}
		})
		if r.Outcome != Unknown {
			r.Bytes = size
		}
		if r.Outcome != OK {
			break
		}
	}
	return r
}

// shareMemory makes a file of the size that NCCL's have. It is never made where it would take a good part of what is
// left there.
func shareMemory(dir string, size int64) Result {
	f, err := os.OpenFile(dir, unix.O_TMPFILE|os.O_RDWR, 0o600)
	switch {
	case errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EOPNOTSUPP): // Of a kernel before 3.11, or of another file system.
		return NotKnown("no file without a name can be made in " + dir)
	case err != nil:
		return Of("open", err)
	}
	defer f.Close() //nolint:errcheck // It has no name: its space is released.
	fd := int(f.Fd())
	if why := tooLittle(fd, size); why != "" {
		return Result{Outcome: Unknown, Reason: why}
	}
	for {
		if err = unix.Fallocate(fd, 0, 0, size); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	r := Of("fallocate", err)
	if err == nil {
		r = touch(fd, size)
	}
	r.Bytes = size
	return r
}

// tooLittle says why a file of some size is not made, if that could be felt by others. A tmpfs
// that is smaller as a whole refuses it at once and takes nothing (shmem_fallocate in mm/shmem.c).
func tooLittle(fd int, size int64) string {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return "the free space is not known: statfs: " + err.Error()
	}
	unit := int64(st.Bsize) //nolint:unconvert // It has 32 bits on some architectures.
	free, whole := int64(st.Bavail)*unit, int64(st.Blocks)*unit
	isTmpfs := int64(st.Type) == unix.TMPFS_MAGIC //nolint:unconvert // The same.
	if isTmpfs && whole > 0 && whole < size {
		return ""
	}
	if whole > 0 && free < 2*size { // A tmpfs without a limit has no blocks.
		return fmt.Sprintf("only %d KiB are free in /dev/shm, and a file of %d KiB could take them from others", free>>10, size>>10)
	}
	return ""
}

func touch(fd int, size int64) Result {
	memory, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return Of("mmap", err)
	}
	memory[0], memory[size-1] = 1, 1
	return Of("munmap", unix.Munmap(memory))
}
