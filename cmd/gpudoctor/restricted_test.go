//go:build linux && cgo

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
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
var asDocker = restricted.To{SHM: "size=64m", Limited: true, Memlock: 64 << 10, Powerless: true, Isolated: true, Deny: restricted.NUMACalls, Errno: unix.EPERM}

// TestRestrictedContainer checks that, in a process that the kernel really restricts, each of the restrictions is
// named with what lifts it for the runtime in question.
func TestRestrictedContainer(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	named := []string{
		"/dev/shm has 64 MiB, of which",
		"NUMA calls are blocked here (get_mempolicy: EPERM, mbind: EPERM and set_mempolicy: EPERM)",
	}
	for _, tt := range expect.SomeRows(3, []struct {
		name      string
		variables []string
		fixes     []string
	}{
		{"docker", []string{"container=docker"}, []string{"docker run: --shm-size=16g", "docker run: --cap-add=SYS_NICE"}},
		{"podman", []string{"container=podman"}, []string{"podman run: --shm-size=16g", "podman run: --cap-add=SYS_NICE"}},
		{"kubernetes", []string{"KUBERNETES_SERVICE_HOST=10.96.0.1"}, []string{"medium: Memory, sizeLimit: 16Gi", "gpudoctor explain add-sys-nice"}},
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

// TestUnrestrictedContainer checks that a container that has all of this has none of these findings.
func TestUnrestrictedContainer(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	roomy := restricted.To{SHM: "size=8g", Isolated: true}
	_, out, _ := restrictedTo(t, roomy, append(simulated{}.environment(t), "container=docker"), "check", "--format", "json")
	d := decoded[report.Document](t, out)
	for _, f := range d.Findings {
		expect.That(t, !slices.Contains([]string{"shm-too-small", "memlock-limit", "container-caps", "firewall", "wrong-nic", "process-limits"}, f.Rule), "it has %s: %s", f.Rule, f.Message)
	}
	for _, rule := range []string{"shm-too-small", "container-caps"} {
		expect.That(t, slices.Contains(d.Passed, rule), "%s did not pass: %v", rule, d.Passed)
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

// checkDocument checks what the documents for programs say of GPUs.
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

// sysWithNICs writes a /sys with two GPUs and two adapters of NVIDIA, one below a switch with each GPU, whose ports are
// active, and these kernel modules.
func sysWithNICs(t *testing.T, modules ...string) string {
	t.Helper()
	sys := t.TempDir()
	file := func(name, text string) {
		at := filepath.Join(sys, name)
		expect.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		expect.NoError(t, os.WriteFile(at, []byte(text+"\n"), 0o644))
	}
	link := func(target, name string) {
		at := filepath.Join(sys, name)
		expect.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		expect.NoError(t, os.Symlink(target, at))
	}
	for i := range 2 {
		address := fmt.Sprintf("0000:%02x:00.0", 0x1c+i)
		device := "devices/pci0000:10/" + address
		file(device+"/vendor", "0x15b3")
		file(device+"/device", "0x1021")
		file(device+"/class", "0x020700")
		file(device+"/numa_node", "0")
		link("../../../"+device, "bus/pci/devices/"+address)
		name := fmt.Sprintf("mlx5_%d", i)
		port := device + "/infiniband/" + name + "/ports/1"
		file(port+"/state", "4: ACTIVE")
		file(port+"/phys_state", "5: LinkUp")
		file(port+"/link_layer", "InfiniBand")
		file(port+"/rate", "400 Gb/sec (4X NDR)")
		file(port+"/lid", "0x5")
		file(port+"/sm_lid", "0x1")
		link("../../"+device+"/infiniband/"+name, "class/infiniband/"+name)
	}
	file("class/net/lo/mtu", "65536") // Without the folder, no network is visible.
	for _, m := range append(modules, "ib_core", "mlx5_ib") {
		file("module/"+m+"/refcnt", "1")
	}
	return sys
}

// registered is what the whole program makes of NICs that behave in some way.
type registered struct {
	finding  string   // That of gdr-module-missing or memlock-limit.
	unknown  []string // The facts of the section gpudirect that are unknown.
	unproven bool     // Whether gdr-module-missing has no verdict.
}

// TestRegistrations runs the whole program on a machine with NICs, whose libibverbs and driver do what was ordered. A
// way that works is healthy, one that is unknown is neither a finding nor taken for healthy where another is refused,
// and a recording gives the same.
func TestRegistrations(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	const refused = "gdr-module-missing medium confirmed GPUDirect RDMA"
	fault, unsupported := "error-peermem=14", "error-dmabuf-mr=95"
	for name, tt := range map[string]struct {
		verbs, cuda string
		modules     []string
		want        registered
	}{
		"healthy":                   {"", "", []string{"nvidia_peermem"}, registered{}},
		"only peermem":              {unsupported, "no-dmabuf", []string{"nvidia_peermem"}, registered{}},
		"neither":                   {fault + "," + unsupported, "", nil, registered{finding: refused}},
		"peermem does not register": {fault + "," + unsupported, "", []string{"nvidia_peermem"}, registered{finding: refused}},
		"one NIC":                   {"error-peermem=14@*>1,error-dmabuf-mr=95@*>1", "", nil, registered{finding: "gdr-module-missing low confirmed GPUDirect RDMA"}},
		"locked memory":             {"error-host=12", "", []string{"nvidia_peermem"}, registered{finding: "memlock-limit medium likely RLIMIT_MEMLOCK"}},
		"both crash":                {"crash-peermem,crash-dmabuf-mr", "", []string{"nvidia_peermem"}, registered{unknown: []string{"nics.dmabuf", "nics.peermem"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if expect.FewRows() && name != "neither" {
				t.Skip("not by day")
			}
			to := restricted.To{Sys: sysWithNICs(t, tt.modules...)}
			env := append(simulated{libraries: []string{"cuda", "nvml", "verbs"}, cuda: tt.cuda}.environment(t), "GPUDOCTOR_SIM_NICS=2", "GPUDOCTOR_SIM_VERBS_FAULT="+tt.verbs)
			snapshot := filepath.Join(t.TempDir(), "host.txtar")
			code, _, said := restrictedTo(t, to, env, "snapshot", "--probe", "full", "-o", snapshot)
			expect.Must(t, code == exitOK, "exit code %d: %s", code, said)
			out, _ := exec.Command("gpudoctor", "check", "--from", snapshot, "--format", "json").Output() // Its exit code is that of the findings.
			replayed := decoded[report.Document](t, out)
			diff := cmp.Diff(tt.want, verdictOf(&replayed), cmp.AllowUnexported(registered{}))
			expect.That(t, diff == "", "-want +got: %s", diff)
			_, checked, _ := restrictedTo(t, to, env, "check", "--probe", "full", "--format", "json")
			live := decoded[report.Document](t, checked)
			diff = cmp.Diff(verdictOf(&live), verdictOf(&replayed), cmp.AllowUnexported(registered{}))
			expect.That(t, diff == "", "the recording differs: %s", diff)
		})
	}
}

// verdictOf is what a report says of registrations.
func verdictOf(d *report.Document) registered {
	var r registered
	for _, f := range d.Findings {
		if f.Rule == "gdr-module-missing" || f.Rule == "memlock-limit" && strings.Contains(f.Message, "mlx5_") {
			r.finding = strings.Join([]string{f.Rule, string(f.Severity), string(f.Confidence), f.Subject}, " ")
		}
	}
	unknown := map[string]bool{}
	for _, u := range d.Unknown {
		if u.Section == "gpudirect" {
			unknown[u.Fact] = true
		}
	}
	r.unknown = slices.Sorted(maps.Keys(unknown))
	for _, s := range d.Skipped {
		r.unproven = r.unproven || s.Rule == "gdr-module-missing"
	}
	return r
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
