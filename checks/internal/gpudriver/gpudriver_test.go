package gpudriver

import (
	"errors"
	"fmt"
	"testing"
)

func TestPath(t *testing.T) {
	const maps = `7f0000000000-7f0000001000 r--p 00000000 08:01 42 /usr/lib/x86_64-linux-gnu/libc.so.6
7f0000002000-7f0000003000 r-xp 00000000 08:01 43                         /usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04
`
	if got, want := Path([]byte(maps), "libcuda"), "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04"; got != want {
		t.Errorf("Path = %q, want %q", got, want)
	}
	if got := Path([]byte("7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n"), "libcuda"); got != "" {
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
