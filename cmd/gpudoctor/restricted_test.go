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
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/image/imagetest"
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

// asDocker restricts a process as "docker run" does on a host with a low limit on locked memory, and further: without
// any capability.
var asDocker = restricted.To{SHM: "size=64m", Limited: true, Memlock: 64 << 10, Powerless: true, Isolated: true, Deny: restricted.NUMACalls, Errno: unix.EPERM}

// TestRestrictedContainer checks that, in a process that the kernel really restricts, each of the restrictions is
// named with what lifts it for the runtime in question.
func TestRestrictedContainer(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	named := []string{
		"/dev/shm has 64 MiB, of which",
		"NUMA calls are blocked here (get_mempolicy: EPERM)",
	}
	for _, tt := range expect.SomeRows(3, []struct {
		name      string
		variables []string
		fixes     []string
	}{
		{"docker", []string{"container=docker"}, []string{"docker run: --shm-size=16g"}},
		{"podman", []string{"container=podman"}, []string{"podman run: --shm-size=16g"}},
		{"kubernetes", []string{"KUBERNETES_SERVICE_HOST=10.96.0.1"}, []string{"medium: Memory, sizeLimit: 16Gi"}},
	}) {
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

// TestUnlisted checks that no command says that there is no GPU where the PCI devices cannot be listed, and that a check
// which asked for a probe then says that GPUs are unknown and fails.
func TestUnlisted(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	unknown := map[string]int{
		"check": exitUnproven, "check --probe off": exitOK, "check --profile image": exitOK, "facts": exitOK, "snapshot -o /dev/null": exitOK,
		"probe p2p": exitUnproven, "topo": exitOK, "advise": exitOK, "check --format json": exitUnproven, "check --verbose": exitUnproven,
		"check --format markdown": exitUnproven, "check --only gpu-fault": exitUnproven, "check --fail-on none": exitUnproven,
	}
	// What they say of what is known.
	allowed := strings.NewReplacer("no GPU is expected during an image build", "", "No GPU is known", "", "no GPU is visible here", "")
	for name, hidden := range map[string][]string{"sys": {"/sys"}, "proc": {"/proc"}, "neither": {"/sys", "/proc"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for line, want := range unknown {
				if expect.FewRows() && line != "check" && line != "topo" {
					continue
				}
				listed := name == "proc" // No GPU is in the list.
				if listed && want == exitUnproven {
					want = exitOK
				}
				exit, out, said := restrictedTo(t, restricted.To{Hidden: hidden, Isolated: true}, os.Environ(), strings.Fields(line)...)
				expect.That(t, exit == want, "%s: exit code %d, want %d: %s%s", line, exit, want, out, said)
				words := strings.Join(strings.Fields(out+said), " ")
				expect.That(t, listed || !strings.Contains(strings.ToLower(allowed.Replace(words)), "no gpu"), "%s: it says that there is no GPU:\n%s", line, out)
				if line == "check" && !listed && (!strings.Contains(words, "GPUs not known") || strings.Count(words, "not known whether there is a GPU")+strings.Count(words, "; gpus (") < 2) {
					t.Errorf("%s: headline or closing line do not say that GPUs are unknown:\n%s", line, out)
				}
				checkDocument(t, line, out, listed)
			}
		})
	}
}

func checkDocument(t *testing.T, line, out string, listed bool) {
	t.Helper()
	switch line {
	case "facts":
		f := decoded[facts.Facts](t, out)
		expect.That(t, f.GPUs != nil && (f.GPUs.Devices != nil) == listed, "facts: %+v", f.GPUs)
	case "check --format json":
		d := decoded[report.Document](t, out)
		expect.That(t, d.Verdict.State == report.Inconclusive, "report: %+v", d.Verdict)
		expect.Equal(t, listed, slices.ContainsFunc(d.Verdict.Reasons, func(r report.Reason) bool { return r.Code == report.ReasonNoGPU }), "report: %+v", d.Verdict.Reasons)
	}
}

// TestImagesInside checks that gpudoctor finds the same where it runs in the image: in a
// process whose root folder is that of the image.
func TestImagesInside(t *testing.T) {
	exe := expect.Value(os.Executable())(t)
	for _, c := range expect.SomeRows(9, slices.Concat(faultyImages, goodImages)) {
		if c.target != nil {
			continue // A file of the image is not the target.
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root := imagetest.Write(t, c.img, imagetest.Folder)
			cmd := exec.Command(exe, "check", "--profile", "image", "--format", "json", "--no-redact")
			cmd.Args[0] = insideProgram
			cmd.Dir, cmd.Env = "/", append(slices.Clone(c.img.Env), "IMAGE_ROOT="+root, "HOME=/root")
			cmd.SysProcAttr = &syscall.SysProcAttr{}
			if os.Getuid() != 0 { // Only root, or one in its own name space, may change its root folder.
				cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
				cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
			}
			out, err := cmd.Output()
			var d report.Document
			if jsonErr := json.Unmarshal(out, &d); jsonErr != nil {
				t.Fatal(err, jsonErr)
			}
			expect.NoDiff(t, c.want, graveFindings(&d), "it")
		})
	}
}

// insideProgram is gpudoctor in another root folder.
const insideProgram = "gpudoctor-inside"

func init() {
	programs[insideProgram] = func() {
		if err := syscall.Chroot(os.Getenv("IMAGE_ROOT")); err != nil {
			panic(err)
		}
		main()
	}
}
