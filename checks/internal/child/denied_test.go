//go:build linux

package child

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/restricted"
)

// asDenied is the environment variable that makes this test binary a parent to whom
// the kernel denies a system call: its number, and the error.
const asDenied = "GPUDOCTOR_TEST_DENIED"

// runDenied runs children of a few kinds under the filter, and prints what became of each.
func runDenied() {
	var call uint32
	var with unix.Errno
	_, _ = fmt.Sscan(os.Getenv(asDenied), &call, &with)
	if os.Getpid() == 1 {
		other := exec.Command("sleep", "1000")
		if err := other.Start(); err != nil {
			panic(err)
		}
		defer func() {
			pid, err := unix.Wait4(other.Process.Pid, nil, unix.WNOHANG, nil)
			_, _ = fmt.Fprintf(os.Stdout, "another process: %d, %v\n", pid, err)
		}()
	}
	if err := restricted.Deny(restricted.Fail(with), call); err != nil {
		_, _ = fmt.Fprintln(os.Stdout, "no filter:", err)
		return
	}
	for _, task := range []string{"echo", "inside", "signal"} {
		got := 0
		r, err := Run(context.Background(), Spec{Task: task, Args: 9, Deadline: 2 * time.Minute, Receive: func(json.RawMessage) { got++ }})
		if err != nil {
			_, _ = fmt.Fprintf(os.Stdout, "%s: no child\n", task)
			continue
		}
		_, _ = fmt.Fprintf(os.Stdout, "%s: %d messages, finished %t, %q, %s\n", task, got, r.Finished, r.Death, r.Signal)
	}
}

// TestDenied checks that where the kernel denies what is not needed, children are
// run, and that whatever it denies, no library is blamed.
func TestDenied(t *testing.T) {
	const usual = "echo: 2 messages, finished true, \"\", \ninside: 0 messages, finished false, \"killed\", SIGKILL\nsignal: 1 messages, finished false, \"killed\", SIGKILL\n"
	for name, tt := range map[string]struct {
		call   uint32
		needed bool
	}{
		"waitid": {call: unix.SYS_WAITID}, "memfd_create": {call: unix.SYS_MEMFD_CREATE}, "pidfd_open": {call: unix.SYS_PIDFD_OPEN},
		"prctl": {call: unix.SYS_PRCTL}, "setpgid": {call: unix.SYS_SETPGID, needed: true}, "execve": {call: unix.SYS_EXECVE, needed: true}, "pipe2": {call: unix.SYS_PIPE2, needed: true},
		"getrlimit": {call: unix.SYS_PRLIMIT64}, "fcntl seals": {call: unix.SYS_FTRUNCATE},
	} {
		for _, with := range []unix.Errno{unix.ENOSYS, unix.EPERM} {
			t.Run(fmt.Sprint(name, " ", with), func(t *testing.T) {
				t.Parallel()
				if testing.Short() && with != unix.ENOSYS {
					t.Skip("not with -short")
				}
				c := exec.Command(os.Args[0])
				c.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", asDenied, tt.call, with))
				out, err := c.Output()
				got := string(out)
				if strings.HasPrefix(got, "no filter") {
					t.Skip(got)
				}
				none := strings.Count(got, ": no child\n") == 3
				expect.That(t, err == nil && !strings.Contains(got, string(DeathByLibrary)) && (got == usual || tt.needed && none), "%v\n%s", err, got)
			})
		}
	}
}

// TestGetpidDenied checks that a child that cannot know its own number exits without ending
// another process. If it does end one, that is in a PID namespace of the test's own.
func TestGetpidDenied(t *testing.T) {
	t.Parallel()
	for _, with := range []unix.Errno{unix.ENOSYS, unix.EPERM, 0} {
		c := exec.Command("/proc/self/exe")
		c.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", asDenied, unix.SYS_GETPID, with))
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
		out, err := c.Output()
		if os.IsPermission(err) || strings.HasPrefix(string(out), "no filter") {
			t.Skip(err, string(out))
		}
		const none = "0 messages, finished false, \"unknown\", \n"
		want := "echo: " + none + "inside: " + none + "signal: " + none + "another process: 0, <nil>\n"
		expect.That(t, err == nil && string(out) == want, "%v: %v, got\n%swant\n%s", with, err, out, want)
	}
}

// denied runs as the parent that TestDenied starts.
func denied() {
	if os.Getenv(asDenied) != "" {
		runDenied()
		os.Exit(0)
	}
}
