package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/cmd/internal/patch"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestAdviceIsAccepted checks that what advise writes for a machine is right for gpudoctor itself:
// check --profile launch finds nothing wrong with it on that machine, but for faults of the
// machine. Without the size of /dev/shm it does.
func TestAdviceIsAccepted(t *testing.T) {
	expect.NotShort(t, "it starts some hundred programs, one after the other; the run without -short has it")
	t.Parallel()
	extension := map[string]string{"compose": ".compose.yaml", "kubernetes": ".pod.yaml", "slurm": ".sbatch", "docker": ".sh", "torchrun": ".sh", "mpi": ".sh"}
	for _, example := range expect.SomeRows(12, fixtures.Examples()) {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for target, end := range extension {
				file := filepath.Join(dir, target+end)
				out, code := runIn(t, dir, "gpudoctor advise --from "+examplePrefix+example+" --for "+target+" -o "+file)
				expect.Must(t, code == exitOK, "%s: exit %d\n%s", target, code, out)
				for _, fault := range launchFaults(t, example, file) {
					t.Errorf("%s: %s\n%s", target, fault, expect.Value(os.ReadFile(file))(t))
				}
				if target != "docker" {
					continue
				}
				expect.NoError(t, os.WriteFile(file, bytes.ReplaceAll(expect.Value(os.ReadFile(file))(t), []byte("--shm-size=16g"), nil), 0o600))
				expect.That(t, len(launchFaults(t, example, file)) != 0, "without the size of /dev/shm it is accepted as well:\n%s", expect.Value(os.ReadFile(file))(t))
			}
		})
	}
}

// launchFaults are the findings about a file of a job for the machine of an example.
func launchFaults(t *testing.T, example, file string) []string {
	t.Helper()
	judged := file + ".json"
	out, code := runIn(t, filepath.Dir(file), "gpudoctor check --profile "+string(rules.Launch)+" --target "+examplePrefix+example+" --from "+file+" -o "+judged)
	expect.Must(t, code != exitError, "%s\n%s", out, expect.Value(os.ReadFile(file))(t))
	d := decoded[report.Document](t, expect.Value(os.ReadFile(judged))(t))
	var faults []string
	for _, f := range d.Findings {
		for _, e := range f.Evidence {
			if strings.HasPrefix(e.Fact, "launches") {
				faults = append(faults, string(f.Severity)+" "+f.Rule+": "+f.Message)
			}
		}
	}
	return faults
}

// machineOf is the diagnosis of an example, and what a job needs there.
func machineOf(t *testing.T, name string) (*report.Document, *plan.Plan) {
	t.Helper()
	d := expect.Value(diagnose(t.Context(), request{source: source{from: []string{name}}, profile: rules.Training, failOn: report.Threshold(rules.High)}))(t)
	return d, expect.Value(planOf(d, ""))(t)
}

// TestAdviseDiff checks of each launch file and a machine that the file with its patch has
// what a job there needs: nothing is patched again, no finding of medium severity or above is
// new, and what the patch is about is found no more.
func TestAdviseDiff(t *testing.T) {
	slowWithRace(t)
	t.Parallel()
	texts := map[string]string{}
	for _, pattern := range []string{"../../fixtures/launches/*.txtar", "../internal/patch/testdata/*.txtar"} {
		for _, file := range expect.Value(filepath.Glob(pattern))(t) {
			for _, f := range expect.Value(txtar.ParseFile(file))(t).Files {
				texts[strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+filepath.Base(f.Name)] = string(f.Data)
			}
		}
	}
	examples := []string{"example:model-8x-pcie", "example:h200x2", "example:model-mi300x8"}
	type machine struct {
		d     *report.Document
		needs *plan.Plan
	}
	var machines []machine
	for _, e := range examples {
		d, needs := machineOf(t, e)
		machines = append(machines, machine{d, needs})
	}
	var mu sync.Mutex
	patched := 0
	t.Run("files", func(t *testing.T) {
		for i, name := range slices.Sorted(maps.Keys(texts)) {
			if expect.FewRows() && i%8 > 0 {
				continue
			}
			m := machines[i%len(machines)]
			t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
				t.Parallel()
				if fits(t, name, texts[name], m.d, m.needs) {
					mu.Lock()
					patched++
					mu.Unlock()
				}
			})
		}
	})
	expect.That(t, patched >= 5, "%d of %d files were patched", patched, len(texts))
}

// fits patches a file, and checks that it fits then. It reports whether there was something to patch.
func fits(t *testing.T, name, text string, d *report.Document, needs *plan.Plan) bool {
	t.Helper()
	file := filepath.Join(t.TempDir(), filepath.Base(name))
	expect.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	ask := func(text string) patch.Request {
		p := patching{name: file, text: text}
		p.judge(request{failOn: report.Threshold(rules.High)}, d)
		return patch.Request{Name: file, Text: text, Wants: expect.Value(p.wanted(t.Context(), needs))(t), GPUs: len(needs.Ranks), Vendor: needs.Vendor}
	}
	made, err := patch.Make(t.Context(), ask(text))
	if err != nil {
		expect.That(t, filepath.Ext(name) != ".yaml", "%s: %v", name, err)
		return false
	}
	p := patching{name: file}
	p.judge(request{failOn: report.Threshold(rules.High)}, d)
	before := expect.Value(p.leftOver(t.Context(), text))(t)
	for _, f := range expect.Value(p.leftOver(t.Context(), made.Text))(t) {
		alike := func(o rules.Finding) bool { return o.Rule == f.Rule && o.Subject == f.Subject }
		// How many ranks have no GPU shows when the file says how many GPUs it gets.
		expect.That(t, slices.ContainsFunc(before, alike) || f.Cause == "gpu-visibility", "%s: new: %s\n%s", name, f.Message, made.Text)
		for _, c := range made.Changes {
			about := f.Cause == "shm-too-small" && strings.HasPrefix(c.What, "--shm-size") ||
				f.Cause == "memlock-limit" && (strings.Contains(c.What, "memlock") || strings.Contains(c.What, "IPC_LOCK")) ||
				c.What == "remove "+f.Subject
			expect.That(t, !about || len(made.Manual) != 0, "%s: still: %s\n%s", name, f.Message, made.Text)
		}
	}
	again, err := patch.Make(t.Context(), ask(made.Text))
	expect.That(t, err == nil && again.Text == made.Text, "%s: it is patched again: %v\n%s\n---\n%s", name, err, made.Text, again.Text)
	return len(made.Changes) > 0
}
