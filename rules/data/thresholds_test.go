package data

import (
	"reflect"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestLimits checks that no value was forgotten, and that none lies on the wrong side of another.
func TestLimits(t *testing.T) {
	table := Thresholds()
	v := reflect.ValueOf(table).Elem()
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not set", v.Type().Field(i).Name)
		}
	}
	for name, share := range map[string]float64{
		"wrong_path": table.WrongPath, "staged": table.Staged,
	} {
		expect.That(t, share > 0 && share < 1, "%s is %v", name, share)
	}
	if d := table.Detour; d.Least >= d.Most || d.Least < table.Staged {
		t.Errorf("a detour is %+v of a link, staging %v", d, table.Staged)
	}
	expect.That(t, table.StagedFaster > 1 && table.StagedBeatsCrowd >= table.StagedFaster, "host memory is faster by %v, and %v in a crowd", table.StagedFaster, table.StagedBeatsCrowd)
	if table.MemlockTooLowBytes >= table.MemlockLowBytes || table.ShmDefaultBytes >= table.ShmRecommendedBytes || table.BARDefaultBytes >= table.BARFixedMostBytes || table.BusyPercent >= table.SpinningPercent {
		t.Error("a limit lies on the wrong side of another")
	}
	want := int64(4*1024+512+4800+4) * 1024
	expect.That(t, table.ShmConnectionBytes == want, "shm_connection_bytes is %d, want %d: Simple, LL, LL128 and a page", table.ShmConnectionBytes, want)
	checkSources(t, "thresholds", table.Sources...)
}

// TestCUDADrivers checks that a newer CUDA needs a newer driver.
func TestCUDADrivers(t *testing.T) {
	last := 0
	old, major := Thresholds().OldCUDADrivers, Thresholds().CUDADrivers
	for _, branch := range []int{old["7.0"], old["7.5"], old["8.0"], old["9.0"], old["9.1"], old["9.2"], old["10.0"], old["10.1"], old["10.2"], major["11"], major["12"], major["13"]} {
		expect.That(t, branch > last, "driver %d comes after %d", branch, last)
		last = branch
	}
	expect.That(t, len(old)+len(major) == 12, "%d releases of CUDA, want 12", len(old)+len(major))
}
