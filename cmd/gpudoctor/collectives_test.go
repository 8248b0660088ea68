//go:build linux && cgo

package main

import (
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/collective"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/drivers"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

// collected is a probe of collectives whose arms have an outcome, except those that work.
func collected(outcome probe.Outcome, cause probe.Cause, works ...string) *probe.Collectives {
	c := &probe.Collectives{Mode: probe.Full, Outcome: outcome, Cause: cause, Reason: "x", Library: "nccl", GPUs: []string{"0000:06:00.0", "0000:07:00.0"}, Arms: []probe.Arm{}}
	for _, name := range collective.Names() {
		a := probe.Arm{Name: name, Outcome: outcome, Cause: cause, Reason: "x", Ranks: []probe.Rank{}}
		if slices.Contains(works, name) {
			a.Outcome, a.Cause, a.Reason = probe.OK, "", ""
		}
		c.Arms = append(c.Arms, a)
	}
	c.Outcome = c.Arms[0].Outcome
	return c
}

// TestCollectiveFailureIsNeverHealth checks, by enumeration, that whatever fails in whichever arm,
// and whichever rules are left out, the verdict is not healthy and the exit code not 0.
func TestCollectiveFailureIsNeverHealth(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	k := learnt(t)
	names := collective.Names()
	healthy := healthyPair(t)
	judged := func(c *probe.Collectives, s selection) *report.Document {
		f := *healthy
		f.Collectives = c
		return judge(t, k, &f, s)
	}
	all := append(selections(k), selection{name: "no collective-failed", profile: rules.Training, failOn: report.Threshold(rules.High), skip: []string{"collective-failed"}})
	works := judged(collected(probe.OK, ""), all[0]).Verdict
	expect.That(t, works.State == report.Healthy && works.ExitCode == exitOK, "all arms work: %+v", works)
	for _, cause := range []probe.Cause{probe.CauseNoLibrary, probe.CauseNoDevice} {
		c := collected(probe.Unknown, cause)
		c.Arms = []probe.Arm{}
		d := judged(c, all[0])
		expect.That(t, d.Verdict.State == report.Healthy, "%s: %+v", cause, d.Verdict)
	}
	slow := collected(probe.OK, "")
	slow.Outcome, slow.Arms[0].Outcome, slow.Arms[0].Reason = probe.Slow, probe.Slow, "x"
	for _, s := range append(all, selection{name: "no collective-slow", profile: rules.Training, failOn: report.Threshold(rules.High), skip: []string{"collective-slow"}}) {
		d := judged(slow, s)
		expect.That(t, d.Verdict.State != report.Healthy && len(d.Verdict.Reasons) != 0, "slow, %s: %+v", s.name, d.Verdict)
	}
	try := expect.EachNth(8) // By day also each outcome with each variant and each selection.
	for _, outcome := range []probe.Outcome{probe.Corrupt, probe.Hang, probe.Error, probe.Unknown} {
		variants := map[string]*probe.Collectives{"every arm": collected(outcome, "")}
		none := collected(outcome, "")
		none.Arms = []probe.Arm{}
		variants["no arm"] = none
		for _, name := range names {
			others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
			if outcome != probe.Unknown || name == names[0] {
				variants["only "+name+" fails"] = collected(outcome, "", others...)
			}
			if name != names[0] {
				variants["only "+name+" works"] = collected(outcome, "", name)
			}
		}
		for _, what := range slices.Sorted(maps.Keys(variants)) {
			c := variants[what]
			for _, s := range all {
				if !try(fmt.Sprint(outcome, what), fmt.Sprint(outcome, s.name)) {
					continue
				}
				d := judged(c, s)
				expect.That(t, d.Verdict.State != report.Healthy && len(d.Verdict.Reasons) != 0, "%s, %s, %s: %+v", outcome, what, s.name, d.Verdict)
				expect.That(t, !c.Outcome.Failed() || d.Verdict.ExitCode != exitOK, "%s, %s, %s: exit code 0: %s", outcome, what, s.name, d.Verdict.Reason)
			}
		}
	}
}

// TestProbeNCCL runs the program against the simulated libraries: each fault has its exit code,
// what the program says of it, and no process left behind.
func TestProbeNCCL(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	cuda, nccl := drivers.Build(t, "cuda"), drivers.Build(t, "nccl")
	withLinks := "LD_LIBRARY_PATH=" + cuda + ":" + drivers.Build(t, "nvml")
	for _, c := range []struct {
		name, library string
		env           []string
		args          []string
		exit          int
		says          string
	}{
		{"healthy", nccl, nil, nil, 0, "as-configured ok"},
		{"wrong data by P2P", nccl, []string{"GPUDOCTOR_SIM_NCCL_FAULT=wrong-p2p@1"}, nil, 1, "p2p-off ok"},
		{"hang in init", nccl, []string{"GPUDOCTOR_SIM_NCCL_FAULT=hang-init@0"}, []string{"--arms", "p2p-off"}, 1, "as-configured hang"},
		{"a rank is killed", nccl, []string{"GPUDOCTOR_SIM_NCCL_FAULT=kill-all-reduce@1"}, nil, 3, "SIGKILL"},
		{"no GPU", nccl, []string{"GPUDOCTOR_SIM_GPUS=0"}, nil, 3, "offers no GPU"},
		{"no library", "", nil, nil, 3, "libnccl.so.2"},
		{"the driver hangs", nccl, []string{"GPUDOCTOR_SIM_CUDA_FAULT=hang-init"}, nil, 1, "did not return"},
		{"slow", nccl, []string{"GPUDOCTOR_SIM_NCCL_GBPS=27.6", roomForLarge, withLinks}, nil, 1, "as-configured slow"},
		{"faster than any link", nccl, []string{"GPUDOCTOR_SIM_NCCL_GBPS=4000", roomForLarge, withLinks}, nil, 3, "more than the 495 GB/s that the links can carry"},
		{"endless log", nccl, []string{"GPUDOCTOR_SIM_NCCL_FAULT=flood-stdout-init@0"}, []string{"--arms", "p2p-off"}, 1, "endlessly"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if expect.FewRows() && c.name != "healthy" && c.name != "wrong data by P2P" {
				t.Skip("not by day")
			}
			line := []string{"probe", "nccl", "--probe-timeout", "4s"}
			if c.library != "" {
				line = append(line, "--nccl", filepath.Join(c.library, "libnccl.so.2"))
			}
			mark, begun := runMarker+"="+rand.Text(), time.Now()
			said, code := simulatedHost(t, []string{cuda}, t.TempDir(), append([]string{"NCCL_NVLS_ENABLE=0", mark}, c.env...), append(line, c.args...)...)
			expect.That(t, code == c.exit && strings.Contains(strings.Join(strings.Fields(said), " "), c.says), "exit code %d, want %d; it does not say %q:\n%s", code, c.exit, c.says, said)
			expect.That(t, time.Since(begun) <= slack, "it took too long")
			expect.Len(t, 0, processes(mark), "processes were left behind")
		})
	}
}

// ncclHost skips a test where no simulated machine is, and builds the libraries of one.
func ncclHost(t *testing.T) []string {
	t.Helper()
	t.Parallel()
	expect.NotShort(t, "the other tests run the same side by side")
	needsNoGPU(t)
	return []string{drivers.Build(t, "cuda"), drivers.Build(t, "nvml"), drivers.Build(t, "nccl")}
}

// TestCollectivesReplay checks that a snapshot gives the collectives that were run when it was
// made, and the same findings.
func TestCollectivesReplay(t *testing.T) {
	libraries, file := ncclHost(t), filepath.Join(t.TempDir(), "host.txtar")
	for _, c := range []struct {
		line, says string
		exit       int
	}{
		{"snapshot --probe full --quiet -o " + file, "", exitOK},
		{"probe nccl --from " + file, "cumem-off ok", exitFindings},
		{"check --only collective-failed --from " + file, "Without cuMem they work", exitFindings},
	} {
		said, code := simulatedHost(t, libraries, t.TempDir(), []string{"NCCL_NVLS_ENABLE=0", "GPUDOCTOR_SIM_NCCL_FAULT=wrong-cumem@1"}, strings.Fields(c.line)...)
		expect.That(t, code == c.exit && strings.Contains(strings.Join(strings.Fields(said), " "), c.says), "%q: exit code %d; it does not say %q:\n%s", c.line, code, c.says, said)
	}
}

func simulatedHost(t *testing.T, libraries []string, home string, env []string, args ...string) (said string, code int) {
	t.Helper()
	if args[0] == "check" { // Processes that the kernel of this machine killed say nothing about simulated drivers.
		args = append(args, "--skip", "oom")
	}
	cmd := exec.CommandContext(t.Context(), "gpudoctor", args...)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GOCOVERDIR=" + os.Getenv("GOCOVERDIR"), "GPUDOCTOR_SIM_GPUS=2",
		"LD_LIBRARY_PATH=" + strings.Join(libraries, ":"),
	}, env...)
	out, _ := cmd.Output() // The exit code says how it went.
	return string(out), cmd.ProcessState.ExitCode()
}

// TestCollectiveCures checks that a plain check, and one with the full probe, finds a setting that breaks collectives
// or slows them down, tries the cure, and advises it first.
func TestCollectiveCures(t *testing.T) {
	libraries := ncclHost(t)
	const (
		cured  = "proven here (collectives of NCCL fail without it, and are correct with it"
		broken = "proven here (collectives of NCCL deliver wrong data without it, and are correct with it"
		faster = "proven here (all-reduce of NCCL at "
	)
	for _, c := range expect.SomeRows(5, []struct {
		name, conf            string
		settings              []string
		cause, command, proof string
		quick                 bool
	}{
		{"dead interface", "", []string{"NCCL_SOCKET_IFNAME=nosuch0"}, "NCCL_SOCKET_IFNAME=nosuch0 matches no", "unset NCCL_SOCKET_IFNAME", cured, true},
		{"dead interface in a file", "NCCL_SOCKET_IFNAME=nosuch0\n", []string{"NCCL_CROSS_NIC=1"}, "NCCL_SOCKET_IFNAME=nosuch0 matches no", "remove NCCL_SOCKET_IFNAME=nosuch0", cured, true},
		{"two culprits", "", []string{"GPUDOCTOR_SIM_NCCL_BREAKS=NCCL_X_A,NCCL_X_C", "NCCL_X_A=1", "NCCL_X_B=1", "NCCL_X_C=1"}, "Without NCCL_X_A, NCCL_X_C they work", "unset NCCL_X_A unset NCCL_X_C", cured, true},
		{"bogus algorithms", "", []string{"GPUDOCTOR_SIM_NCCL_BREAKS=NCCL_ALGO", "NCCL_ALGO=Rung"}, "Without NCCL_ALGO they work", "unset NCCL_ALGO", cured, true},
		{"P2P left off", "", []string{"NCCL_P2P_DISABLE=1", "NCCL_CROSS_NIC=1", "GPUDOCTOR_SIM_NCCL_FAULT=slow-shm=12"}, "disables peer access in NCCL, which works here", "unset NCCL_P2P_DISABLE", faster, true},
		{"broken P2P", "", []string{"GPUDOCTOR_SIM_NCCL_FAULT=wrong-p2p@1"}, "Without peer-to-peer access they work", "export NCCL_P2P_DISABLE=1", broken, false},
	}) {
		for _, mode := range []string{"quick", "full"} {
			if mode == "quick" && !c.quick || mode == "full" && c.quick && expect.FewRows() {
				continue
			}
			t.Run(c.name+", "+mode, func(t *testing.T) {
				t.Parallel()
				home := t.TempDir()
				expect.NoError(t, os.WriteFile(filepath.Join(home, ".nccl.conf"), []byte(c.conf), 0o600))
				out, code := simulatedHost(t, libraries, home, c.settings, "check", "--probe", mode)
				said := strings.Join(strings.Fields(out), " ")
				_, ranked, _ := strings.Cut(said, " 1 ")
				cause, command, proof := strings.Index(ranked, c.cause), strings.Index(ranked, c.command), strings.Index(ranked, c.proof)
				expect.That(t, code == exitFindings && cause >= 0 && command >= cause && proof >= command, "exit code %d; the cause is at %d, the command at %d, its proof at %d:\n%s", code, cause, command, proof, out)
				first, _, several := strings.Cut(out, "\n2  ")
				expect.That(t, !several || strings.Contains(strings.Join(strings.Fields(first), " "), c.proof), "it is not first:\n%s", out)
			})
		}
	}
}

// roomForLarge is what a simulated GPU takes for an all-reduce that shows the bandwidth of its links.
const roomForLarge = "GPUDOCTOR_SIM_MEMORY=83886080"

// TestSlowCollectives checks that a healthy machine gets no finding, that one whose all-reduce is far slower than the
// links gets one that names the way it takes, and that a setting that explains it is reported instead.
func TestSlowCollectives(t *testing.T) {
	libraries := ncclHost(t)
	for _, c := range expect.SomeRows(6, []struct {
		name      string
		env, args []string
		outcome   probe.Outcome
		cause     string // The rule of the first finding.
		under     bool   // collective-slow is a consequence of it.
		says      string
	}{
		{"by P2P", []string{"NCCL_CROSS_NIC=1", "GPUDOCTOR_SIM_NCCL_FAULT=slow-p2p=12"}, nil, probe.Slow, "collective-slow", false, "go via p2p"},
		{"healthy", []string{"NCCL_CROSS_NIC=1"}, nil, probe.OK, "", false, ""},
		{"through host memory", []string{"GPUDOCTOR_SIM_NCCL_NO_P2P=1", "NCCL_CROSS_NIC=1", "GPUDOCTOR_SIM_NCCL_FAULT=slow-shm=12"}, nil, probe.Slow, "collective-slow", false, "go via shm"},
		{"over sockets", []string{"GPUDOCTOR_SIM_NCCL_NO_P2P=1", "GPUDOCTOR_SIM_NCCL_NO_SHM=1", "NCCL_CROSS_NIC=1", "GPUDOCTOR_SIM_NCCL_FAULT=slow-net=70"}, nil, probe.Slow, "collective-slow", false, "go via net/Socket"},
		{"asked for", []string{"NCCL_P2P_DISABLE=1", "GPUDOCTOR_SIM_NCCL_FAULT=slow-shm=12"}, nil, probe.Slow, "env-misconfig", true, "disables peer access"},
		{"not judged", []string{"NCCL_CROSS_NIC=1", "GPUDOCTOR_SIM_NCCL_FAULT=slow-p2p=12"}, []string{"--skip", "collective-slow"}, probe.Slow, "", false, ""},
	}) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, code := simulatedHost(t, libraries, t.TempDir(), append(c.env, roomForLarge), append([]string{"check", "--format", "json", "--probe-timeout", calmTimeout.String(), "--deadline", "2m"}, c.args...)...)
			d := decoded[report.Document](t, out)
			expect.Must(t, d.Collectives != nil && d.Collectives.Outcome == c.outcome && d.Collectives.Arms[0].Outcome == c.outcome, "the collectives are %+v, want %s", d.Collectives, c.outcome)
			healthy := c.outcome == probe.OK
			if c.cause == "" {
				expect.That(t, (d.Verdict.State == report.Healthy) == healthy && len(d.Findings) == 0 && (code == exitOK) == healthy, "exit code %d, %+v, findings %+v", code, d.Verdict, d.Findings)
				return
			}
			first := d.Findings[0]
			under := slices.ContainsFunc(first.Explains, func(f rules.Finding) bool { return f.Rule == "collective-slow" })
			expect.That(t, code == exitFindings && first.Rule == c.cause && under == c.under && strings.Contains(first.Message, c.says) && first.Severity == rules.High, "exit code %d, first finding %+v, collective-slow under it: %v", code, first, under)
		})
	}
}

// TestOwnLog checks that a cause that the probe's library states is reported by the rule of its message, with the failure
// under it, and that the same warning of collectives that work, or of another arm, reports nothing.
func TestOwnLog(t *testing.T) {
	libraries := ncclHost(t)
	const says = "GPUDOCTOR_SIM_NCCL_SAYS="
	const full = says + "misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-AbC123 to 9637892 bytes, error: No space left on device (28)"
	for _, c := range expect.SomeRows(5, []struct {
		name  string
		env   []string
		probe string
		cause string
		code  int
	}{
		{"a full /dev/shm", []string{full, "GPUDOCTOR_SIM_NCCL_FAULT=error-init=2"}, "quick", "shm-too-small", exitFindings},
		{"what works", []string{full}, "quick", "", exitOK},
		{"another arm", []string{full, "GPUDOCTOR_SIM_NCCL_FAULT=fail-shm=2"}, "full", "collective-failed", exitUnproven},
		{"an unknown message", []string{says + "misc/widget.cc:12 NCCL WARN The widget is at odds with itself", "GPUDOCTOR_SIM_NCCL_FAULT=error-init=2"}, "quick", "collective-failed", exitFindings},
	}) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, code := simulatedHost(t, libraries, t.TempDir(), append(c.env, "NCCL_CROSS_NIC=1"), "check", "--probe", c.probe, "--format", "json")
			d := decoded[report.Document](t, out)
			if c.cause == "" {
				expect.That(t, len(d.Findings) == 0 && code == c.code, "exit code %d, findings %+v", code, d.Findings)
				return
			}
			expect.Must(t, code == c.code && len(d.Findings) != 0 && d.Findings[0].Rule == c.cause, "exit code %d, findings %+v", code, d.Findings)
			under := slices.ContainsFunc(d.Findings[0].Explains, func(f rules.Finding) bool { return f.Rule == "collective-failed" })
			expect.That(t, under == (c.cause != "collective-failed") && !slices.ContainsFunc(d.Findings, func(f rules.Finding) bool { return f.Rule == "job-failed" }), "findings %+v", d.Findings)
		})
	}
}
