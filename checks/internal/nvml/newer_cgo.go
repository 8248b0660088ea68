//go:build cgo && linux

package nvml

import (
	"reflect"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
)

// go-nvml is kept at v0.12.9, whose header compiles without a warning. NVML 13's functions are called here.

// unrepairableMemoryStatus is nvmlUnrepairableMemoryStatus_v1_t (nvml.h 13), without a version.
type unrepairableMemoryStatus struct{ unrepairable uint32 }

// repairStatus is nvmlRepairStatus_v1_t (nvml.h 13); the last field is about TPCs.
type repairStatus struct{ version, channelPending, _ uint32 }

// newer learns from a function of the form nvmlReturn_t f(nvmlDevice_t, T *answer).
func newer[T, U any](s *subject, function string, answer T, form func(T) U) *U {
	return learn(s, function, func() (T, nvml.Return) {
		var f func(device uintptr, answer unsafe.Pointer) nvml.Return
		if !gpudriver.Bind(gpudriver.Global, function, &f) {
			return answer, nvml.ERROR_FUNCTION_NOT_FOUND
		}
		// go-nvml keeps the nvmlDevice_t in the field Handle of a type that it does not export.
		ret := f(reflect.ValueOf(s.gpu).FieldByName("Handle").Pointer(), unsafe.Pointer(&answer))
		return answer, ret
	}, form)
}
