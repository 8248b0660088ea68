//go:build linux

package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// asRoot is the environment variable that makes this test binary one of roots.
const asRoot = "GPUDOCTOR_TEST_AS_ROOT"

// leaving is how the task "leave" leaves a process behind, and what it does then.
type leaving struct {
	Session, Twice, Cleared bool
	End                     string
}

func init() {
	Register("leave", func(_ context.Context, args json.RawMessage, send func(any) error) error {
		var l leaving
		if err := json.Unmarshal(args, &l); err != nil {
			return err
		}
		pid, err := l.start()
		if err != nil {
			return err
		}
		if err := send(pid); err != nil {
			return err
		}
		switch l.End {
		case "well":
			return nil
		case "exit":
			os.Exit(7)
		case "crash":
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		case "flood":
			for err == nil {
				_, err = syscall.Write(messageFD, []byte(strings.Repeat("\n", 64<<10)))
			}
		}
		select {} // Until it is killed.
	})
}

// start starts a process that outlives the child if nobody ends it, and holds its pipes.
func (l leaving) start() (pid int, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer shut(r)
	script := "echo $$; exec sleep 1000"
	if l.Twice {
		script = "sleep 1000 & echo $!"
	}
	attr := &os.ProcAttr{Files: []*os.File{nil, w, os.Stderr, os.NewFile(messageFD, "messages")}, Sys: &syscall.SysProcAttr{Setsid: l.Session}}
	if l.Cleared {
		attr.Env = []string{}
	}
	proc, err := os.StartProcess("/bin/sh", []string{"sh", "-c", script}, attr)
	shut(w)
	if err != nil {
		return 0, err
	}
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		return 0, err
	}
	if l.Twice {
		if _, err := proc.Wait(); err != nil {
			return 0, err
		}
	}
	return strconv.Atoi(strings.TrimSpace(line))
}

// left runs the task and says what is left after its end; empty if nothing is. A child
// that hangs is ended as soon as it has left a process behind.
func (l leaving) left() string {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pid, own := 0, false
	r, err := Run(ctx, Spec{Task: "leave", Args: l, Receive: func(m json.RawMessage) {
		_ = json.Unmarshal(m, &pid)
		own = Own(pid)
		if l.End == "hang" {
			cancel()
		}
	}})
	ended := map[string]bool{
		"well": r.Finished && r.Failure == "", "exit": r.Code == 7, "crash": r.Death == DeathByOther, "flood": r.Flooded == Messages, "hang": r.Canceled,
	}[l.End]
	if err != nil || pid < 2 || !ended {
		return fmt.Sprintf("%+v: the process %d, %+v, %v\n", l, pid, r, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		return fmt.Sprintf("%+v: process %d is left: %v\n", l, pid, err)
	}
	if !own && l.End != "well" && l.End != "exit" && l.End != "crash" { // Those may have ended before.
		return fmt.Sprintf("%+v: process %d is not known as own\n", l, pid)
	}
	return ""
}

// leavings are all ways to leave a process behind.
func leavings() (all []leaving) {
	for bits := range 8 {
		for _, end := range []string{"well", "exit", "crash", "hang", "flood"} {
			all = append(all, leaving{bits&1 > 0, bits&2 > 0, bits&4 > 0, end})
		}
	}
	return all
}

// roots are programs that start processes only by Run, as main does. Each prints what is wrong.
var roots = map[string]func(){
	"one by one": func() {
		for _, l := range leavings() {
			_, _ = os.Stdout.WriteString(l.left())
			childless(fmt.Sprint(l))
		}
	},
	"at once": func() {
		var all sync.WaitGroup
		for _, l := range leavings() {
			all.Go(func() { _, _ = os.Stdout.WriteString(l.left()) })
		}
		all.Wait()
		childless("all at once")
	},
	"exit": func() { // While children run, and with what others left behind.
		var started sync.WaitGroup
		for _, l := range leavings() {
			if l.End == "hang" {
				started.Add(1)
				go func() {
					_, _ = Run(context.Background(), Spec{Task: "leave", Args: l, Receive: func(m json.RawMessage) {
						_, _ = fmt.Fprintf(os.Stdout, "%s\n", m)
						started.Done()
					}})
				}()
			}
		}
		started.Wait()
		Exit(0)
	},
	"with a child": func() {
		other := exec.Command("sleep", "1000")
		if err := other.Start(); err != nil {
			panic(err)
		}
		env := environment(os.Environ(), nil, []string{asRoot + "=inherited", inheritedVariable + "=" + strconv.Itoa(other.Process.Pid)})
		panic(syscall.Exec("/proc/self/exe", os.Args, env))
	},
	"inherited": func() {
		other, err := strconv.Atoi(os.Getenv(inheritedVariable))
		if err != nil {
			panic(err)
		}
		if Own(other) {
			_, _ = fmt.Fprintf(os.Stdout, "process %d, which it did not start, is its own\n", other)
		}
		_ = leaving{Session: true, End: "well"}.left() // This one is left.
		Exit(unclaimed(other))
	},
	"process 1": func() {
		other := exec.Command("sleep", "1000") // As an orphan of somebody else's.
		if err := other.Start(); err != nil {
			panic(err)
		}
		_ = leaving{End: "well"}.left()
		Exit(unclaimed(other.Process.Pid))
	},
}

const inheritedVariable = "GPUDOCTOR_TEST_INHERITED"

// childless says so if this process has children.
func childless(after string) {
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil); !errors.Is(err, unix.ECHILD) {
		_, _ = fmt.Fprintf(os.Stdout, "after %s it has a child: %d, %v\n", after, pid, err)
	}
}

// unclaimed ends a process that is not this one's to end, and returns 0 if nobody did before.
func unclaimed(pid int) int {
	endChildren()
	if got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); got != 0 || err != nil {
		_, _ = fmt.Fprintf(os.Stdout, "process %d, which it did not start, was ended: %d, %v\n", pid, got, err)
		return 1
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	return 0
}

// root runs as the program that a test starts.
func root() {
	if f := roots[os.Getenv(asRoot)]; f != nil {
		if name := os.Getenv(asRoot); name != "with a child" {
			if err := Root(); err != nil {
				panic(err)
			}
		}
		f()
		os.Exit(0)
	}
}

// runRoot runs this test binary as a program.
func runRoot(t *testing.T, name string, attributes *syscall.SysProcAttr) string {
	t.Helper()
	c := exec.Command("/proc/self/exe")
	c.Env, c.SysProcAttr = append(os.Environ(), asRoot+"="+name), attributes
	out, err := c.CombinedOutput()
	if os.IsPermission(err) {
		t.Skipf("namespaces are not permitted here: %v", err)
	}
	expect.That(t, err == nil, "%s: %v", name, err)
	return string(out)
}

// TestNothingLeft checks that what a child's library started ends with the child, however it
// left it and whatever its end, and that this is known of it while the child runs.
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"one by one", "at once"} {
		expect.Equal(t, "", runRoot(t, name, nil), "%s", name)
	}
}

// TestExit checks that an exit while children run leaves nothing.
func TestExit(t *testing.T) {
	t.Parallel()
	lines := strings.Fields(runRoot(t, "exit", nil))
	expect.Len(t, 8, lines, "it left")
	for _, line := range lines {
		pid, err := strconv.Atoi(line)
		expect.That(t, err == nil && pid >= 2 && errors.Is(syscall.Kill(pid, syscall.SIGKILL), syscall.ESRCH), "process %s is left (%v)", line, err)
	}
}

// TestUnclaimed checks that a program that others may give children ends none that it did not
// start: one that inherited a child, and one that is process 1.
func TestUnclaimed(t *testing.T) {
	t.Parallel()
	for name, attributes := range map[string]*syscall.SysProcAttr{
		"with a child": {Cloneflags: unix.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}, "process 1": {Cloneflags: unix.CLONE_NEWPID},
	} {
		expect.Equal(t, "", runRoot(t, name, attributes), "%s", name)
	}
}
