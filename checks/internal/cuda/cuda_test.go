package cuda

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
)

// TestCheck holds that a result has a name even where the library tells none,
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
	d := &Driver{c: calls{GetErrorName: name}}
	for r, want := range map[Result]string{gpudriver.OutOfMemory: "CUDA_ERROR_OUT_OF_MEMORY", gpudriver.DriverMismatch: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", 4711: "CUDA_ERROR"} {
		var e *Error
		if err := d.check("call", r); !errors.As(err, &e) || e.Name != want {
			t.Errorf("result %d: %v, want the name %s", r, err, want)
		}
	}
	if err := d.check("call", gpudriver.Success); err != nil {
		t.Errorf("success is %v", err)
	}
}

// TestLayout holds the sizes that cuda.h gives its structures on 64-bit
// machines.
func TestLayout(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"CUmemAllocationProp", unsafe.Sizeof(allocationProp{}), 32},
		{"CUmemAccessDesc", unsafe.Sizeof(accessDesc{}), 12},
		{"CUipcMemHandle", unsafe.Sizeof(IPCHandle{}), 64},
	} {
		if c.got != c.want {
			t.Errorf("%s has %d bytes, want %d", c.name, c.got, c.want)
		}
	}
}

// TestMissing holds that a library without a function that all depends on is
// told from one that lacks a newer one.
func TestMissing(t *testing.T) {
	d := &Driver{missing: map[string]bool{"cuInit": true, "cuMemCreate": true}}
	if got := d.Missing(); len(got) != 1 || got[0] != "cuInit" {
		t.Errorf("Missing = %v, want cuInit alone", got)
	}
	if _, err := d.IPCHandle(0); !errors.Is(err, gpudriver.ErrMissing) {
		t.Errorf("a call that the library lacks gives %v", err)
	}
}
