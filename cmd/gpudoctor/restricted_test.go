//go:build linux && cgo

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/restricted"
)

// restriction is the environment variable that tells the program "restricted" what to restrict gpudoctor to.
const restriction = "GPUDOCTOR_TEST_RESTRICTION"

func init() {
	programs["restricted"] = func() {
		var to restricted.To
		err := json.Unmarshal([]byte(os.Getenv(restriction)), &to)
		program, missing := exec.LookPath("gpudoctor")
		if err == nil && missing == nil {
			err = to.Exec(program, append([]string{"gpudoctor"}, os.Args[1:]...), os.Environ())
		}
		_, _ = fmt.Fprintln(os.Stdout, "not restricted:", err, missing)
		os.Exit(notRestricted)
	}
}

// notRestricted is the exit code of a process that could not be restricted; gpudoctor has no such code.
const notRestricted = 77

// restrictedTo runs gpudoctor under a restriction with these variables. It skips the test where that is not permitted.
func restrictedTo(t *testing.T, to restricted.To, env []string, line ...string) (code int, stdout, stderr string) {
	t.Helper()
	c := exec.Command("restricted", line...)
	c.Env = append(slices.Clone(env), restriction+"="+string(expect.Value(json.Marshal(to))(t)))
	c.SysProcAttr = to.Attributes()
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	err := c.Run()
	if os.IsPermission(err) || c.ProcessState != nil && c.ProcessState.ExitCode() == notRestricted {
		t.Skipf("not permitted here: %v, %s", err, &out)
	}
	expect.Must(t, c.ProcessState != nil && c.ProcessState.ExitCode() >= 0 && !strings.Contains(said.String(), "goroutine "), "%q: %v, %s", line, err, &said)
	return c.ProcessState.ExitCode(), out.String(), said.String()
}

// TestGetpidDenied checks that the program does not start where it cannot know its own process
// ID, by which it would signal others: in a PID namespace, in which a fault does no harm.
func TestGetpidDenied(t *testing.T) {
	t.Parallel()
	for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSYS} {
		for _, ulimit := range []string{"unlimited", "8000000"} { // With one, the program is guarded.
			for _, line := range []string{"check", "--version"} {
				raw := expect.Value(json.Marshal(restricted.To{Isolated: true, Deny: []uint32{unix.SYS_GETPID}, Errno: errno}))(t)
				c := exec.Command("sh", "-c", "ulimit -v "+ulimit+"; exec restricted "+line)
				c.Env = append(os.Environ(), restriction+"="+string(raw))
				c.SysProcAttr = restricted.To{Isolated: true}.Attributes()
				out, err := c.CombinedOutput()
				if os.IsPermission(err) || c.ProcessState.ExitCode() == notRestricted {
					t.Skipf("not permitted here: %v, %s", err, out)
				}
				want := fmt.Sprintf("gpudoctor: the system denies the process its own ID: getpid returns %d\nhint: run it under a seccomp filter that allows getpid\n", -int(errno))
				expect.That(t, c.ProcessState.ExitCode() == exitError && string(out) == want, "%v, ulimit -v %s, %s: %v, %s", errno, ulimit, line, err, out)
			}
		}
	}
}

// asDocker restricts a process as "docker run" does on a host with a low limit on locked memory, and further: without
// any capability.
var asDocker = restricted.To{
	SHM: "size=64m", Limited: true, Memlock: 64 << 10, Powerless: true, Isolated: true, Deny: restricted.NUMACalls, Errno: unix.EPERM,
}

// TestRestrictedContainer checks that, in a process that the kernel really restricts, each of the restrictions is
// named with what lifts it for the runtime in question.
func TestRestrictedContainer(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	named := []string{
		"/dev/shm has 64 MiB (the default of container runtimes)", "The limit on locked memory is 64 KiB in this container",
		"NUMA calls are blocked here (get_mempolicy, mbind and set_mempolicy: EPERM)",
	}
	for _, tt := range []struct {
		name      string
		variables []string
		fixes     []string
	}{
		{"docker", []string{"container=docker"}, []string{
			"docker run: --shm-size=16g", "docker run: --ulimit memlock=-1", "docker run: --cap-add=SYS_NICE",
		}},
		{"podman", []string{"container=podman"}, []string{
			"podman run: --shm-size=16g", "podman run: --ulimit memlock=-1", "podman run: --cap-add=SYS_NICE",
		}},
		{"kubernetes", []string{"KUBERNETES_SERVICE_HOST=10.96.0.1"}, []string{"medium: Memory, sizeLimit: 16Gi", "gpudoctor explain add-ipc-lock", "gpudoctor explain add-sys-nice"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, out, _ := restrictedTo(t, asDocker, append(simulated{}.environment(t), tt.variables...), "check")
			got := strings.Join(strings.Fields(out), " ")
			for _, want := range slices.Concat(named, tt.fixes) {
				expect.That(t, strings.Contains(got, want), "it does not say %q:\n%s", want, got)
			}
		})
	}
}

// TestUnrestrictedContainer checks that a container that has all of this has none of these findings.
func TestUnrestrictedContainer(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	roomy := restricted.To{SHM: "size=8g", Isolated: true}
	_, out, _ := restrictedTo(t, roomy, append(simulated{}.environment(t), "container=docker"), "check", "--format", "json")
	var d report.Document
	err := json.Unmarshal([]byte(out), &d)
	expect.Must(t, err == nil, "%v: %s", err, out)
	for _, f := range d.Findings {
		expect.That(t, !slices.Contains([]string{"shm-too-small", "memlock-limit", "container-caps", "firewall", "wrong-nic", "process-limits"}, f.Rule), "it has %s: %s", f.Rule, f.Message)
	}
	for _, rule := range []string{"shm-too-small", "container-caps"} {
		expect.That(t, slices.Contains(d.Passed, rule), "%s did not pass: %v", rule, d.Passed)
	}
}
