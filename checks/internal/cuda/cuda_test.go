package cuda

import (
	"errors"
	"fmt"
	"testing"
	"unsafe"
)

func TestPath(t *testing.T) {
	const maps = `7f0000000000-7f0000001000 r--p 00000000 08:01 42 /usr/lib/x86_64-linux-gnu/libc.so.6
7f0000002000-7f0000003000 r-xp 00000000 08:01 43                         /usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04
`
	if got, want := Path([]byte(maps)), "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04"; got != want {
		t.Errorf("Path = %q, want %q", got, want)
	}
	if got := Path([]byte("7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n")); got != "" {
		t.Errorf("Path = %q, want none", got)
	}
}

func TestError(t *testing.T) {
	err := fmt.Errorf("start: %w", &Error{Call: "cuInit", Result: SystemNotReady, Name: "CUDA_ERROR_SYSTEM_NOT_READY", Text: "not yet"})
	if want := "start: cuInit: CUDA_ERROR_SYSTEM_NOT_READY (802): not yet"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	if !errors.Is(err, SystemNotReady) || errors.Is(err, OutOfMemory) {
		t.Error("errors.Is does not tell the result")
	}
}

// TestCheck holds that a result has a name even where the library tells none,
// and that the library's own words are read no further than they go.
func TestCheck(t *testing.T) {
	word := append([]byte("CUDA_ERROR_OUT_OF_MEMORY"), make([]byte, 300)...)
	name := func(r Result, s *uintptr) Result {
		if r != OutOfMemory {
			return InvalidValue
		}
		*s = uintptr(unsafe.Pointer(&word[0]))
		return Success
	}
	d := &Driver{c: calls{GetErrorName: name}}
	for r, want := range map[Result]string{OutOfMemory: "CUDA_ERROR_OUT_OF_MEMORY", DriverMismatch: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", 4711: "CUDA_ERROR"} {
		var e *Error
		if err := d.check("call", r); !errors.As(err, &e) || e.Name != want {
			t.Errorf("result %d: %v, want the name %s", r, err, want)
		}
	}
	if err := d.check("call", Success); err != nil {
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
	if _, err := d.IPCHandle(0); !errors.Is(err, ErrMissing) {
		t.Errorf("a call that the library lacks gives %v", err)
	}
}
