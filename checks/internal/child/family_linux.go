package child

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

var sweeping sync.Mutex

// adoptOrphans makes this process the parent of its descendants that lose theirs, even if they left the session.
func adoptOrphans() bool { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil }

// claim has sweeps end all children that this package did not start: they are orphans of those that it did. It claims none
// if others may be: some are there already, from before execve(2), or this is process 1, the parent of everybody's orphans.
func claim() {
	_, children := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil)
	family.adopted = errors.Is(children, unix.ECHILD) && os.Getpid() > 1 && adoptOrphans()
}

const (
	// sweepTime bounds a sweep. Processes that the kernel does not release are left behind.
	sweepTime = time.Second
	// sweepPause is how long to wait for processes that were killed.
	sweepPause = time.Millisecond
)

// sweep ends what children that have ended left behind; in a child, its library's processes end with it.
func sweep() {
	sweeping.Lock()
	defer sweeping.Unlock()
	if family.adopted {
		endAll(strays)
	}
}

// endAll ends and reaps the listed children of this process: whoever is ended leaves its own children to it. A list may
// lack a child if another ends meanwhile, so two in a row must be empty; where no child runs that this process started,
// those that it has are strays, whatever the lists say.
func endAll(list func() []int) {
	until := time.Now().Add(sweepTime)
	for empty := 0; (empty < 2 || !anyRuns()) && time.Now().Before(until) && !noChildren(); empty++ {
		for _, pid := range list() {
			// The number is not a child's if /proc is that of another PID namespace.
			got, err := unix.Wait4(pid, nil, unix.WNOHANG|unix.WALL, nil)
			if err == nil && (got == pid || sigkill(pid) == nil) {
				empty = -1
			}
		}
		time.Sleep(sweepPause)
	}
}

// anyRuns reports whether a child that this process started has not ended.
func anyRuns() bool {
	family.Lock()
	defer family.Unlock()
	return slices.Contains(slices.Collect(maps.Values(family.pids)), true)
}

// noChildren reports whether this process certainly has no children.
func noChildren() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
	return errors.Is(err, unix.ECHILD)
}

// strays are the children of this process that it did not start.
func strays() []int {
	family.Lock()
	defer family.Unlock()
	return slices.DeleteFunc(childrenOf(), func(pid int) bool {
		_, started := family.pids[pid]
		return started
	})
}

// childrenOf are this process's children, by the kernel's list (proc_tid_children(5)) or by every process's parent.
func childrenOf() []int {
	var all []int
	lists, _ := filepath.Glob("/proc/self/task/*/children") // The pattern is sound.
	if len(lists) == 0 {
		processes, _ := filepath.Glob("/proc/[0-9]*")
		for _, name := range processes {
			if pid, err := strconv.Atoi(filepath.Base(name)); err == nil && parentOf(pid) == os.Getpid() {
				all = append(all, pid)
			}
		}
	}
	for _, name := range lists {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // That thread has ended.
		}
		for word := range bytes.FieldsSeq(text) {
			if pid, err := strconv.Atoi(string(word)); err == nil && pid > 1 {
				all = append(all, pid)
			}
		}
	}
	return all
}
