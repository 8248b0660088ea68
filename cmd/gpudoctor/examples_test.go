package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestExamples holds what is said of each recorded machine, and that it is
// said in the same words, but for the times, when it is asked again.
func TestExamples(t *testing.T) {
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
