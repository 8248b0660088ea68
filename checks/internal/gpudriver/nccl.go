package gpudriver

import (
	"cmp"
	"fmt"
	"os"
)

// The results (nccl.h, ncclResult_t).
const (
	ncclSuccess    = 0
	ncclInProgress = 7
)

var ncclNames = []string{
	"ncclSuccess", "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError", "ncclInvalidArgument", "ncclInvalidUsage", "ncclRemoteError", "ncclInProgress",
}

type (
	// NCCLUniqueID is an ncclUniqueId: how the ranks of a communicator find each other.
	NCCLUniqueID struct{ Internal [128]byte }
	// NCCLComm is an ncclComm_t.
	NCCLComm uintptr
)

// The types and operations in use (nccl.h, ncclDataType_t and ncclRedOp_t).
const (
	ncclUint64 = 5
	ncclSum    = 0
)

// ncclCalls are the functions, as gpudriver.BindAll binds them.
type ncclCalls struct {
	GetVersion        func(v *int32) error                                                              `nccl:"ncclGetVersion,needed"`
	GetUniqueID       func(id *NCCLUniqueID) error                                                      `nccl:"ncclGetUniqueId,needed"`
	CommInitRank      func(c *NCCLComm, ranks int32, id NCCLUniqueID, rank int32) error                 `nccl:"ncclCommInitRank,needed"`
	CommDestroy       func(c NCCLComm) error                                                            `nccl:"ncclCommDestroy"`
	CommGetAsyncError func(c NCCLComm, r *int32) error                                                  `nccl:"ncclCommGetAsyncError"`
	Reduce            func(send, receive Pointer, n uint64, kind, op int32, c NCCLComm, s Stream) error `nccl:"ncclAllReduce,needed"`
	// Send and Recv came with 2.7.
	Send           func(send Pointer, n uint64, kind, peer int32, c NCCLComm, s Stream) error    `nccl:"ncclSend"`
	Recv           func(receive Pointer, n uint64, kind, peer int32, c NCCLComm, s Stream) error `nccl:"ncclRecv"`
	GroupStart     func() error                                                                  `nccl:"ncclGroupStart"`
	GroupEnd       func() error                                                                  `nccl:"ncclGroupEnd"`
	GetErrorString func(r int32) uintptr                                                         `nccl:"ncclGetErrorString"`
	GetLastError   func(c NCCLComm) uintptr                                                      `nccl:"ncclGetLastError"` // 2.13.
}

// NCCL is NVIDIA's collective library, libnccl.so.2, or AMD's, librccl.so.1, whose API is the same. Signatures and
// constants are those of nccl.h (NCCL 2.4 to 2.29) and of rccl.h.
type NCCL struct {
	// Path is the file that was loaded; empty if the maps of this process do not show it.
	Path string
	ncclCalls
}

// LoadNCCL loads a library by its path, or by the name by which a program would.
func LoadNCCL(name string) (*NCCL, error) {
	handle, err := Open(name)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", name, err)
	}
	l := &NCCL{}
	missing := BindAll(handle, "nccl", &l.ncclCalls, l.fail)
	if maps, err := os.ReadFile("/proc/self/maps"); err == nil {
		l.Path = cmp.Or(Path(maps, "libnccl"), Path(maps, "librccl"))
	}
	if len(missing) > 0 {
		return l, fmt.Errorf("%s: %w: %d of the functions that the probe calls", name, ErrMissing, len(missing))
	}
	return l, nil
}

// Version returns the version, as 2.28.9. The error wraps ErrVersion where the API may be another one.
func (l *NCCL) Version() (string, error) {
	var v int32
	if err := l.GetVersion(&v); err != nil {
		return "", err
	}
	version, supported := ncclVersion(v)
	if !supported {
		return version, fmt.Errorf("NCCL %s: %w: the probe knows the API of versions 2.4 to 2.x", version, ErrVersion)
	}
	return version, nil
}

// ncclVersion writes a version as people do: 22809 is 2.28.9, and up to 2.8 2408 is 2.4.8 (NCCL_VERSION of nccl.h). Those
// from 2.4 on, which have the functions used here, are supported.
func ncclVersion(v int32) (version string, supported bool) {
	if v < 10000 {
		return fmt.Sprintf("%d.%d.%d", v/1000, v%1000/100, v%100), v >= 2400 && v < 3000
	}
	return fmt.Sprintf("%d.%d.%d", v/10000, v%10000/100, v%100), v >= 20000 && v < 30000
}

func (l *NCCL) fail(call string, code int32) error {
	e := &Error{Call: call, Result: Result(code), Name: fmt.Sprintf("ncclResult_t %d", code), Collective: true}
	if code >= 0 && int(code) < len(ncclNames) {
		e.Name = ncclNames[code]
	}
	if l.GetErrorString != nil {
		e.Text = Text(l.GetErrorString(code))
	}
	if l.GetLastError != nil {
		e.Last = Text(l.GetLastError(0)) // It does not depend on the communicator.
	}
	return e
}

// Destroy leaves a communicator. A library that lacks the call needs none.
func (l *NCCL) Destroy(c NCCLComm) error { return except(l.CommDestroy(c), ErrMissing) }

// Async returns the error that a communicator met since its last call, if any.
func (l *NCCL) Async(c NCCLComm) error {
	var r int32
	if err := l.CommGetAsyncError(c, &r); err != nil {
		return except(err, ErrMissing)
	}
	if r == ncclInProgress || r == ncclSuccess {
		return nil
	}
	return l.fail("ncclCommGetAsyncError", r)
}

// AllReduce enqueues the sum of n words of 8 bytes over all ranks.
func (l *NCCL) AllReduce(c NCCLComm, send, receive Pointer, n uint64, s Stream) error {
	return l.Reduce(send, receive, n, ncclUint64, ncclSum, c, s)
}

// NCCLMessage is one message of an exchange between two ranks, in words of 8 bytes.
type NCCLMessage struct {
	Peer int
	At   Pointer
	N    uint64
}

// Exchange enqueues messages to and from peers, as one group.
func (l *NCCL) Exchange(c NCCLComm, sends, receives []NCCLMessage, s Stream) error {
	if err := l.GroupStart(); err != nil {
		return err
	}
	var first error
	for _, m := range sends {
		first = cmp.Or(first, l.Send(m.At, m.N, ncclUint64, int32(m.Peer), c, s))
	}
	for _, m := range receives {
		first = cmp.Or(first, l.Recv(m.At, m.N, ncclUint64, int32(m.Peer), c, s))
	}
	return cmp.Or(first, l.GroupEnd())
}
