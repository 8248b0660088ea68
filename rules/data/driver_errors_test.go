package data

import (
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestDriverErrors(t *testing.T) {
	table := DriverErrors()
	classes, used, names := map[string]bool{}, map[string]bool{"other": true}, map[string]bool{}
	for _, c := range slices.Concat(table.Classes, table.NVML) {
		expect.That(t, !classes[c.Name] && c.Words != "" && len(c.Remedies) != 0, "class %q is there twice, says nothing or has no remedy", c.Name)
		classes[c.Name] = true
	}
	expect.That(t, classes["other"], "no class for a code that names no cause")
	last := 0
	for _, c := range table.Codes {
		expect.That(t, c.Code > last, "code %d comes after %d", c.Code, last)
		last = c.Code
		expect.That(t, !names[c.Name] && c.Name != "", "code %d: the name %q is given twice, or is empty", c.Code, c.Name)
		names[c.Name] = true
		expect.That(t, classes[c.Class], "code %d: unknown class %q", c.Code, c.Class)
		used[c.Class] = true
		expect.That(t, (!c.InGPU || c.Class == "hardware") && (!c.Untried || c.JudgedBy == ""), "code %d: in_gpu without hardware, or untried and judged by %q", c.Code, c.JudgedBy)
	}
	for _, c := range table.Classes {
		expect.That(t, used[c.Name], "no code is of the class %s", c.Name)
	}
	checkSources(t, "driver_errors", table.Sources...)
}
