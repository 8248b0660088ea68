package cuda

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestCheck checks that a result has a name even where the library tells none,
// and that the library's own words are read no further than they go.
func TestCheck(t *testing.T) {
	word := append([]byte("CUDA_ERROR_OUT_OF_MEMORY"), make([]byte, 300)...)
	name := func(r Result, s *uintptr) Result {
		if r != gpudriver.OutOfMemory {
			return gpudriver.InvalidValue
		}
		*s = uintptr(unsafe.Pointer(&word[0]))
		return gpudriver.Success
	}
	d := newDriver(gpudriver.Global)
	d.c.GetErrorName = name
	for r, want := range map[Result]string{gpudriver.OutOfMemory: "CUDA_ERROR_OUT_OF_MEMORY", gpudriver.DriverMismatch: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", 4711: "CUDA_ERROR"} {
		var e *gpudriver.Error
		err := d.Fail("cuInit", int32(r))
		expect.That(t, errors.As(err, &e) && e.Name == want, "result %d: %v, want the name %s", r, err, want)
	}
}

// TestLayout checks the sizes that cuda.h gives its structures on 64-bit machines.
func TestLayout(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"CUmemAllocationProp", unsafe.Sizeof(allocationProp{}), 32},
		{"CUmemAccessDesc", unsafe.Sizeof(accessDesc{}), 12},
		{"CUipcMemHandle", unsafe.Sizeof(gpudriver.IPCHandle{}), 64},
	} {
		expect.Equal(t, c.want, c.got, "%s has", c.name)
	}
}

// TestMissing checks that a call to a function that the library lacks says so.
func TestMissing(t *testing.T) {
	expect.Fails(newDriver(gpudriver.Global).IPCHandle(0))(t, gpudriver.ErrMissing, "a call that the library lacks")
}
