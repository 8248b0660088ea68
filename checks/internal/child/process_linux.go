package child

import (
	"errors"
	"io"
	"math"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// self is the running binary, even if its file was replaced or removed.
func self() (string, error) { return "/proc/self/exe", nil }

// attributes give a child a process group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// sendKill is kill(2); tests replace it.
var sendKill = func(pid int) error { return unix.Kill(pid, unix.SIGKILL) }

// sigkill kills a process or, if the number is negative, a process group. Nothing else in this program sends a signal.
// To kill(2), whose numbers have 32 bits, 0 means the group of this process and -1 all processes.
func sigkill(pid int) error {
	if n := max(pid, -pid); n < 2 || n > math.MaxInt32 {
		return unix.ESRCH
	}
	return sendKill(pid)
}

// kill ends the child and all of its process group, while its number is its own.
func kill(proc *os.Process) {
	family.Lock()
	defer family.Unlock()
	if family.pids[proc.Pid] {
		_ = sigkill(-proc.Pid) // It may have ended just now.
	}
}

// awaitExit waits until the child has ended, and ends what it left in its process group. Until the child is reaped, the
// number of the group is certainly its own. If the system denies the wait, the caller reaps, and the group is left to sweep.
func awaitExit(proc *os.Process) {
	for {
		err := unix.Waitid(unix.P_PID, proc.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err == nil:
			kill(proc)
			family.Lock()
			family.pids[proc.Pid] = false
			family.Unlock()
		}
		return
	}
}

// readNow reads what a pipe holds, and takes an empty one for its end.
func readNow(pipe *os.File, b []byte) (n int, err error) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	// Control, unlike Read, ignores deadlines. The pipe does not block: package os made it so.
	if e := raw.Control(func(fd uintptr) {
		for {
			if n, err = unix.Read(int(fd), b); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}); e != nil {
		return 0, e
	}
	if n > 0 {
		return n, nil
	}
	if err == nil || errors.Is(err, unix.EAGAIN) {
		err = io.EOF
	}
	return 0, err
}

// reap reaps a child that has ended. Package os waits by waitid, and gives up if a filter denies that.
func reap(proc *os.Process) *ending {
	var status syscall.WaitStatus
	if state, err := proc.Wait(); err == nil {
		status, _ = state.Sys().(syscall.WaitStatus)
	} else {
		for {
			pid, err := syscall.Wait4(proc.Pid, &status, 0, nil)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err != nil || pid != proc.Pid {
				return &ending{} // Somebody else reaped it.
			}
			break
		}
	}
	if status.Signaled() {
		return &ending{signal: unix.SignalName(status.Signal())}
	}
	return &ending{exited: true, code: status.ExitStatus()}
}

func parentOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	return parentIn(stat)
}

func settle() {
	adoptOrphans()
	// A parent that has died already has closed the lifeline.
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	openRecord(recordFD)
	// No process that a library starts may hold these pipes open.
	unix.CloseOnExec(messageFD)
	unix.CloseOnExec(lifelineFD)
	// A crash must leave no core file. The limit 1 also stops one that is piped to a program (fs/coredump.c).
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_CORE, &limit) == nil {
		limit.Cur = min(1, limit.Max)
		limit.Max = limit.Cur
		_ = unix.Setrlimit(unix.RLIMIT_CORE, &limit) // Then a crash may leave one; no harm beyond.
	}
}

// endChildren ends the children of this process and their descendants, unless some may be others'.
func endChildren() {
	if family.adopted {
		endAll(childrenOf)
	}
}

func killGroup() {
	endAll(childrenOf)
	if unix.Getpgrp() == os.Getpid() {
		_ = sigkill(-os.Getpid()) // The caller exits if this does not.
	}
}
