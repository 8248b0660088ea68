//go:build cgo && linux

package nvml

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestRealLibrary asks the library of this machine, where there is one.
func TestRealLibrary(t *testing.T) {
	start := time.Now()
	a, err := Ask(t.Context(), Limits{})
	took := time.Since(start)
	expect.NoError(t, err)
	if a.Outcome != OK {
		t.Skipf("NVML: %s %s %s (%s)", a.Outcome, a.ErrorName, a.Reason, a.Stage)
	}
	text := expect.Value(json.Marshal(a))(t)
	t.Logf("in %s: %s", took, text)
	expect.That(t, a.Driver.Version != "" && a.Driver.CUDAVersion != "", "driver %+v, want all versions", a.Driver)
	answering := 0
	for _, d := range a.Devices {
		if d.Error != "" {
			continue
		}
		answering++
		if !kernelForm.MatchString(d.Address) || d.UUID == "" || d.Name == "" || d.MemoryBytes == 0 {
			t.Errorf("GPU %v: address %q, UUID %q, name %q, memory %v, want all", d.Index, d.Address, d.UUID, d.Name, d.MemoryBytes)
		}
		for _, link := range d.NVLinks {
			expect.That(t, !link.Active || link.Version != 0 && link.SpeedMBps != 0, "GPU %v: NVLink %+v, want a version and a speed", d.Index, link)
		}
	}
	want := answering * (answering - 1) / 2
	expect.That(t, len(a.P2P) == want, "%d pairs of %d GPUs, want %d", len(a.P2P), answering, want)
}
