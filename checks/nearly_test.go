package checks

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/drivers"
)

// TestNearly holds that the facts which are told while the probe's process leaves are
// those that come, to the last pointer's value: then they need not be judged again.
func TestNearly(t *testing.T) {
	t.Setenv("LD_LIBRARY_PATH", drivers.Build(t, "nvml")+":"+drivers.Build(t, "cuda"))
	t.Setenv("GPUDOCTOR_SIM_GPUS", "2")
	var told []*facts.Facts
	var f *facts.Facts
	for range 10 { // On a loaded machine the process may have left before the other checks are done: nothing is told then.
		f, _ = Gather(t.Context(), host.Live(), gather.Options{Probe: probe.Quick, Nearly: func(f *facts.Facts) { told = append(told, f) }})
		if f.Transfers == nil || len(f.Transfers.Transfers) == 0 {
			t.Fatalf("the simulated driver was not probed: %+v", f.Transfers)
		}
		if len(told) > 0 {
			break
		}
	}
	if len(told) != 1 {
		t.Fatalf("told %d times", len(told))
	}
	if !reflect.DeepEqual(told[0], f) {
		t.Errorf("(-told +came):\n%s", cmp.Diff(told[0], f))
	}
}
