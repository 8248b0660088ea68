package checks

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/drivers"
)

// TestEarly holds that the facts which are told before the probes have ended are those that come, in
// each section that is promised: then the rules compiled for them serve.
func TestEarly(t *testing.T) {
	t.Setenv("LD_LIBRARY_PATH", drivers.Build(t, "nvml")+":"+drivers.Build(t, "cuda"))
	for _, gpus := range []string{"0", "2"} {
		t.Setenv("GPUDOCTOR_SIM_GPUS", gpus)
		var told []*facts.Facts
		f, _ := Gather(t.Context(), host.Live(), gather.Options{Probe: probe.Quick, Early: func(f *facts.Facts) { told = append(told, f) }})
		if len(told) != 1 {
			t.Fatalf("%s GPUs: told %d times", gpus, len(told))
		}
		sections := 0
		v, w := reflect.ValueOf(*told[0]), reflect.ValueOf(*f)
		for i := range v.NumField() {
			field, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if !slices.Contains(EarlySections(), field) {
				continue
			}
			sections++
			if !reflect.DeepEqual(v.Field(i).Interface(), w.Field(i).Interface()) {
				t.Errorf("%s GPUs, section %s (-told +came):\n%s", gpus, field, cmp.Diff(v.Field(i).Interface(), w.Field(i).Interface()))
			}
		}
		if want := v.NumField() - len(probes) - 1; sections != want {
			t.Errorf("%d sections are promised, want %d", sections, want)
		}
	}
}
