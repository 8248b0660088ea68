package gpudriver

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"unsafe"
)

// The device attributes that gpudoctor queries (cuda.h).
const (
	cudaMultiprocessors = 16
	cudaComputeMajor    = 75
	cudaComputeMinor    = 76
	cudaDMABuf          = 124
)

// cudaCalls are the functions that only CUDA has, or that have another signature in HIP.
type cudaCalls struct {
	DriverGetVersion    func(v *int32) error                                                                                             `cuda:"cuDriverGetVersion"`
	PrimaryCtxRetain    func(c *Context, d Device) error                                                                                 `cuda:"cuDevicePrimaryCtxRetain,needed"`
	CtxSetCurrent       func(c Context) error                                                                                            `cuda:"cuCtxSetCurrent,needed"`
	CtxEnablePeerAccess func(peer Context, flags uint32) error                                                                           `cuda:"cuCtxEnablePeerAccess,needed"`
	MemcpyHtoDAsync     func(dst Pointer, src unsafe.Pointer, n uint64, s Stream) error                                                  `cuda:"cuMemcpyHtoDAsync_v2,needed"`
	MemcpyDtoHAsync     func(dst unsafe.Pointer, src Pointer, n uint64, s Stream) error                                                  `cuda:"cuMemcpyDtoHAsync_v2,needed"`
	MemcpyDtoDAsync     func(dst, src Pointer, n uint64, s Stream) error                                                                 `cuda:"cuMemcpyDtoDAsync_v2,needed"`
	MemHandleOfRange    func(fd *int32, p Pointer, n uint64, kind int32, flags uint64) error                                             `cuda:"cuMemGetHandleForAddressRange"`
	LinkCreate          func(n uint32, options *int32, values *uintptr, s *linker) error                                                 `cuda:"cuLinkCreate_v2"`
	LinkAddData         func(s linker, kind int32, data *byte, size uint64, name *byte, n uint32, options *int32, values *uintptr) error `cuda:"cuLinkAddData_v2"`
	LinkComplete        func(s linker, code *unsafe.Pointer, size *uint64) error                                                         `cuda:"cuLinkComplete"`
	LinkDestroy         func(s linker) error                                                                                             `cuda:"cuLinkDestroy"`
	GetErrorName        func(r Result, s *uintptr) Result                                                                                `cuda:"cuGetErrorName"`
	GetErrorString      func(r Result, s *uintptr) Result                                                                                `cuda:"cuGetErrorString"`
}

// CUDA is NVIDIA's driver API, libcuda.so.1. Signatures and constants are those of cuda.h as of CUDA 12.6; the names
// with a suffix (_v2) are the ones that the header maps the plain names to, and the plain ones would have 32-bit sizes.
type CUDA struct {
	Base

	c cudaCalls
}

// cudaNativeAtomics is a CUdevice_P2PAttribute, lazyPeerAccess is CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS (cuda.h).
const (
	cudaNativeAtomics  = 3
	cudaLazyPeerAccess = 1
)

func newCUDA(handle uintptr) *CUDA {
	names := Names{API: "cuda", Library: cudaLibrary, Init: "cuInit", Query: "cuStreamQuery", IPC: "cudaIpc"}
	d := &CUDA{Base: Base{Names: names, NativeAtomicsAttribute: cudaNativeAtomics, LazyPeerAccess: cudaLazyPeerAccess}}
	d.Describe = d.describe
	d.Bind(handle, "cuda", &d.Calls, &d.c)
	return d
}

// cudaLibrary is the name by which programs load the driver's library.
const cudaLibrary = "libcuda.so.1"

// LoadCUDA loads the library.
func LoadCUDA() (Driver, error) {
	handle, err := Open(cudaLibrary)
	if err != nil {
		return Driver{}, fmt.Errorf("load the CUDA driver: %w", err) // It names the file.
	}
	d := newCUDA(handle)
	return Driver{&d.Base, d}, nil
}

func (d *CUDA) describe(r Result) (name, text string) {
	name = cudaNames[r]
	var s uintptr
	if name == "" && d.c.GetErrorName != nil && d.c.GetErrorName(r, &s) == Success {
		name = Text(s)
	}
	if d.c.GetErrorString != nil && d.c.GetErrorString(r, &s) == Success {
		text = Text(s)
	}
	return cmp.Or(name, "CUDA_ERROR"), text
}

// cudaNames are the results whose names older drivers do not know (cuda.h).
var cudaNames = map[Result]string{
	StubLibrary:      "CUDA_ERROR_STUB_LIBRARY",
	SystemNotReady:   "CUDA_ERROR_SYSTEM_NOT_READY",
	DriverMismatch:   "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
	CompatNotSupport: "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
}

// Version returns the newest CUDA version that the driver serves, as 13.0.
func (d *CUDA) Version() (string, error) {
	var v int32
	err := d.c.DriverGetVersion(&v)
	return fmt.Sprintf("%d.%d", v/1000, v%1000/10), err
}

// Capability returns the compute capability, as 9.0.
func (d *CUDA) Capability(dev Device) string {
	major, err1 := d.Attribute(cudaComputeMajor, dev)
	minor, err2 := d.Attribute(cudaComputeMinor, dev)
	if err1 != nil || err2 != nil {
		return ""
	}
	return fmt.Sprintf("%d.%d", major, minor)
}

// Multiprocessors counts them.
func (d *CUDA) Multiprocessors(dev Device) (int, error) { return d.Attribute(cudaMultiprocessors, dev) }

// TimerHz is the rate of PTX's globaltimer, which counts nanoseconds.
func (d *CUDA) TimerHz(Device) float64 { return 1e9 }

// Retain returns the device's primary context.
func (d *CUDA) Retain(dev Device) (Context, error) {
	var c Context
	err := d.c.PrimaryCtxRetain(&c, dev)
	return c, err
}

// SetCurrent makes a context current on this thread, which the caller must have locked.
func (d *CUDA) SetCurrent(c Context) error { return d.c.CtxSetCurrent(c) }

// EnablePeer lets the current context access the memory of peer.
func (d *CUDA) EnablePeer(peer Context) error {
	return except(d.c.CtxEnablePeerAccess(peer, 0), PeerAlready)
}

// AllocShared is Alloc: running kernels can share all device memory.
func (d *CUDA) AllocShared(n uint64) (Pointer, error) { return d.Alloc(n) }

// CopyToDevice enqueues a copy from pinned host memory, which stays until the stream is done.
func (d *CUDA) CopyToDevice(dst Pointer, src []byte, s Stream) error {
	return d.c.MemcpyHtoDAsync(dst, unsafe.Pointer(&src[0]), uint64(len(src)), s)
}

// CopyToHost enqueues a copy to pinned host memory on a stream.
func (d *CUDA) CopyToHost(dst []byte, src Pointer, s Stream) error {
	return d.c.MemcpyDtoHAsync(unsafe.Pointer(&dst[0]), src, uint64(len(dst)), s)
}

// Copy enqueues a copy between devices on a stream, whose device drives it.
func (d *CUDA) Copy(dst, src Pointer, n uint64, s Stream) error {
	return d.c.MemcpyDtoDAsync(dst, src, n, s)
}

// LoadModule compiles PTX once for each model of GPU, and loads the code for the current context. If the linker gives
// none, the driver compiles it for this GPU alone, or says why it cannot.
func (d *CUDA) LoadModule(ptx string) (Module, error) {
	code, err := d.codeOf(ptx, d.link)
	if err != nil {
		code = append([]byte(ptx), 0)
	}
	return d.load(code)
}

// linker is a CUlinkState, linkPTX is CU_JIT_INPUT_PTX (cuda.h).
type linker uintptr

const linkPTX = 1

// link makes code of PTX for GPUs like the current one: 17 KiB for an H200.
func (d *CUDA) link(ptx string) ([]byte, error) {
	var s linker
	if err := d.c.LinkCreate(0, nil, nil, &s); err != nil {
		return nil, err
	}
	defer d.c.LinkDestroy(s) //nolint:errcheck // The process ends soon.
	if err := d.c.LinkAddData(s, linkPTX, CString(ptx), uint64(len(ptx)+1), CString("gpudoctor"), 0, nil, nil); err != nil {
		return nil, err
	}
	var at unsafe.Pointer
	var n uint64
	if err := d.c.LinkComplete(s, &at, &n); err != nil || at == nil || n == 0 || n > maxCode {
		return nil, cmp.Or(err, errNoCode)
	}
	return bytes.Clone(unsafe.Slice((*byte)(at), n)), nil // The linker owns it.
}

// dmaBuf is CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD.
const dmaBuf = 1

// DMABuf returns a file descriptor by which a NIC's driver can reach memory of Alloc; NotSupported if there is none.
func (d *CUDA) DMABuf(dev Device, p Pointer, n uint64) (fd int, err error) {
	var out int32
	err = d.c.MemHandleOfRange(&out, p, n, dmaBuf, 0)
	if failed, ok := errors.AsType[*Error](err); ok {
		if v, err := d.Attribute(cudaDMABuf, dev); err == nil && v == 0 {
			return -1, d.Fail(failed.Call, int32(NotSupported))
		}
	}
	return int(out), err
}
