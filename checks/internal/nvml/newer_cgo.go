//go:build cgo && linux

package nvml

import (
	"reflect"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
)

// go-nvml is kept at v0.12.9, whose header compiles without a warning. The
// functions that NVML 13 added are called here instead.

// unrepairableMemoryStatus is nvmlUnrepairableMemoryStatus_v1_t (nvml.h 13). It
// has no version.
type unrepairableMemoryStatus struct{ unrepairable uint32 }

// repairStatus is nvmlRepairStatus_v1_t (nvml.h 13).
type repairStatus struct{ version, channelPending, tpcPending uint32 }

func (s *subject) unrepairableMemory() (unrepairableMemoryStatus, nvml.Return) {
	var status unrepairableMemoryStatus
	ret := s.newer("nvmlDeviceGetUnrepairableMemoryFlag_v1", unsafe.Pointer(&status))
	return status, ret
}

func (s *subject) repairStatus() (repairStatus, nvml.Return) {
	var status repairStatus
	status.version = nvml.STRUCT_VERSION(status, 1)
	ret := s.newer("nvmlDeviceGetRepairStatus", unsafe.Pointer(&status))
	return status, ret
}

// newer calls a function that go-nvml does not have, of the form
// nvmlReturn_t f(nvmlDevice_t, T *answer).
func (s *subject) newer(function string, answer unsafe.Pointer) nvml.Return {
	var f func(device uintptr, answer unsafe.Pointer) nvml.Return
	if !gpudriver.Bind(gpudriver.Global, function, &f) {
		return nvml.ERROR_FUNCTION_NOT_FOUND
	}
	return f(handleOf(s.gpu), answer)
}

// handleOf returns the nvmlDevice_t of a GPU, which go-nvml keeps in the field
// Handle of a type that it does not export.
func handleOf(gpu nvml.Device) uintptr {
	return reflect.ValueOf(gpu).FieldByName("Handle").Pointer()
}
