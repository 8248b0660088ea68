package gpudriver

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// TestOneDoor checks that no other package calls a library beside NVML's, whose
// package has one door of its own: what is not called here is on no record.
func TestOneDoor(t *testing.T) {
	list := expect.Value(exec.Command("go", "list", "-f", `{{.ImportPath}}: {{join .Imports " "}}`, "github.com/gpudoctor/gpudoctor/...").Output())(t)
	doors := map[string]string{"ebitengine/purego": "gpudriver", "NVIDIA/go-nvml": "nvml"}
	seen := 0
	for line := range strings.Lines(string(list)) {
		name, imports, _ := strings.Cut(line, ": ")
		for library, door := range doors {
			if !strings.Contains(imports, library) {
				continue
			}
			seen++
			expect.That(t, strings.HasSuffix(name, "/internal/"+door), "%s calls libraries with %s", name, library)
		}
	}
	expect.That(t, seen >= len(doors), "%d doors are seen, want %d", seen, len(doors))
}

func TestPath(t *testing.T) {
	const maps = `7f0000000000-7f0000001000 r--p 00000000 08:01 42 /usr/lib/x86_64-linux-gnu/libc.so.6
7f0000002000-7f0000003000 r-xp 00000000 08:01 43                         /usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04
`
	got, want := Path([]byte(maps), "libcuda"), "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04"
	expect.That(t, got == want, "Path = %q, want %q", got, want)
	expect.Equal(t, "", Path([]byte("7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n"), "libcuda"), "Path")
}

func TestError(t *testing.T) {
	err := fmt.Errorf("start: %w", &Error{Call: "cuInit", Result: SystemNotReady, Name: "CUDA_ERROR_SYSTEM_NOT_READY", Text: "not yet"})
	want := "start: cuInit: CUDA_ERROR_SYSTEM_NOT_READY (802): not yet"
	expect.That(t, err.Error() == want, "error %q, want %q", err, want)
	expect.That(t, errors.Is(err, SystemNotReady) && !errors.Is(err, OutOfMemory), "errors.Is does not tell the result")
}

// TestMissing checks that a library without a function that all depends on is told from one that lacks a newer one, and
// that a call of what is not there says which function it is.
func TestMissing(t *testing.T) {
	for api, start := range map[string]string{"cuda": "cuInit", "hip": "hipInit"} {
		var b Base
		b.Bind(Global, api, &b.Calls) // This process has loaded no such library.
		missing := b.Missing
		expect.That(t, slices.Contains(missing, start) && !slices.ContainsFunc(missing, func(name string) bool { return strings.Contains(name, "Ipc") }), "%s: missing %q", api, missing)
		err := b.Init()
		expect.That(t, errors.Is(err, ErrMissing) && strings.HasPrefix(err.Error(), start+":"), "%s: Init gives %v", api, err)
	}
}

// TestBindError checks that a code of a C function becomes an error that names the function as its documentation does,
// and that success is no error.
func TestBindError(t *testing.T) {
	b := Base{Describe: func(r Result) (string, string) { return fmt.Sprintf("E%d", r), "text" }}
	var calls struct {
		Close func(fd int32) error `c:"close"`
		Other func() error         `c:"none_such_v2"`
	}
	b.Bind(Global, "c", &calls)
	err := calls.Close(-1)
	expect.That(t, errors.Is(err, Result(-1)) && err.Error() == (&Error{Call: "close", Result: -1, Name: "E-1", Text: "text"}).Error(), "close gives %v", err)
	fd := expect.Value(syscall.Dup(2))(t)
	expect.NoError(t, calls.Close(int32(fd)))
	expect.That(t, errors.Is(calls.Other(), ErrMissing), "a missing function gives %v", calls.Other())
	err = b.Fail("cuMemFree_v2", 1)
	expect.That(t, strings.HasPrefix(err.Error(), "cuMemFree:"), "got %v, want an error of cuMemFree", err)
}

// TestCompiled checks that code is made once for each model, whoever asks at the same time,
// and that a failure is not kept.
func TestCompiled(t *testing.T) {
	var asked, made atomic.Int32
	b := Base{compiled: map[string][]byte{}, Calls: Calls{
		CurrentDevice: func(d *Device) error { *d = Device(asked.Add(1) % 2); return nil },
		DeviceGetName: func(name *byte, _ int32, d Device) error { *name = 'A' + byte(d); return nil },
	}}
	failed := errors.New("no compiler")
	expect.Fails(b.codeOf("source", func(string) ([]byte, error) { return nil, failed }))(t, failed, "it")
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			code, err := b.codeOf("source", func(string) ([]byte, error) { made.Add(1); return []byte("code"), nil })
			expect.That(t, err == nil && string(code) == "code", "code %q, error %v", code, err)
		})
	}
	wg.Wait()
	expect.That(t, made.Load() == 2, "compiled %d times for two models", made.Load())
}

// TestNCCLVersion checks how versions are written (NCCL_VERSION of nccl.h) and which are supported.
func TestNCCLVersion(t *testing.T) {
	for number, want := range map[int32]string{
		2408: "2.4.8", 2804: "2.8.4", 20906: "2.9.6", 22809: "2.28.9", 29999: "2.99.99",
		2304: "2.3.4 no", 30000: "3.0.0 no", 1348: "1.3.48 no", 0: "0.0.0 no", -1: "0.0.-1 no",
	} {
		got, supported := ncclVersion(number)
		if !supported {
			got += " no"
		}
		expect.Equal(t, want, got, "%d", number)
	}
}

// TestNCCLResults checks that every number has a name, and that those of the header are theirs.
func TestNCCLResults(t *testing.T) {
	for r, want := range map[int32]string{2: "ncclSystemError", 6: "ncclRemoteError", ncclInProgress: "ncclInProgress", 8: "ncclResult_t 8", -1: "ncclResult_t -1"} {
		var e *Error
		expect.That(t, errors.As((&NCCL{}).fail("ncclSend", r), &e) && e.Name == want, "%d: got %+v, want %s", r, e, want)
	}
}

// TestResults checks that the results have the numbers that the table of the driver's
// errors has, as far as it has them.
func TestResults(t *testing.T) {
	t.Parallel()
	numbers := map[string]int{}
	for _, e := range data.DriverErrors().Codes {
		numbers[e.Name] = e.Code
	}
	for name, result := range map[string]Result{
		"OUT_OF_MEMORY": OutOfMemory, "STUB_LIBRARY": StubLibrary, "DEVICE_UNAVAILABLE": DeviceUnavail, "NO_DEVICE": NoDevice, "INVALID_DEVICE": InvalidDevice,
		"PEER_ACCESS_ALREADY_ENABLED": PeerAlready, "NOT_SUPPORTED": NotSupported, "SYSTEM_NOT_READY": SystemNotReady,
		"SYSTEM_DRIVER_MISMATCH": DriverMismatch, "COMPAT_NOT_SUPPORTED_ON_DEVICE": CompatNotSupport,
	} {
		expect.That(t, numbers[name] == int(result), "%s is %d, and %d in the table", name, result, numbers[name])
	}
}

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

// TestCUDALayout checks the size that cuda.h gives a handle.
func TestCUDALayout(t *testing.T) {
	expect.Equal(t, 64, unsafe.Sizeof(IPCHandle{}), "CUipcMemHandle has")
}
