package fleet

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/nodes"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestNetwork checks that what the nodes of a job did is shown, and is part of the fleet: its exit code, and the figures of its nodes.
func TestNetwork(t *testing.T) {
	t.Parallel()
	fast, slow, us := 12.25, 3.0, 41.5
	job := &nodes.Report{
		Schema: nodes.Schema, Engine: "Slurm", Outcome: probe.Error, Untried: 1,
		Nodes: []nodes.Peer{
			{Name: "n1", State: nodes.StateOK, GPUs: []string{"a"}},
			{Name: "n2", State: nodes.StateOK, GPUs: []string{"a"}},
			{Name: "n3\x1b[2J", State: nodes.StateOK, GPUs: []string{"a"}},
			{Name: "n4", State: nodes.StateAbsent, Reason: "it did not come"},
		},
		Together: &nodes.Run{Outcome: probe.Hang, Reason: "did not return", Warnings: []string{"Connect failed"}},
		Pairs: []nodes.Run{
			{Nodes: []string{"n1", "n2"}, Outcome: probe.OK, BusGBps: &fast, Microseconds: &us},
			{Nodes: []string{"n1", "n3\x1b[2J"}, Outcome: probe.Hang},
			{Nodes: []string{"n2", "n3\x1b[2J"}, Outcome: probe.Slow, BusGBps: &slow},
		},
		Blames:  []nodes.Blame{{Kind: nodes.AtRail, Nodes: []string{"n3\x1b[2J"}, Rails: []string{"mlx5_1:1"}, Because: []string{"it fails alone"}}},
		Differs: []nodes.Difference{{Name: "NCCL_ALGO", Others: map[string]string{"n2": "Ring"}}},
	}
	var text bytes.Buffer
	expect.NoError(t, WriteNetwork(&text, job))
	said := strings.Join(strings.Fields(text.String()), " ")
	for _, want := range []string{
		"4 nodes (Slurm), 3 well by themselves, with 3 GPUs; pairs: 1 hang, 1 ok, 1 slow", "all together: hang, did not return; NCCL: Connect failed", "n1 - 12.2 HANG -", "n2 12.2 - 3 slow -",
		"its NIC mlx5_1:1, or the cable of it, fails", "- it fails alone", "Not tested n4 (it did not come) 1 pair,", "NCCL_ALGO: Ring on n2, and not set on the others",
	} {
		expect.That(t, strings.Contains(said, want), "it does not say %q:\n%s", want, text.String())
	}
	expect.That(t, !strings.ContainsRune(text.String(), 0x1b), "it is not escaped")
	raw := expect.Value(json.Marshal(job))(t)
	folder := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "job.json"), raw, 0o600))
	r := expect.Value(Read(t.Context(), []string{folder, "-"}, strings.NewReader(reportOf("n1", "570")+reportOf("n2", "570")), nil))(t)
	f := Fold(r, nil, "test")
	expect.That(t, len(f.Nodes) == 2 && len(f.Problems) == 0 && f.ExitCode == 1 && f.Nodes[0].Figures["all-reduce with another node"].Value == fast, "%+v", f)
	text.Reset()
	expect.NoError(t, f.Write(&text, "text", report.Style{}))
	expect.That(t, strings.Contains(text.String(), "Between nodes\n"), "%s", text.String())
	for outcome, code := range map[probe.Outcome]int{probe.OK: 0, probe.Unknown: 3, probe.Slow: 1, probe.Hang: 1, probe.Corrupt: 1, probe.Error: 1} {
		expect.Equal(t, code, NetworkExitCode(&nodes.Report{Outcome: outcome}), "%s", outcome)
	}
}
