// Package gpudriver calls the vendors' libraries, bound at run time without a toolkit: the driver APIs of CUDA and
// HIP, in the terms that they have in common, and the collectives of NCCL and RCCL. It must be used only in a child
// process: a library that hangs or crashes takes the process with it.
package gpudriver

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/gpudoctor/gpudoctor/checks/internal/child"
)

// Result is a CUresult or a hipError_t: HIP's numbers are CUDA's where both have
// the error (hip_runtime_api.h, enum hipError_t).
type Result int32

// The results that gpudoctor distinguishes (cuda.h, enum cudaError_enum).
const (
	Success          Result = 0
	OutOfMemory      Result = 2
	StubLibrary      Result = 34
	DeviceUnavail    Result = 46
	NoDevice         Result = 100
	InvalidDevice    Result = 101
	NotReady         Result = 600
	PeerAlready      Result = 704
	NotSupported     Result = 801
	SystemNotReady   Result = 802
	DriverMismatch   Result = 803
	CompatNotSupport Result = 804
)

// Error makes a Result usable as a target of errors.Is.
func (r Result) Error() string { return fmt.Sprintf("driver result %d", int32(r)) }

// Error is a failed call of the driver, or of NCCL or RCCL.
type Error struct {
	// Call is the function's name.
	Call string
	// Result and Name are the driver's code: 802, "CUDA_ERROR_SYSTEM_NOT_READY".
	Result Result
	Name   string
	// Text is the library's own description.
	Text string
	// Collective is true for NCCL and RCCL, whose results are other ones than the driver's of these numbers; Last is
	// what ncclGetLastError says then, empty where the library says nothing.
	Collective bool
	Last       string
}

// Error says which call failed and how.
func (e *Error) Error() string { return e.Call + ": " + e.Said() }

// Said is what the call returned.
func (e *Error) Said() string {
	s := fmt.Sprintf("%s (%d)", e.Name, e.Result)
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// Is makes errors.Is work with a Result of the driver.
func (e *Error) Is(target error) bool {
	r, ok := target.(Result)
	return ok && r == e.Result && !e.Collective
}

var (
	// ErrMissing is wrapped by the error of a call of a function that the library lacks.
	ErrMissing = errors.New("the library lacks this function")
	// ErrVersion is wrapped if the sizes and numbers of the library's version are not known.
	ErrVersion = errors.New("version not supported")
	// ErrStatic is wrapped by the error of loading a library in a static binary.
	ErrStatic = errors.New("this binary is static and cannot load libraries")
	// ErrLoad is wrapped by every error of loading a library.
	ErrLoad = errors.New("load a library")
)

type loadError struct{ error }

// Is makes it an ErrLoad.
func (e loadError) Is(target error) bool { return target == ErrLoad }

// Unwrap returns the loader's own error.
func (e loadError) Unwrap() error { return e.error }

type (
	// Handles of the driver.

	// Device is a CUdevice or a hipDevice_t.
	Device int32
	// Context is what is made current on a thread: a CUcontext; for HIP, whose
	// threads have a current device, that device's number and one.
	Context uintptr
	// Stream is a queue of a device's work.
	Stream uintptr
	// Event is a mark in a stream.
	Event uintptr
	// Module is code that was loaded.
	Module uintptr
	// Function is a kernel of a module.
	Function uintptr
	// Pointer is an address in a device's memory.
	Pointer uint64
)

// IPCHandle is a CUipcMemHandle or a hipIpcMemHandle_t, of 64 bytes either.
type IPCHandle struct{ Reserved [64]byte }

// Names are those that a driver API has.
type Names struct {
	// API is "cuda" or "hip", Library the file that was loaded.
	API, Library string
	// Init and Query are the calls by which it starts and by which a stream is polled, IPC is the
	// mechanism of IPCHandle and OpenIPC: "cudaIpc".
	Init, Query, IPC string
}

// Driver is a vendor's driver API: what the two have in common, and what each does in its own way. A function that
// the library lacks gives an error that wraps ErrMissing.
type Driver struct {
	*Base
	Vendor
}

// Vendor is what CUDA and HIP do differently.
type Vendor interface {
	// Version is the version of the API; the error wraps ErrVersion if the library is not to be used.
	Version() (string, error)
	// Capability is CUDA's compute capability; empty for others.
	Capability(dev Device) string
	Multiprocessors(dev Device) (int, error)
	// TimerHz is the rate of the counter that the handshake kernel reads.
	TimerHz(dev Device) float64

	// Retain makes a device's context, SetCurrent makes it current on this thread, which the caller must have locked.
	Retain(dev Device) (Context, error)
	SetCurrent(c Context) error
	EnablePeer(peer Context) error

	// AllocShared allocates memory in the current context such that kernels of two devices can share it while they run.
	AllocShared(n uint64) (Pointer, error)
	// CopyToDevice, CopyToHost and Copy enqueue work on a stream. Host memory must be pinned and stay until the stream is done.
	CopyToDevice(dst Pointer, src []byte, s Stream) error
	CopyToHost(dst []byte, src Pointer, s Stream) error
	Copy(dst, src Pointer, n uint64, s Stream) error

	// LoadModule compiles the source of kernels for the current context: PTX, or HIP C++.
	LoadModule(source string) (Module, error)
}

// Path returns the file that a library was loaded from, by the maps of this process. name is the file's name up to ".so".
func Path(maps []byte, name string) string {
	for line := range bytes.Lines(maps) {
		if i := bytes.IndexByte(line, '/'); i >= 0 && bytes.Contains(line[i:], []byte("/"+name+".so")) {
			return string(bytes.TrimSpace(line[i:]))
		}
	}
	return ""
}

// CString returns s as a string of C.
func CString(s string) *byte { return &append([]byte(s), 0)[0] }

// Text reads a C string that a library owns, at most 256 bytes of it and none behind its end.
func Text(p uintptr) string {
	var text []byte
	for at := p; p != 0 && len(text) < 256; at++ {
		b := **(**byte)(unsafe.Pointer(&at))
		if b == 0 {
			break
		}
		text = append(text, b)
	}
	return string(text)
}

// String is the content of a buffer up to its first zero; one without a zero holds no string.
func String(b []byte) string { return string(b[:max(0, bytes.IndexByte(b, 0))]) }

// Open loads a library: a crash in its constructors is attributed to it.
func Open(name string) (handle uintptr, err error) {
	child.CallOf("loading " + name).Do(func() { handle, err = open(name) })
	if err != nil {
		return 0, loadError{err}
	}
	return handle, nil
}

// Global stands for the libraries that are loaded globally (RTLD_GLOBAL), as go-nvml loads NVML.
const Global uintptr = 0 // RTLD_DEFAULT, dlfcn.h of Linux.

// BindAll binds the fields of a struct to the functions that their tags name for an API, as in `cuda:"cuInit,needed"`, and
// returns the needed ones that the library lacks. Where a field returns an error, the function returns a code, of which fail
// makes one, or is missing, which gives ErrMissing. All others that the library lacks are nil.
func BindAll(handle uintptr, api string, functions any, fail func(call string, code int32) error) (missing []string) {
	v := reflect.ValueOf(functions).Elem()
	for i := range v.NumField() {
		name, need, _ := strings.Cut(v.Type().Field(i).Tag.Get(api), ",")
		if name == "" {
			panic("no function for " + v.Type().Field(i).Name) // A bug, which any test of the library finds.
		}
		var found bool
		if field := v.Field(i); field.Type().Out(0) == reflect.TypeFor[error]() {
			found = bindError(handle, name, field, fail)
		} else {
			found = Bind(handle, name, field.Addr().Interface())
		}
		if !found && need != "" {
			missing = append(missing, name)
		}
	}
	return missing
}

func bindError(handle uintptr, name string, field reflect.Value, fail func(call string, code int32) error) (found bool) {
	var in []reflect.Type
	for t := range field.Type().Ins() {
		in = append(in, t)
	}
	function := reflect.New(reflect.FuncOf(in, []reflect.Type{reflect.TypeFor[int32]()}, false))
	found = Bind(handle, name, function.Interface())
	field.Set(reflect.MakeFunc(field.Type(), func(args []reflect.Value) []reflect.Value {
		var err error
		if !found {
			err = fmt.Errorf("%s: %w", name, ErrMissing)
		} else if code := function.Elem().Call(args)[0].Int(); code != 0 {
			err = fail(name, int32(code))
		}
		return []reflect.Value{reflect.ValueOf(&err).Elem()}
	}))
	return found
}

// Bind looks a function up in a library, and reports whether it has it. fn points to a variable of the function's type.
// All calls of all libraries pass here: each is on this process's record while it is running.
func Bind(handle uintptr, name string, fn any) bool {
	address, err := symbol(handle, name)
	if err != nil {
		return false
	}
	register(fn, address)
	record(name, fn)
	return true
}

// record puts the calls of a function on this process's record.
func record(name string, fn any) {
	call := child.CallOf(name)
	if f, ok := fn.(*func(Stream) Result); ok { // A stream is polled up to 50 000 times a second.
		inner := *f
		*f = func(s Stream) (r Result) {
			call.Do(func() { r = inner(s) })
			return r
		}
		return
	}
	v := reflect.ValueOf(fn).Elem()
	inner := reflect.ValueOf(v.Interface())
	v.Set(reflect.MakeFunc(v.Type(), func(args []reflect.Value) (results []reflect.Value) {
		call.Do(func() { results = inner.Call(args) })
		return results
	}))
}
