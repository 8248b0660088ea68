package data

import (
	"slices"
	"testing"
)

func TestDriverErrors(t *testing.T) {
	table := DriverErrors()
	classes, used, names := map[string]bool{}, map[string]bool{"other": true}, map[string]bool{}
	for _, c := range slices.Concat(table.Classes, table.NVML) {
		if classes[c.Name] || c.Words == "" || len(c.Remedies) == 0 {
			t.Errorf("class %q is there twice, says nothing or has no remedy", c.Name)
		}
		classes[c.Name] = true
	}
	if !classes["other"] {
		t.Error("no class for a code that names no cause")
	}
	last := 0
	for _, c := range table.Codes {
		if c.Code <= last {
			t.Errorf("code %d comes after %d", c.Code, last)
		}
		last = c.Code
		if names[c.Name] || c.Name == "" {
			t.Errorf("code %d: the name %q is there twice, or is none", c.Code, c.Name)
		}
		names[c.Name] = true
		if !classes[c.Class] {
			t.Errorf("code %d: unknown class %q", c.Code, c.Class)
		}
		used[c.Class] = true
		if c.InGPU && c.Class != "hardware" || c.Untried && c.JudgedBy != "" {
			t.Errorf("code %d: in_gpu without hardware, or untried and judged by %q", c.Code, c.JudgedBy)
		}
	}
	for _, c := range table.Classes {
		if !used[c.Name] {
			t.Errorf("no code is of the class %s", c.Name)
		}
	}
	checkSources(t, "driver_errors", table.Sources...)
}
