package child

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of its descendants that lost their
// parent, even if they left the group and the session, so that they are
// found (PR_SET_CHILD_SUBREAPER). If that is denied, they are not.
var adoptOrphans = sync.OnceFunc(func() {
	orphans.adopted = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil
})

// orphans serializes sweeps.
var orphans struct {
	sync.Mutex
	adopted bool
}

const (
	// sweepTime bounds a sweep. Processes that the kernel does not release are left behind.
	sweepTime = time.Second
	// sweepPause is how long to wait for processes that were killed.
	sweepPause = time.Millisecond
)

// sweep ends and reaps what children left behind in other process groups and
// sessions. A process is recognized by the variable that it inherited from a child: other
// children of this process are not touched. group is that of the child,
// which was reaped and whose group was killed. A stray that has ended and is no longer
// recognized remains until this process ends.
func sweep(group int) {
	orphans.Lock()
	defer orphans.Unlock()
	if !orphans.adopted {
		return
	}
	for {
		if got, err := unix.Wait4(-group, nil, unix.WNOHANG, nil); err != nil || got <= 0 {
			break
		}
	}
	killed := make(map[int]bool)
	for until := time.Now().Add(sweepTime); time.Now().Before(until); time.Sleep(sweepPause) {
		for _, pid := range strays() {
			if sigkill(pid) == nil {
				killed[pid] = true
			}
		}
		for pid := range killed {
			if got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); got == pid || err != nil {
				delete(killed, pid)
			}
		}
		if len(killed) == 0 {
			return
		}
	}
}

// strays are this process's children that a child of it left behind.
func strays() []int {
	family.Lock()
	defer family.Unlock()
	var list []int
	for _, pid := range childrenOf() {
		if _, started := family.pids[pid]; !started && bears(pid, familyVariable()) {
			list = append(list, pid)
		}
	}
	return list
}

// bears reports whether a process inherited a variable.
func bears(pid int, variable string) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+variable+"\x00"))
}

// childrenOf are this process's children, by the kernel's list of them
// (proc_tid_children(5)) or, if there is no such list, by every process's parent.
func childrenOf() []int {
	var all []int
	lists, _ := filepath.Glob("/proc/self/task/*/children") // The pattern is sound.
	if len(lists) == 0 {
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, name := range stats {
			text, err := os.ReadFile(name)
			pid, err2 := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			if err == nil && err2 == nil && parentIn(text) == os.Getpid() {
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
