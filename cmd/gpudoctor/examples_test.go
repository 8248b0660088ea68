package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestExamples holds what is said of each recorded machine, and that it is
// said in the same words, but for the times, when it is asked again.
func TestExamples(t *testing.T) {
	slowWithRace(t)
	type want struct {
		Exit     int
		Findings []string
		Remedy   string
	}
	// The variables were really set on the lent machines; all else about them
	// is healthy.
	lent := want{0, []string{"env-misconfig low NCCL_NVLS_ENABLE", "env-misconfig info NVSHMEM_DISABLE_NVLS", "env-misconfig info TORCH_SYMM_MEM_DISABLE_MULTICAST"}, "unset-env"}
	wants := map[string]want{
		"h200x2":            lent,
		"h200x4":            lent,
		"model-8x-pcie":     {0, nil, ""},
		"model-mi300x8":     {0, nil, ""},
		"model-mi250x4":     {0, nil, ""},
		"model-r9700x4":     {0, nil, ""},
		"model-8x-pcie-acs": {1, []string{"acs-redirect high 0000:17:00.0 and 6 more"}, "disable-acs"},
		"model-2x-zeros": {1, []string{
			"acs-redirect critical 0000:40:01.0, 0000:c0:01.0", "iommu-translation critical 0000:41:00.0, 0000:c1:00.0",
		}, "nccl-p2p-disable"},
	}
	for _, name := range fixtures.Examples() {
		t.Run(name, func(t *testing.T) {
			request := request{source: source{from: []string{"example:" + name}}, profile: rules.Training, failOn: report.Threshold(rules.High)}
			d, err := diagnose(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			got := want{Exit: d.Verdict.ExitCode}
			for _, f := range d.Findings {
				got.Findings = append(got.Findings, fmt.Sprintf("%s %s %s", f.Rule, f.Severity, f.Subject))
			}
			if len(d.Advice) > 0 {
				got.Remedy = d.Advice[0].ID()
			}
			if diff := cmp.Diff(wants[name], got); diff != "" {
				t.Errorf("said (-want +got):\n%s", diff)
			}
			again, err := diagnose(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if first, second := withoutTimes(t, d), withoutTimes(t, again); first != second {
				t.Errorf("said otherwise the second time:\n%s", cmp.Diff(first, second))
			}
		})
	}
}

func withoutTimes(t *testing.T, d *report.Document) string {
	t.Helper()
	copied := *d
	copied.Timing = report.Timing{}
	b, err := json.Marshal(copied)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestExamplesJudged holds which rules could not be judged on a recorded machine
// that is healthy: that rules ask for what they need costs it nothing.
func TestExamplesJudged(t *testing.T) {
	type want struct {
		State   report.State
		Skipped []string
		Passed  int // At least.
	}
	// The links of a virtual machine are not the real ones, and the recordings are older than the section storage.
	old := []string{"gds-compat-mode", "nvme-failed", "pcie-link-degraded", "raid-degraded"}
	for name, w := range map[string]want{
		"h200x2":        {report.Healthy, old, 17},
		"h200x4":        {report.Healthy, old, 17},
		"model-8x-pcie": {report.Healthy, nil, 17},
		"model-mi300x8": {report.Healthy, nil, 20},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := diagnose(t.Context(), request{source: source{from: []string{"example:" + name}}, profile: rules.Training, failOn: report.Threshold(rules.High)})
			if err != nil {
				t.Fatal(err)
			}
			got := want{State: d.Verdict.State}
			for _, s := range d.Skipped {
				got.Skipped = append(got.Skipped, s.Rule)
			}
			got.Passed = min(w.Passed, len(d.Passed))
			if diff := cmp.Diff(w, got); diff != "" {
				t.Errorf("judged (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLogOfOneLine holds that a log of one line lets no rule pass.
func TestLogOfOneLine(t *testing.T) {
	log := filepath.Join(t.TempDir(), "one.log")
	if err := os.WriteFile(log, []byte("node1:1234:1234 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := diagnose(t.Context(), request{source: source{from: []string{log}}, profile: rules.Training, failOn: report.Threshold(rules.High)})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Passed) > 0 || len(d.Skipped) == 0 {
		t.Errorf("%d rules were skipped, and these passed: %v", len(d.Skipped), d.Passed)
	}
}
