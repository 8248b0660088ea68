package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
	"github.com/gpudoctor/gpudoctor/rules"
)

// madeFault is a fault that was made on purpose, as fixtures/faults/faults.yaml describes it.
type madeFault struct {
	Cause        string
	Also         []string
	Open, Missed []string // Levels of NCCL_DEBUG.
}

// leastNamed is the part of the faults made on purpose that must be named right.
const leastNamed = 0.95

// TestFaults checks that the outputs of faults which were made on purpose with a real job on
// two H200 are named right, that each that is not is known to be missed, and that there is no
// alarm on a job that went through.
func TestFaults(t *testing.T) {
	t.Parallel()
	raw := expect.Value(os.ReadFile("../../fixtures/faults/faults.yaml"))(t)
	var halves map[string]map[string]madeFault
	expect.NoError(t, yaml.Unmarshal(raw, &halves))
	for half, faults := range halves {
		named, judged := 0, 0
		for i, name := range slices.Sorted(maps.Keys(faults)) {
			if night.Few() && i%8 > 0 {
				continue
			}
			fault := faults[name]
			for _, level := range []string{"unset", "warn", "info"} {
				if slices.Contains(fault.Open, level) {
					continue
				}
				file := filepath.Join("../../fixtures/faults/logs", name, level+".log")
				d := concluded(t, file)
				var first rules.Finding
				if len(d.Findings) > 0 {
					first = d.Findings[0]
				}
				if fault.Cause == "none" {
					expect.That(t, first.Rule == "" || first.Severity.Rank() > rules.Medium.Rank(), "%s at %s went through; alarm of %s: %s", name, level, first.Rule, first.Message)
					continue
				}
				judged++
				right := first.Cause == fault.Cause || slices.Contains(fault.Also, first.Cause)
				if right {
					named++
				}
				missed := slices.Contains(fault.Missed, level)
				expect.That(t, right != missed, "%s at %s: the first cause is %q (%s), want %s, missed %v", name, level, first.Cause, first.Rule, fault.Cause, missed)
			}
		}
		expect.That(t, float64(named) >= leastNamed*float64(judged), "%s: %d of %d named right", half, named, judged)
		t.Logf("%s: %d of %d named right", half, named, judged)
	}
}
