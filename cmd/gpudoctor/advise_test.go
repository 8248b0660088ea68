package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
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
