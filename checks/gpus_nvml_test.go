//go:build cgo && linux

package checks

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/nvml"
	"github.com/gpudoctor/gpudoctor/fixtures/drivers"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestGPUsThroughTheDoor runs the check over what the real door says of the
// simulated library: from the fault in the library to the fact.
func TestGPUsThroughTheDoor(t *testing.T) {
	const section = "gpus devices: NVIDIA's management library "
	type outcome struct {
		NVML, Error, Stage string
		Errors             []string // Of each GPU.
		Unknown            []string
	}
	for _, tt := range []struct {
		fault string
		want  outcome
	}{
		{"", outcome{NVML: "ok", Errors: []string{"", ""}}},
		{"lost-gpu", outcome{NVML: "ok", Errors: []string{"", "GPU_IS_LOST"}}},
		{"reset-required", outcome{NVML: "ok", Errors: []string{"", "RESET_REQUIRED"}}},
		{"crash-device", outcome{
			NVML: "crashed", Error: "SIGSEGV", Stage: "nvmlDeviceGetName of GPU 1", Errors: []string{"", ""},
			Unknown: []string{section + "crashes in nvmlDeviceGetName of GPU 1: SIGSEGV +hint"},
		}},
		{"driver-mismatch", outcome{
			NVML: "error", Error: "LIB_RM_VERSION_MISMATCH", Stage: "nvmlInit_v2", Errors: []string{"", ""},
			Unknown: []string{section + "fails in nvmlInit_v2: LIB_RM_VERSION_MISMATCH +hint"},
		}},
		{"no-permission", outcome{
			NVML: "error", Error: "NO_PERMISSION", Stage: "nvmlInit_v2", Errors: []string{"", ""},
			Unknown: []string{section + "fails in nvmlInit_v2: NO_PERMISSION +hint"},
		}},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			t.Setenv("LD_LIBRARY_PATH", drivers.Build(t, "nvml"))
			t.Setenv("GPUDOCTOR_SIM_NVML_FAULT", tt.fault)
			answer := expect.Value(nvml.Ask(t.Context(), nvml.Options{}))(t)
			m := &host.Memory{}
			m.Answer(host.AskNVML, answer)
			m.AddFile("/proc/2/comm", []byte("kthreadd\n"))
			m.Answer(host.AskProcess+"nv-fabricmanage", false)
			facts, unknown := gpuFacts(t, m, gpuTree("nvidia 0000:06:00.0", "nvidia 0000:07:00.0"))
			got := outcome{NVML: facts.NVML, Error: facts.NVMLError, Stage: facts.NVMLStage, Unknown: reasons(unknown)}
			for _, gpu := range facts.Devices {
				got.Errors = append(got.Errors, gpu.Error)
			}
			expect.NoDiff(t, tt.want, got, "facts")
		})
	}
}
