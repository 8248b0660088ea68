package gpudriver

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestCUDANames checks that a result has a name even where the library tells none,
// and that the library's own words are read no further than they go.
func TestCUDANames(t *testing.T) {
	word := append([]byte("CUDA_ERROR_OUT_OF_MEMORY"), make([]byte, 300)...)
	name := func(r Result, s *uintptr) Result {
		if r != OutOfMemory {
			return InvalidDevice
		}
		*s = uintptr(unsafe.Pointer(&word[0]))
		return Success
	}
	d := newCUDA(Global)
	d.c.GetErrorName = name
	for r, want := range map[Result]string{OutOfMemory: "CUDA_ERROR_OUT_OF_MEMORY", DriverMismatch: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", 4711: "CUDA_ERROR"} {
		var e *Error
		err := d.Fail("cuInit", int32(r))
		expect.That(t, errors.As(err, &e) && e.Name == want, "result %d: %v, want the name %s", r, err, want)
	}
}

// TestCUDALayout checks the sizes that cuda.h gives its structures on 64-bit machines.
func TestCUDALayout(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"CUmemAllocationProp", unsafe.Sizeof(allocationProp{}), 32},
		{"CUmemAccessDesc", unsafe.Sizeof(accessDesc{}), 12},
		{"CUipcMemHandle", unsafe.Sizeof(IPCHandle{}), 64},
	} {
		expect.Equal(t, c.want, c.got, "%s has", c.name)
	}
}
