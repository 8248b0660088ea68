// Package nccl calls NVIDIA's collective library, libnccl.so.2, or AMD's, librccl.so.1, whose
// API is the same, bound at run time. It must be used only in a child process: a call may hang,
// or end the process.
//
// Signatures and constants are those of nccl.h (NCCL 2.4 to 2.29) and of rccl.h.
package nccl

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
)

// Result is an ncclResult_t.
type Result int32

// The results (nccl.h, ncclResult_t).
const (
	Success    Result = 0
	InProgress Result = 7
)

// names are those of the header.
var names = []string{
	"ncclSuccess", "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError", "ncclInvalidArgument", "ncclInvalidUsage", "ncclRemoteError", "ncclInProgress",
}

// String is the name in the header.
func (r Result) String() string {
	if r >= 0 && int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("ncclResult_t %d", int32(r))
}

type (
	// UniqueID is an ncclUniqueId: how the ranks of a communicator find each other.
	UniqueID struct{ Internal [128]byte }
	// Comm is an ncclComm_t.
	Comm uintptr
)

// The types and operations in use (nccl.h, ncclDataType_t and ncclRedOp_t).
const (
	uint64Type = 5
	sumOp      = 0
)

// Error is a failed call.
type Error struct {
	// Call is the function, Result its result, and Text the library's description.
	Call   string
	Result Result
	Text   string
	// Last is what ncclGetLastError says; empty where the library says nothing.
	Last string
}

func (e *Error) Error() string { return e.Call + ": " + e.Said() }

// Said is what the call returned.
func (e *Error) Said() string {
	s := fmt.Sprintf("%s (%d)", e.Result, e.Result)
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// calls are the functions, as gpudriver.BindAll binds them.
type calls struct {
	GetVersion        func(v *int32) error                                                                              `nccl:"ncclGetVersion,needed"`
	GetUniqueID       func(id *UniqueID) error                                                                          `nccl:"ncclGetUniqueId,needed"`
	CommInitRank      func(c *Comm, ranks int32, id UniqueID, rank int32) error                                         `nccl:"ncclCommInitRank,needed"`
	CommDestroy       func(c Comm) error                                                                                `nccl:"ncclCommDestroy"`
	CommGetAsyncError func(c Comm, r *Result) error                                                                     `nccl:"ncclCommGetAsyncError"`
	AllReduce         func(send, receive gpudriver.Pointer, n uint64, kind, op int32, c Comm, s gpudriver.Stream) error `nccl:"ncclAllReduce,needed"`
	// Send and Recv came with 2.7.
	Send           func(send gpudriver.Pointer, n uint64, kind, peer int32, c Comm, s gpudriver.Stream) error    `nccl:"ncclSend"`
	Recv           func(receive gpudriver.Pointer, n uint64, kind, peer int32, c Comm, s gpudriver.Stream) error `nccl:"ncclRecv"`
	GroupStart     func() error                                                                                  `nccl:"ncclGroupStart"`
	GroupEnd       func() error                                                                                  `nccl:"ncclGroupEnd"`
	GetErrorString func(r Result) uintptr                                                                        `nccl:"ncclGetErrorString"`
	GetLastError   func(c Comm) uintptr                                                                          `nccl:"ncclGetLastError"` // 2.13.
}

// Library is a loaded library.
type Library struct {
	// Path is the file that was loaded; empty if the maps of this process do not show it.
	Path  string
	calls calls
}

// Load loads a library by its path, or by the name by which a program would.
func Load(name string) (*Library, error) {
	handle, err := gpudriver.Open(name)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", name, err)
	}
	l := &Library{}
	missing := gpudriver.BindAll(handle, "nccl", &l.calls, l.fail)
	if maps, err := os.ReadFile("/proc/self/maps"); err == nil {
		l.Path = cmp.Or(gpudriver.Path(maps, "libnccl"), gpudriver.Path(maps, "librccl"))
	}
	if len(missing) > 0 {
		return l, fmt.Errorf("%s: %w: %d of the functions that the probe calls", name, gpudriver.ErrMissing, len(missing))
	}
	return l, nil
}

// Version returns the version, as 2.28.9. The error wraps gpudriver.ErrVersion where the API may be
// another one.
func (l *Library) Version() (string, error) {
	var v int32
	if err := l.calls.GetVersion(&v); err != nil {
		return "", err
	}
	version := versionOf(v)
	if !supported(v) {
		return version, fmt.Errorf("NCCL %s: %w: the probe knows the API of versions 2.4 to 2.x", version, gpudriver.ErrVersion)
	}
	return version, nil
}

// versionOf writes a version as people do: 22809 is 2.28.9, and up to 2.8 2408 is 2.4.8
// (NCCL_VERSION of nccl.h).
func versionOf(v int32) string {
	if v < 10000 {
		return fmt.Sprintf("%d.%d.%d", v/1000, v%1000/100, v%100)
	}
	return fmt.Sprintf("%d.%d.%d", v/10000, v%10000/100, v%100)
}

// supported reports whether a version's API is the one of nccl.h 2: since 2.4 it has the
// functions used here.
func supported(v int32) bool { return v >= 2400 && v < 3000 || v >= 20000 && v < 30000 }

// fail is the error of a call with a result other than success.
func (l *Library) fail(call string, code int32) error {
	e := &Error{Call: call, Result: Result(code)}
	if l.calls.GetErrorString != nil {
		e.Text = gpudriver.Text(l.calls.GetErrorString(e.Result))
	}
	if l.calls.GetLastError != nil {
		e.Last = gpudriver.Text(l.calls.GetLastError(0)) // It does not depend on the communicator.
	}
	return e
}

// present drops the error that the library lacks a function that nothing depends on.
func present(err error) error {
	if errors.Is(err, gpudriver.ErrMissing) {
		return nil
	}
	return err
}

// UniqueID makes the id of a new communicator.
func (l *Library) UniqueID() (id UniqueID, err error) {
	err = l.calls.GetUniqueID(&id)
	return id, err
}

// Init joins a communicator, with the GPU that is current on this thread.
func (l *Library) Init(ranks int, id UniqueID, rank int) (c Comm, err error) {
	err = l.calls.CommInitRank(&c, int32(ranks), id, int32(rank))
	return c, err
}

// Destroy leaves a communicator.
func (l *Library) Destroy(c Comm) error { return present(l.calls.CommDestroy(c)) }

// Async returns the error that a communicator met since its last call, if any.
func (l *Library) Async(c Comm) error {
	var r Result
	if err := l.calls.CommGetAsyncError(c, &r); err != nil {
		return present(err)
	}
	if r == InProgress || r == Success {
		return nil
	}
	return l.fail("ncclCommGetAsyncError", int32(r))
}

// AllReduce enqueues the sum of n words of 8 bytes over all ranks.
func (l *Library) AllReduce(c Comm, send, receive gpudriver.Pointer, n uint64, s gpudriver.Stream) error {
	return l.calls.AllReduce(send, receive, n, uint64Type, sumOp, c, s)
}

// Message is one message of an exchange between two ranks, in words of 8 bytes.
type Message struct {
	Peer int
	At   gpudriver.Pointer
	N    uint64
}

// Exchange enqueues messages to and from peers, as one group.
func (l *Library) Exchange(c Comm, sends, receives []Message, s gpudriver.Stream) error {
	if err := l.calls.GroupStart(); err != nil {
		return err
	}
	var first error
	for _, m := range sends {
		if err := l.calls.Send(m.At, m.N, uint64Type, int32(m.Peer), c, s); first == nil {
			first = err
		}
	}
	for _, m := range receives {
		if err := l.calls.Recv(m.At, m.N, uint64Type, int32(m.Peer), c, s); first == nil {
			first = err
		}
	}
	if err := l.calls.GroupEnd(); first == nil {
		first = err
	}
	return first
}
