//go:build linux && cgo

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// slurm is a Slurm with two nodes on this machine (fixtures/slurm/cluster), whose GPUs are
// those of the simulated drivers.
type slurm struct {
	folder string
	logs   string // Where the prolog keeps reports.
	nodes  string // How many there are; empty means two.
}

func needsSlurm(t *testing.T) {
	t.Helper()
	needsNoGPU(t)
	expect.NotByDay(t, "it runs a cluster")
	for _, program := range []string{"slurmctld", "slurmd", "munged"} {
		if _, err := exec.LookPath(program); err != nil {
			expect.LacksTool(t, program+" is not installed")
		}
	}
	if os.Getuid() != 0 {
		t.Skip("slurmd runs as root")
	}
}

// newSlurm prepares a cluster with the settings of docs/examples/slurm, or without a prolog.
// The faults are of the simulated CUDA driver, by node.
func newSlurm(t *testing.T, prolog bool, faults map[string]string) slurm {
	t.Helper()
	s := slurm{folder: t.TempDir(), logs: filepath.Join(t.TempDir(), "reports")}
	write := func(name, content string) {
		t.Helper()
		file := filepath.Join(s.folder, name)
		expect.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		if err := os.WriteFile(file, []byte(content), 0o755); err != nil { //nolint:gosec // They are programs.
			t.Fatal(err)
		}
	}
	var doctor strings.Builder
	doctor.WriteString("#!/bin/sh\n")
	for _, variable := range (simulated{}).environment(t) {
		if name, value, _ := strings.Cut(variable, "="); name == "LD_LIBRARY_PATH" || name == "GPUDOCTOR_SIM_GPUS" {
			fmt.Fprintf(&doctor, "export %s='%s'\n", name, value)
		}
	}
	for node, fault := range faults {
		fmt.Fprintf(&doctor, "[ \"$SLURMD_NODENAME\" != '%s' ] || %s\n", node, fault)
	}
	fmt.Fprintf(&doctor, "exec %s \"$@\"\n", expect.Value(exec.LookPath("gpudoctor"))(t))
	write("bin/gpudoctor", doctor.String())
	write("bin/torchrun", "#!/bin/sh\necho \"torchrun of $SLURMD_NODENAME: $*\"\n")
	if prolog {
		const examples = "../../docs/examples/slurm/"
		script := string(expect.Value(os.ReadFile(examples + "prolog"))(t))
		settings := string(expect.Value(os.ReadFile(examples + "gpudoctor.conf"))(t))
		for old, by := range map[string]string{"gpudoctor=/usr/bin/gpudoctor": "gpudoctor=" + s.folder + "/bin/gpudoctor", "logs=/var/log/gpudoctor": "logs=" + s.logs} {
			expect.Must(t, strings.Count(script, "\n"+old+"\n") == 1, "the prolog has no line %s", old)
			script = strings.Replace(script, old, by, 1)
		}
		write("prolog", script)
		write("extra.conf", strings.Replace(settings, "/etc/slurm/gpudoctor-prolog", s.folder+"/prolog", 1))
	}
	return s
}

func fault(name string) string { return "export GPUDOCTOR_SIM_CUDA_FAULT=" + name }

func (s slurm) run(t *testing.T, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, expect.Value(filepath.Abs("../../fixtures/slurm/cluster"))(t), s.folder, "bash", "-c", script)
	c.Dir = t.TempDir()
	c.Env = []string{"PATH=" + s.folder + "/bin:" + os.Getenv("PATH"), "LANG=C.UTF-8", "NODES=" + s.nodes}
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 20 * time.Second
	out, err := c.CombinedOutput()
	expect.Must(t, c.ProcessState != nil && ctx.Err() == nil, "%v, %v:\n%s", err, ctx.Err(), out)
	t.Logf("%s", out)
	return string(out)
}

func (s slurm) reports(t *testing.T) []string {
	t.Helper()
	return expect.Map(expect.Value(filepath.Glob(s.logs+"/*"))(t), filepath.Base)
}

// printNodes prints the nodes, and why they are drained, once no job ends any more.
const printNodes = "\nfor i in {1..100}; do sinfo --noheader --format=%T | grep -qE 'completing|draining|allocated' || break; sleep 0.1; done" +
	"\nsinfo --noheader --Node --format='%N %T'; sinfo --noheader --list-reasons --format='%N: %E'"

// TestSlurmProlog checks that the prolog lets jobs onto good nodes, and that Slurm drains a
// node of which it says that no job can run there, with the reason, and no other.
func TestSlurmProlog(t *testing.T) {
	expect.NotShort(t, "it starts a cluster")
	needsSlurm(t)
	for _, tt := range []struct{ name, faults, script, want, reports string }{ // Of want, lines in this order.
		{"good", "", "srun --nodes=2 --gpus-per-node=2 --label hostname | cut -d: -f1 | sort", "0|1|node1 idle|node2 idle", ""},
		{
			"transfers with wrong data", "node2: " + fault("zeros"),
			"srun --nodelist=node1 --gpus=2 echo good; srun --nodelist=node2 --gpus=2 echo bad; srun --nodelist=node1 --gpus=2 echo still",
			"good|srun: Prolog failure on node node2|still|node1 idle|node2 drained|node2: p2p-broken-platform (gpudoctor)", "job-2.err job-2.prom job-2.txt",
		},
		{"driver crashes", "node1: " + fault("crash-init"), "srun --nodelist=node1 --gpus=1 echo bad", "node1 drained|node2 idle|node1: driver-hang (gpudoctor)", "job-1.err job-1.prom job-1.txt"},
		{
			"a batch job waits for another node", "node1: " + fault("zeros"),
			"sbatch --parsable --gpus=2 --wrap=hostname; for i in {1..100}; do squeue --noheader --format=%r | grep -q BeginTime && break; sleep 0.1; done; squeue --noheader --format='%T %r'",
			"1|PENDING BeginTime|node1 drained|node2 idle|node1: p2p-broken-platform (gpudoctor)", "job-1.err job-1.prom job-1.txt",
		},
		{"without GPUs nothing is checked", "node1: " + fault("zeros"), "srun --nodelist=node1 echo good", "good|node1 idle|node2 idle", ""},
		{"not examined", "node1: unset LD_LIBRARY_PATH", "srun --nodelist=node1 --gpus=2 echo good", "good|node1 idle|node2 idle", "job-1.err job-1.prom job-1.txt"},
		{"an error", "node1: set -- --no-such-flag", "srun --nodelist=node1 --gpus=2 echo good", "good|node1 idle|node2 idle", "job-1.err"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			node, order, _ := strings.Cut(tt.faults, ": ")
			s := newSlurm(t, true, map[string]string{cmp.Or(node, "no node"): cmp.Or(order, "true")})
			rest := s.run(t, tt.script+printNodes)
			for line := range strings.SplitSeq(tt.want, "|") {
				_, after, ok := strings.Cut("\n"+rest, "\n"+line+"\n")
				expect.Must(t, ok, "no line %q, or not in this order", line)
				rest = after
			}
			expect.That(t, !strings.Contains(rest, ": "), "also drained: %s", rest)
			expect.Equal(t, tt.reports, strings.Join(s.reports(t), " "), "reports")
		})
	}
}

// TestSlurmFiles checks that the prolog names rules that exist, and that the batch script
// passes gpudoctor's own judgement.
func TestSlurmFiles(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	t.Parallel()
	_, list, _ := strings.Cut(string(expect.Value(os.ReadFile("../../docs/examples/slurm/prolog"))(t)), "\nunfit=")
	list, _, _ = strings.Cut(list, "\n")
	for folder, line := range map[string]string{
		".":                         "gpudoctor check --from example:h200x2 --only '" + list + "'",
		"../../docs/examples/slurm": "gpudoctor check --profile launch --strict --from train.sbatch",
	} {
		out, code := runIn(t, folder, line)
		expect.That(t, code == exitOK, "%s: exit code %d:\n%s", line, code, out)
	}
}

// gitLabJob is a job of docs/examples/gitlab/gitlab-ci.yml, as far as it is run here.
type gitLabJob struct {
	Extends      string
	Variables    map[string]string
	BeforeScript []string `yaml:"before_script"`
	Script       []string
	Artifacts    struct {
		Paths   []string
		Reports map[string]string
	}
	AllowFailure struct {
		ExitCodes int `yaml:"exit_codes"`
	} `yaml:"allow_failure"`
}

// TestGitLab runs the jobs of the example with a release from a folder, as GitLab's runner does. The reports that GitLab is told
// of are there, and exit code 3 is the one that it is to allow. Another program is not run.
func TestGitLab(t *testing.T) {
	t.Parallel()
	var jobs struct {
		Files   gitLabJob `yaml:"gpudoctor files"`
		Machine gitLabJob `yaml:"gpudoctor machine"`
		Base    gitLabJob `yaml:".gpudoctor"`
	}
	expect.NoError(t, yaml.Unmarshal(expect.Value(os.ReadFile("../../docs/examples/gitlab/gitlab-ci.yml"))(t), &jobs))
	base := jobs.Base
	expect.That(t, base.Variables["GPUDOCTOR_VERSION"] == version && base.AllowFailure.ExitCodes == exitUnproven, "%+v", base)
	expect.NotShort(t, "the scripts run the program one at a time")
	needsNoGPU(t)
	for _, tt := range []struct {
		name, launch string
		job          gitLabJob
		notes        string // The content of a further file.
		program      string // The content of the program; empty for that of the release.
		code, issues int
	}{
		{"healthy", "job-healthy", jobs.Files, "", "", exitOK, 0},
		{"findings", "pod-hides-gpus", jobs.Files, "", "", exitFindings, 1},
		{"not examined", "job-healthy", jobs.Files, "The cluster has eight nodes.\n", "", exitUnproven, 2},
		{"other program", "job-healthy", jobs.Files, "", "#!/bin/sh\ntouch hacked\n", 1, -1},
		{"machine without GPUs", "job-healthy", jobs.Machine, "", "", exitUnproven, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			folder, release := t.TempDir(), writeRelease(t)
			extractLaunch(t, tt.launch, filepath.Join(folder, "deploy"))
			if tt.notes != "" {
				writeTestFile(t, filepath.Join(folder, "deploy", "notes.txt"), []byte(tt.notes))
			}
			if tt.program != "" {
				writeTestFile(t, filepath.Join(release, base.Variables["GPUDOCTOR_FILE"]), []byte(tt.program))
			}
			set := maps.Clone(base.Variables)
			set["GPUDOCTOR_URL"] = "file://" + release
			c := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", "-c", strings.Join(slices.Concat(base.BeforeScript, tt.job.Script), "\n"))
			c.Dir, c.Env = folder, os.Environ()
			for name, value := range set {
				c.Env = append(c.Env, name+"="+os.Expand(value, func(other string) string { return set[other] }))
			}
			out, code := together(t, c)
			_, err := os.Stat(filepath.Join(folder, "hacked"))
			expect.Must(t, tt.job.Extends == ".gpudoctor" && code == tt.code && err != nil, "exit code %d, want %d:\n%s", code, tt.code, out)
			if tt.issues < 0 {
				return
			}
			for _, name := range append(slices.Collect(maps.Values(base.Artifacts.Reports)), base.Artifacts.Paths...) {
				info, err := os.Stat(filepath.Join(folder, name))
				expect.That(t, err == nil && info.Size() != 0, "%s: %v", name, err)
			}
			issues := decoded[[]struct{ Location struct{ Path string } }](t, expect.Value(os.ReadFile(filepath.Join(folder, base.Artifacts.Reports["codequality"])))(t))
			expect.Must(t, len(issues) == tt.issues, "%d issues, want %d", len(issues), tt.issues)
			for _, i := range issues {
				expect.That(t, code != exitFindings || i.Location.Path == "deploy/pod.yaml", "an issue is in %q", i.Location.Path)
			}
		})
	}
}

// TestSlurmBatch runs the example of a batch job: there is a report of each node, and the
// training starts only if no node has a finding.
func TestSlurmBatch(t *testing.T) {
	expect.NotShort(t, "it starts a cluster")
	needsSlurm(t)
	// Both nodes have the name of this host, so files are named after their numbers.
	example := strings.Replace(string(expect.Value(os.ReadFile("../../docs/examples/slurm/train.sbatch"))(t)), "%j-%N.txt", "%j-node%n.txt", 1)
	for name, tt := range map[string]struct {
		faults  map[string]string
		code    int
		started int
	}{
		"good": {nil, exitOK, 2},
		"bad":  {map[string]string{"node2": fault("zeros")}, exitFindings, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSlurm(t, false, tt.faults)
			expect.NoError(t, os.WriteFile(filepath.Join(s.folder, "train.sbatch"), []byte(example), 0o600))
			settings := fmt.Sprintf("echo 'skip: [%s]' >.gpudoctor.yaml\n", strings.Join(surroundings, ", "))
			out := s.run(t, settings+"sbatch --gpus-per-node=2 "+s.folder+"/train.sbatch; for i in {1..300}; do squeue --noheader | grep -q . || break; sleep 0.1; done; "+
				"scontrol show job 1 | grep -o ' ExitCode=.*'; head -v -n 100 gpudoctor-1-*.txt slurm-1.out")
			expect.That(t, strings.Contains(out, fmt.Sprintf(" ExitCode=%d:0\n", tt.code)) && strings.Count(out, "torchrun of node") == tt.started, "the exit code or the number of ranks is wrong")
			for i, node := range []string{"node1", "node2"} {
				_, report, ok := strings.Cut(out, fmt.Sprintf("==> gpudoctor-1-node%d.txt <==\n", i))
				report, _, _ = strings.Cut(report, "==> ")
				verdict := "Healthy."
				if tt.faults[node] != "" {
					verdict = "exit 1:"
				}
				expect.That(t, ok && strings.Contains(report, "2 x NVIDIA H200") && strings.Contains(report, "\n"+verdict), "the report of %s:\n%s", node, report)
			}
		})
	}
}

// TestSlurmFleet runs the example of a job that checks its nodes and compares them on eight nodes: one whose transfers are wrong, one
// whose driver hangs and one whose check fails are named, and end no other.
func TestSlurmFleet(t *testing.T) {
	expect.NotShort(t, "it starts a cluster")
	needsSlurm(t)
	example := string(expect.Value(os.ReadFile("../../docs/examples/slurm/fleet.sbatch"))(t))
	// All nodes have the name of this host: their reports are named after their numbers, and do not show it.
	for old, by := range map[string]string{
		"--nodes=2": "--nodes=8", "%N.json": "node%n.json", "--probe full --format json": "--format json --redact", `"$SLURM_JOB_NODELIST"`: "'node[0-7]'",
	} {
		expect.Must(t, strings.Count(example, old) == 1, "the script has no %s", old)
		example = strings.Replace(example, old, by, 1)
	}
	s := newSlurm(t, false, map[string]string{"node2": fault("zeros"), "node4": fault("hang-init"), "node6": "exit 2"})
	s.nodes = "8"
	expect.NoError(t, os.WriteFile(filepath.Join(s.folder, "fleet.sbatch"), []byte(example), 0o600))
	settings := fmt.Sprintf("echo 'skip: [%s]' >.gpudoctor.yaml\n", strings.Join(surroundings, ", "))
	out := s.run(t, settings+"sbatch --gpus-per-node=2 "+s.folder+"/fleet.sbatch; for i in {1..1500}; do squeue --noheader | grep -q . || break; sleep 0.1; done; cat slurm-1.out")
	said := strings.Join(strings.Fields(out), " ")
	for _, says := range []string{"8 nodes: 2 with findings, 5 healthy, 1 without a report", "on 1 of 7 nodes node1 ", "on 1 of 7 nodes node3 ", "No report node5"} {
		expect.That(t, strings.Contains(said, says), "it does not say %q", says)
	}
}
