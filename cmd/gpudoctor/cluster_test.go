package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

const clusterExamples = "../../docs/examples/"

// writeReports writes the reports of 32 like nodes, one of which has another NCCL and is slower.
func writeReports(t *testing.T, folder string) {
	t.Helper()
	d := expect.Value(diagnose(t.Context(), requestFor(rules.Training, examplePrefix+"h200x2")))(t)
	d.AddTraits()
	expect.NoError(t, os.MkdirAll(folder, 0o750))
	transfers := d.Transfers.Transfers
	for i := range 32 {
		own := *d
		own.Host.Hostname = fmt.Sprintf("r%02d-n%02d", 1+i/8, 1+i%8)
		measured := *d.Transfers
		measured.Transfers = slices.Clone(transfers)
		speed := 1 + 0.003*math.Sin(float64(i*i))
		if i == 10 {
			speed *= 0.9
			own.Traits = map[string]string{"NCCL": "2.26.2"}
			for trait, value := range d.Traits {
				if trait != "NCCL" {
					own.Traits[trait] = value
				}
			}
		}
		for j, transfer := range measured.Transfers {
			if transfer.GBps != nil {
				rate := *transfer.GBps * speed
				measured.Transfers[j].GBps = &rate
			}
		}
		own.Transfers = &measured
		raw := expect.Value(json.Marshal(own))(t)
		expect.NoError(t, os.WriteFile(filepath.Join(folder, own.Host.Hostname+".json"), raw, 0o600))
	}
}

// TestEpilog runs the example of an epilog with stand-ins: it logs a node only if gpudoctor finds a fault, drains it only
// where that is switched on, and never fails.
func TestEpilog(t *testing.T) {
	t.Parallel()
	const metric = `gpudoctor_finding{rule="gpu-fault",severity="critical",confidence="confirmed",subject="x"} 1`
	text := string(expect.Value(os.ReadFile(clusterExamples + "slurm/epilog"))(t))
	for _, tt := range []struct {
		name, drain, gpus string
		code              int
		want              string
	}{
		{"fit", "yes", "0", exitOK, ""},
		{"unfit", "no", "0", exitFindings, "logger -t gpudoctor -p daemon.err job 7 left the node unfit: gpu-fault\n"},
		{"unfit, to drain", "yes", "0", exitFindings, "logger -t gpudoctor -p daemon.err job 7 left the node unfit: gpu-fault\nscontrol update nodename=n1 state=drain reason=gpu-fault (gpudoctor)\n"},
		{"not examined", "yes", "0", exitUnproven, ""},
		{"an error", "yes", "0", exitError, ""},
		{"no GPUs", "yes", "", exitFindings, ""},
	} {
		folder := t.TempDir()
		for name, script := range map[string]string{
			"gpudoctor": fmt.Sprintf("echo '%s'\nexit %d", metric, tt.code),
			"logger":    `echo "logger $*" >>"$0.said"`,
			"scontrol":  `echo "scontrol $*" >>"${0%scontrol}logger.said"`,
		} {
			expect.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700)) //nolint:gosec // It is a program.
		}
		script := text
		for old, by := range map[string]string{"PATH=/usr/sbin:": "PATH=" + folder + ":/usr/sbin:", "gpudoctor=/usr/bin/": "gpudoctor=" + folder + "/", "drain=no": "drain=" + tt.drain} {
			expect.Must(t, strings.Count(script, "\n"+old) == 1, "the epilog has no line %s", old)
			script = strings.Replace(script, "\n"+old, "\n"+by, 1)
		}
		c := exec.CommandContext(t.Context(), "bash", "-c", script)
		c.Env = []string{"PATH=/bin", "SLURM_JOB_GPUS=" + tt.gpus, "SLURM_JOB_ID=7", "SLURMD_NODENAME=n1"}
		out, err := c.CombinedOutput()
		expect.That(t, err == nil && len(out) == 0, "%s: %v %s", tt.name, err, out)
		said, _ := os.ReadFile(filepath.Join(folder, "logger.said"))
		expect.Equal(t, tt.want, string(said), "%s", tt.name)
	}
}

// TestDashboard checks that each metric of the dashboard is one that check or fleet writes, with the labels and values that it
// asks for, that it shows each metric of fleet but the exit code, and that no panel lies on another.
func TestDashboard(t *testing.T) {
	t.Parallel()
	code, written, _ := inProcess("check", "--from", "example:model-2x-zeros", "--format", "prometheus")
	expect.Equal(t, exitFindings, code, "exit code")
	reports := t.TempDir()
	writeReports(t, reports)
	_, compared, _ := inProcess("fleet", reports, "--expect", "r99-n99", "--format", "prometheus")
	written += compared
	var d struct {
		Panels []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Definition string }
		}
	}
	expect.NoError(t, json.Unmarshal(expect.Value(os.ReadFile(clusterExamples+"prometheus/dashboard.json"))(t), &d))
	expressions := expect.Map(d.Templating.List, func(v struct{ Definition string }) string { return v.Definition })
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		expect.That(t, !ids[p.ID] && (len(p.Targets) > 0) == (p.Type != "row"), "%s: its id is taken, or it shows nothing", p.Title)
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				expect.That(t, x < 24 && taken[[2]int{x, y}] == "", "%s lies on %s, or outside", p.Title, taken[[2]int{x, y}])
				taken[[2]int{x, y}] = p.Title
			}
		}
		expressions = append(expressions, expect.Map(p.Targets, func(target struct{ Expr string }) string { return target.Expr })...)
	}
	metric, label := regexp.MustCompile(`gpudoctor_\w+`), regexp.MustCompile(`by \((\w+)\)|(\w+="\w+")`)
	for _, e := range expressions {
		name := metric.FindString(e)
		if name == "" {
			continue // That of the data source.
		}
		samples := strings.Join(regexp.MustCompile(`(?m)^`+name+`(\{.*\})? -?\d`).FindAllString(written, -1), "\n")
		expect.That(t, samples != "", "%s: neither check nor fleet writes %s", e, name)
		for _, m := range label.FindAllStringSubmatch(e, -1) {
			said := m[2]
			if said == "" {
				said = m[1] + `="`
			}
			if m[1] != "instance" { // Prometheus adds it.
				expect.That(t, strings.Contains(samples, said), "%s: no sample with %s in\n%s", e, said, samples)
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (gpudoctor_fleet_\w+)`).FindAllStringSubmatch(compared, -1) {
		shown := slices.ContainsFunc(expressions, func(e string) bool { return metric.FindString(e) == m[1] })
		expect.That(t, shown || m[1] == "gpudoctor_fleet_exit_code", "no panel shows %s", m[1])
	}
	expect.That(t, len(expressions) > 13, "only %d expressions", len(expressions))
}

// TestExampleScripts checks the scripts and units with the linters of their languages.
func TestExampleScripts(t *testing.T) {
	t.Parallel()
	for linter, line := range map[string]string{
		"shellcheck":      "slurm/prolog slurm/epilog slurm/train.sbatch slurm/fleet.sbatch",
		"systemd-analyze": "verify prometheus/gpudoctor.service prometheus/gpudoctor.timer",
	} {
		program, err := exec.LookPath(linter)
		if err != nil {
			expect.LacksTool(t, linter+" is not installed")
		}
		c := exec.CommandContext(t.Context(), program, strings.Fields(line)...)
		c.Dir = clusterExamples
		out, _ := c.CombinedOutput()
		for said := range strings.Lines(string(out)) {
			expect.That(t, strings.Contains(said, "/usr/bin/gpudoctor is not executable"), "%s: %s", linter, said)
		}
	}
}

// shownOutput is what docs/cluster.md shows below a command.
var shownOutput = regexp.MustCompile("(?ms)^(\\$ [^\n]*\n).*?^```$")

// TestClusterCommands runs the commands of docs/cluster.md in order, with stand-ins for what starts programs on nodes:
// each start leaves the reports of its nodes, which fleet then reads.
func TestClusterCommands(t *testing.T) {
	expect.NotShort(t, "TestScripts runs the same commands")
	expect.NotByDay(t, "it starts some thirty programs, one after the other")
	t.Parallel()
	folder, bin := t.TempDir(), t.TempDir()
	for name, script := range map[string]string{
		"srun mpirun pdsh ansible": `for last; do :; done; for NODE in n1 n2; do export NODE; sh -c "${last#cd /shared && }" || :; done`,
		"hostname":                 `echo "$NODE"`,
		"kubectl":                  `if [ "$1" = logs ]; then cat kept/*; else test -f "$3"; fi`,
	} {
		for one := range strings.FieldsSeq(name) {
			expect.NoError(t, os.WriteFile(filepath.Join(bin, one), []byte("#!/bin/sh\n"+script+"\n"), 0o700)) //nolint:gosec // It is a program.
		}
	}
	writeReports(t, filepath.Join(folder, "kept"))
	expect.NoError(t, os.CopyFS(folder, os.DirFS(clusterExamples+"kubernetes")))
	page := string(expect.Value(os.ReadFile("../../docs/cluster.md"))(t))
	tried := 0
	command := regexp.MustCompile(`(?m)^(?:    |\$ )(.*)$`)
	for _, m := range command.FindAllStringSubmatch(shownOutput.ReplaceAllString(page, "$1"), -1) {
		tried++
		starts := strings.Contains(m[1], "-o reports/")
		reports := filepath.Join(folder, "reports")
		if starts {
			expect.NoError(t, os.RemoveAll(reports))
			expect.NoError(t, os.Mkdir(reports, 0o750))
		}
		out, code := runIn(t, folder, "PATH="+bin+":$PATH; "+m[1])
		expect.That(t, code != exitError && code < 100, "%s: exit code %d:\n%s", m[1], code, out)
		expect.That(t, !strings.Contains(m[1], "fleet -") || strings.Contains(out, "32 nodes") && strings.Contains(out, "r02-n03"), "%s:\n%s", m[1], out)
		if starts {
			written := expect.Value(os.ReadDir(reports))(t)
			expect.Must(t, len(written) == 2 && written[0].Name() == "n1.json", "%s wrote %v:\n%s", m[1], written, out)
		}
	}
	expect.Equal(t, 8, tried, "commands")
}

// problemDetector is the configuration of a custom plugin of node-problem-detector
// (pkg/custompluginmonitor/types of kubernetes/node-problem-detector), whose module the proxy lacks.
type problemDetector struct {
	Plugin       string
	PluginConfig struct {
		InvokeInterval string `json:"invoke_interval"`
		Timeout        string
		MaxOutput      int `json:"max_output_length"`
		Concurrency    int
	}
	Source     string
	Conditions []struct{ Type, Reason, Message string }
	Rules      []struct {
		Type, Condition, Reason, Path, Timeout string
		Args                                   []string
	}
}

// TestProblemDetector checks the configuration as node-problem-detector does, and that its command works: a machine with a
// fault ends with 1, which is a problem there, a healthy one with 0.
func TestProblemDetector(t *testing.T) {
	t.Parallel()
	var c problemDetector
	decoder := json.NewDecoder(bytes.NewReader(expect.Value(os.ReadFile(clusterExamples + "kubernetes/node-problem-detector.json"))(t)))
	decoder.DisallowUnknownFields()
	expect.NoError(t, decoder.Decode(&c))
	expect.Must(t, c.Plugin == "custom" && len(c.Rules) == 1 && len(c.Conditions) == 1, "%+v", c)
	rule := c.Rules[0]
	expect.That(t, rule.Type == "permanent" && rule.Condition == c.Conditions[0].Type, "%+v", rule)
	whole, own := expect.Value(time.ParseDuration(c.PluginConfig.Timeout))(t), expect.Value(time.ParseDuration(rule.Timeout))(t)
	expect.That(t, own <= whole && whole > 30*time.Second && expect.Value(time.ParseDuration(c.PluginConfig.InvokeInterval))(t) > whole, "timeouts %v and %v", own, whole)
	for machine, want := range map[string]int{"h200x2": exitOK, "model-2x-zeros": exitFindings} {
		code, stdout, stderr := inProcess(append(rule.Args, "--from", examplePrefix+machine)...)
		expect.That(t, code == want && (code == exitOK || stdout != ""), "%s: exit code %d, want %d: %s %s", machine, code, want, stdout, stderr)
	}
}
