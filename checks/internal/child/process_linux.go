package child

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// self is the running binary, even if its file was replaced or removed.
func self() (string, error) { return "/proc/self/exe", nil }

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// kill ends the child and all of its process group.
func kill(proc *os.Process) {
	_ = unix.Kill(-proc.Pid, unix.SIGKILL) // It may have ended just now.
}

// awaitExit waits until the child has ended, and ends what it left in its
// process group. The child is not reaped before that, so that the number of
// the group is surely still its own.
func awaitExit(proc *os.Process) {
	for {
		err := unix.Waitid(unix.P_PID, proc.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	kill(proc)
}

func signalOf(state *os.ProcessState) string {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return ""
	}
	return unix.SignalName(status.Signal())
}

// parentOf returns the id of a process's parent, or 0.
func parentOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	return parentIn(stat)
}

// settle prepares the process for its life as a child.
func settle() {
	// No process that a library starts may hold these pipes open.
	unix.CloseOnExec(messageFD)
	unix.CloseOnExec(lifelineFD)
	// A crash must leave no core file. The limit 1, unlike 0, also stops one
	// that is piped to a program (do_coredump, fs/coredump.c).
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_CORE, &limit) == nil {
		limit.Cur = min(1, limit.Max)
		limit.Max = limit.Cur
		_ = unix.Setrlimit(unix.RLIMIT_CORE, &limit) // Then a crash may leave one; no harm beyond.
	}
}

// killGroup ends this process and all of its group.
func killGroup() {
	if unix.Getpgrp() == unix.Getpid() {
		_ = unix.Kill(0, unix.SIGKILL) // The caller exits if this does not.
	}
}
