// Package cuda is the door to NVIDIA's driver API, libcuda.so.1, bound at run
// time without a toolkit. It is to be used in a child process alone: a driver
// that hangs or crashes takes the process with it.
//
// Signatures and constants are those of cuda.h as of CUDA 12.6; the names with
// a suffix (_v2) are the ones that the header maps the plain names to, and the
// plain ones would have 32-bit sizes.
package cuda

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
)

type (
	// Result is what a function answers.
	Result = gpudriver.Result
	// Error is a call that failed.
	Error = gpudriver.Error
	// Device is a GPU.
	Device = gpudriver.Device
	// Context is what is made current on a thread.
	Context = gpudriver.Context
	// Stream is a queue of work.
	Stream = gpudriver.Stream
	// Event is a mark in a stream.
	Event = gpudriver.Event
	// Module is code that was loaded.
	Module = gpudriver.Module
	// Function is a kernel.
	Function = gpudriver.Function
	// Pointer is an address in a GPU's memory.
	Pointer = gpudriver.Pointer
	// IPCHandle is a handle of memory for other processes.
	IPCHandle = gpudriver.IPCHandle
	// Allocation is a CUmemGenericAllocationHandle.
	Allocation uint64
)

// attribute is a CUdevice_attribute.
type attribute int32

// The device attributes that the doctor asks for (cuda.h).
const (
	attributeMultiprocessors attribute = 16
	attributeComputeMajor    attribute = 75
	attributeComputeMinor    attribute = 76
	attributePOSIXHandle     attribute = 103
)

// peerAttribute is a CUdevice_P2PAttribute, whose numbers start at 1.
type peerAttribute int32

// memLocation is a CUmemLocation; type 1 is a device.
type memLocation struct{ kind, id int32 }

// allocationProp is a CUmemAllocationProp. Kind 1 is pinned; a handle type of 1
// is a POSIX file descriptor.
type allocationProp struct {
	kind, handleTypes int32
	location          memLocation
	_                 uintptr // win32HandleMetaData.
	_                 [8]byte // allocFlags.
}

// accessDesc is a CUmemAccessDesc; flags 3 is read and write.
type accessDesc struct {
	location memLocation
	flags    int32
}

// calls are the functions of the library; one that it lacks is nil.
type calls struct {
	Init                  func(flags uint32) Result
	DriverGetVersion      func(v *int32) Result
	DeviceGetCount        func(n *int32) Result
	DeviceGet             func(d *Device, ordinal int32) Result
	DeviceGetName         func(name *byte, n int32, d Device) Result
	DeviceGetPCIBusID     func(name *byte, n int32, d Device) Result
	DeviceGetAttribute    func(v *int32, a attribute, d Device) Result
	DeviceTotalMem        func(n *uint64, d Device) Result
	DeviceCanAccessPeer   func(can *int32, d, peer Device) Result
	DeviceGetP2PAttribute func(v *int32, a peerAttribute, src, dst Device) Result
	PrimaryCtxRetain      func(c *Context, d Device) Result
	CtxSetCurrent         func(c Context) Result
	CtxEnablePeerAccess   func(peer Context, flags uint32) Result
	MemAlloc              func(p *Pointer, n uint64) Result
	MemFree               func(p Pointer) Result
	MemHostAlloc          func(p *unsafe.Pointer, n uint64, flags uint32) Result
	MemHostRegister       func(p unsafe.Pointer, n uint64, flags uint32) Result
	MemHostUnregister     func(p unsafe.Pointer) Result
	MemcpyHtoDAsync       func(dst Pointer, src unsafe.Pointer, n uint64, s Stream) Result
	MemcpyDtoHAsync       func(dst unsafe.Pointer, src Pointer, n uint64, s Stream) Result
	MemcpyDtoDAsync       func(dst, src Pointer, n uint64, s Stream) Result
	MemsetD32Async        func(p Pointer, v uint32, n uint64, s Stream) Result
	StreamCreate          func(s *Stream, flags uint32) Result
	StreamQuery           func(s Stream) Result
	StreamWaitEvent       func(s Stream, e Event, flags uint32) Result
	EventCreate           func(e *Event, flags uint32) Result
	EventRecord           func(e Event, s Stream) Result
	EventElapsedTime      func(ms *float32, a, b Event) Result
	ModuleLoadData        func(m *Module, image unsafe.Pointer) Result
	ModuleGetFunction     func(f *Function, m Module, name *byte) Result
	LaunchKernel          func(f Function, gx, gy, gz, bx, by, bz, shared uint32, s Stream, params, extra unsafe.Pointer) Result
	MemGranularity        func(n *uint64, p *allocationProp, flags int32) Result
	MemCreate             func(h *Allocation, n uint64, p *allocationProp, flags uint64) Result
	MemAddressReserve     func(p *Pointer, n, align uint64, at Pointer, flags uint64) Result
	MemMap                func(p Pointer, n, offset uint64, h Allocation, flags uint64) Result
	MemSetAccess          func(p Pointer, n uint64, d *accessDesc, count uint64) Result
	MemExport             func(out *int32, h Allocation, kind int32, flags uint64) Result
	MemImport             func(h *Allocation, fd uintptr, kind int32) Result
	IpcGetMemHandle       func(h *IPCHandle, p Pointer) Result
	IpcOpenMemHandle      func(p *Pointer, h IPCHandle, flags uint32) Result
	GetErrorName          func(r Result, s *uintptr) Result
	GetErrorString        func(r Result, s *uintptr) Result
}

// Driver is the loaded library.
type Driver struct {
	c       calls
	missing map[string]bool
}

// Library is the name by which programs load the driver's library.
const Library = "libcuda.so.1"

// API is the name of the interface, as reports give it.
func (d *Driver) API() string { return "cuda" }

// Library is the name of the library that was loaded.
func (d *Driver) Library() string { return Library }

// InitCall is the function that starts the library.
func (d *Driver) InitCall() string { return "cuInit" }

// Load loads the library. Its functions are looked up one by one, so that a
// driver that lacks a newer one is still of use.
func Load() (*Driver, error) {
	handle, err := gpudriver.Open(Library)
	if err != nil {
		return nil, fmt.Errorf("load the CUDA driver: %w", err) // It names the file.
	}
	d := &Driver{missing: make(map[string]bool)}
	c := &d.c
	for name, fn := range map[string]any{
		"cuInit": &c.Init, "cuDriverGetVersion": &c.DriverGetVersion,
		"cuDeviceGetCount": &c.DeviceGetCount, "cuDeviceGet": &c.DeviceGet,
		"cuDeviceGetName": &c.DeviceGetName, "cuDeviceGetPCIBusId": &c.DeviceGetPCIBusID,
		"cuDeviceGetAttribute": &c.DeviceGetAttribute, "cuDeviceTotalMem_v2": &c.DeviceTotalMem,
		"cuDeviceCanAccessPeer": &c.DeviceCanAccessPeer, "cuDeviceGetP2PAttribute": &c.DeviceGetP2PAttribute,
		"cuDevicePrimaryCtxRetain": &c.PrimaryCtxRetain,
		"cuCtxSetCurrent":          &c.CtxSetCurrent, "cuCtxEnablePeerAccess": &c.CtxEnablePeerAccess,
		"cuMemAlloc_v2": &c.MemAlloc, "cuMemFree_v2": &c.MemFree,
		"cuMemHostAlloc":       &c.MemHostAlloc,
		"cuMemHostRegister_v2": &c.MemHostRegister, "cuMemHostUnregister": &c.MemHostUnregister,
		"cuMemcpyHtoDAsync_v2": &c.MemcpyHtoDAsync, "cuMemcpyDtoHAsync_v2": &c.MemcpyDtoHAsync,
		"cuMemcpyDtoDAsync_v2": &c.MemcpyDtoDAsync, "cuMemsetD32Async": &c.MemsetD32Async,
		"cuStreamCreate": &c.StreamCreate, "cuStreamQuery": &c.StreamQuery, "cuStreamWaitEvent": &c.StreamWaitEvent,
		"cuEventCreate": &c.EventCreate, "cuEventRecord": &c.EventRecord, "cuEventElapsedTime": &c.EventElapsedTime,
		"cuModuleLoadData": &c.ModuleLoadData, "cuModuleGetFunction": &c.ModuleGetFunction, "cuLaunchKernel": &c.LaunchKernel,
		"cuMemGetAllocationGranularity": &c.MemGranularity, "cuMemCreate": &c.MemCreate,
		"cuMemAddressReserve": &c.MemAddressReserve, "cuMemMap": &c.MemMap, "cuMemSetAccess": &c.MemSetAccess,
		"cuMemExportToShareableHandle": &c.MemExport, "cuMemImportFromShareableHandle": &c.MemImport,
		"cuIpcGetMemHandle": &c.IpcGetMemHandle, "cuIpcOpenMemHandle_v2": &c.IpcOpenMemHandle,
		"cuGetErrorName": &c.GetErrorName, "cuGetErrorString": &c.GetErrorString,
	} {
		d.missing[name] = !gpudriver.Bind(handle, name, fn)
	}
	return d, nil
}

// Missing reports the functions that the library lacks, without which nothing
// can be done.
func (d *Driver) Missing() []string { return gpudriver.Lacking(needed, d.missing) }

// needed are the functions without which nothing can be done.
var needed = []string{
	"cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetPCIBusId", "cuDeviceCanAccessPeer", "cuDevicePrimaryCtxRetain",
	"cuCtxSetCurrent", "cuCtxEnablePeerAccess", "cuMemAlloc_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
	"cuMemcpyDtoDAsync_v2", "cuMemsetD32Async", "cuStreamCreate", "cuStreamQuery", "cuEventCreate", "cuEventRecord", "cuEventElapsedTime",
}

// check turns a result into an error that names the call.
func (d *Driver) check(call string, r Result) error {
	if r == gpudriver.Success {
		return nil
	}
	e := &Error{Call: call, Result: r, Name: names[r]}
	var s uintptr
	if e.Name == "" && d.c.GetErrorName != nil && d.c.GetErrorName(r, &s) == gpudriver.Success {
		e.Name = gpudriver.Text(s)
	}
	if e.Name == "" {
		e.Name = "CUDA_ERROR"
	}
	if d.c.GetErrorString != nil && d.c.GetErrorString(r, &s) == gpudriver.Success {
		e.Text = gpudriver.Text(s)
	}
	return e
}

// names are the results whose names older drivers do not tell (cuda.h).
var names = map[Result]string{
	gpudriver.StubLibrary:      "CUDA_ERROR_STUB_LIBRARY",
	gpudriver.SystemNotReady:   "CUDA_ERROR_SYSTEM_NOT_READY",
	gpudriver.DriverMismatch:   "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
	gpudriver.CompatNotSupport: "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
}

// Init initialises the driver.
func (d *Driver) Init() error { return d.check("cuInit", d.c.Init(0)) }

// Version returns the newest CUDA version that the driver serves, as 13.0.
func (d *Driver) Version() (string, error) {
	if d.c.DriverGetVersion == nil {
		return "", gpudriver.Missing("cuDriverGetVersion")
	}
	var v int32
	err := d.check("cuDriverGetVersion", d.c.DriverGetVersion(&v))
	return fmt.Sprintf("%d.%d", v/1000, v%1000/10), err
}

// Devices returns the devices that the driver offers to this process.
func (d *Driver) Devices() ([]Device, error) {
	var n int32
	if err := d.check("cuDeviceGetCount", d.c.DeviceGetCount(&n)); err != nil {
		return nil, err
	}
	devices := make([]Device, n)
	for i := range devices {
		if err := d.check("cuDeviceGet", d.c.DeviceGet(&devices[i], int32(i))); err != nil {
			return nil, err
		}
	}
	return devices, nil
}

// Name returns the model's name.
func (d *Driver) Name(dev Device) (string, error) {
	if d.c.DeviceGetName == nil {
		return "", gpudriver.Missing("cuDeviceGetName")
	}
	var b [256]byte
	err := d.check("cuDeviceGetName", d.c.DeviceGetName(&b[0], int32(len(b)), dev))
	return gpudriver.String(b[:]), err
}

// Address returns the PCI address, lower case.
func (d *Driver) Address(dev Device) (string, error) {
	var b [32]byte
	err := d.check("cuDeviceGetPCIBusId", d.c.DeviceGetPCIBusID(&b[0], int32(len(b)), dev))
	return strings.ToLower(gpudriver.String(b[:])), err
}

// Capability returns the compute capability, as 9.0.
func (d *Driver) Capability(dev Device) string {
	major, err1 := d.attribute(attributeComputeMajor, dev)
	minor, err2 := d.attribute(attributeComputeMinor, dev)
	if err1 != nil || err2 != nil {
		return ""
	}
	return fmt.Sprintf("%d.%d", major, minor)
}

// Multiprocessors counts them.
func (d *Driver) Multiprocessors(dev Device) (int, error) {
	return d.attribute(attributeMultiprocessors, dev)
}

// TimerHz is the rate of PTX's globaltimer, which counts nanoseconds.
func (d *Driver) TimerHz(Device) float64 { return 1e9 }

// attribute returns an attribute of a device.
func (d *Driver) attribute(a attribute, dev Device) (int, error) {
	if d.c.DeviceGetAttribute == nil {
		return 0, gpudriver.Missing("cuDeviceGetAttribute")
	}
	var v int32
	err := d.check("cuDeviceGetAttribute", d.c.DeviceGetAttribute(&v, a, dev))
	return int(v), err
}

// TotalMemory returns the size of a device's memory in bytes.
func (d *Driver) TotalMemory(dev Device) (uint64, error) {
	if d.c.DeviceTotalMem == nil {
		return 0, gpudriver.Missing("cuDeviceTotalMem_v2")
	}
	var n uint64
	err := d.check("cuDeviceTotalMem", d.c.DeviceTotalMem(&n, dev))
	return n, err
}

// CanAccessPeer reports whether dev may reach the memory of peer.
func (d *Driver) CanAccessPeer(dev, peer Device) (bool, error) {
	var can int32
	err := d.check("cuDeviceCanAccessPeer", d.c.DeviceCanAccessPeer(&can, dev, peer))
	return can != 0, err
}

// PeerAttribute returns an attribute of an ordered pair.
func (d *Driver) PeerAttribute(a gpudriver.PeerAttribute, src, dst Device) (int, error) {
	if d.c.DeviceGetP2PAttribute == nil {
		return 0, gpudriver.Missing("cuDeviceGetP2PAttribute")
	}
	var v int32
	err := d.check("cuDeviceGetP2PAttribute", d.c.DeviceGetP2PAttribute(&v, peerAttribute(a)+1, src, dst))
	return int(v), err
}

// Retain returns the device's primary context.
func (d *Driver) Retain(dev Device) (Context, error) {
	var c Context
	err := d.check("cuDevicePrimaryCtxRetain", d.c.PrimaryCtxRetain(&c, dev))
	return c, err
}

// SetCurrent makes a context current on this thread, which the caller must
// have locked.
func (d *Driver) SetCurrent(c Context) error {
	return d.check("cuCtxSetCurrent", d.c.CtxSetCurrent(c))
}

// EnablePeer lets the current context reach the memory of peer's.
func (d *Driver) EnablePeer(peer Context) error {
	r := d.c.CtxEnablePeerAccess(peer, 0)
	if r == gpudriver.PeerAlready {
		return nil
	}
	return d.check("cuCtxEnablePeerAccess", r)
}

// Alloc allocates device memory in the current context.
func (d *Driver) Alloc(n uint64) (Pointer, error) {
	var p Pointer
	err := d.check("cuMemAlloc", d.c.MemAlloc(&p, n))
	return p, err
}

// AllocShared is Alloc: all device memory serves kernels that run.
func (d *Driver) AllocShared(n uint64) (Pointer, error) { return d.Alloc(n) }

// Free frees device memory.
func (d *Driver) Free(p Pointer) error {
	if d.c.MemFree == nil {
		return gpudriver.Missing("cuMemFree_v2")
	}
	return d.check("cuMemFree", d.c.MemFree(p))
}

// portable makes pinned memory pinned for every context
// (CU_MEMHOSTALLOC_PORTABLE and CU_MEMHOSTREGISTER_PORTABLE).
const portable = 1

// AllocHost allocates n bytes of pinned host memory, known to all contexts.
func (d *Driver) AllocHost(n uint64) ([]byte, error) {
	if d.c.MemHostAlloc == nil {
		return nil, gpudriver.Missing("cuMemHostAlloc")
	}
	var p unsafe.Pointer
	if err := d.check("cuMemHostAlloc", d.c.MemHostAlloc(&p, n, portable)); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), n), nil
}

// RegisterHost pins memory that the caller mapped.
func (d *Driver) RegisterHost(b []byte) error {
	if d.c.MemHostRegister == nil {
		return gpudriver.Missing("cuMemHostRegister_v2")
	}
	return d.check("cuMemHostRegister", d.c.MemHostRegister(unsafe.Pointer(&b[0]), uint64(len(b)), portable))
}

// UnregisterHost undoes RegisterHost.
func (d *Driver) UnregisterHost(b []byte) error {
	if d.c.MemHostUnregister == nil {
		return gpudriver.Missing("cuMemHostUnregister")
	}
	return d.check("cuMemHostUnregister", d.c.MemHostUnregister(unsafe.Pointer(&b[0])))
}

// CopyToDevice puts a copy from pinned host memory into a stream. The memory
// must stay until the stream is done, and must not be Go's own.
func (d *Driver) CopyToDevice(dst Pointer, src []byte, s Stream) error {
	return d.check("cuMemcpyHtoDAsync", d.c.MemcpyHtoDAsync(dst, unsafe.Pointer(&src[0]), uint64(len(src)), s))
}

// CopyToHost puts a copy to pinned host memory into a stream.
func (d *Driver) CopyToHost(dst []byte, src Pointer, s Stream) error {
	return d.check("cuMemcpyDtoHAsync", d.c.MemcpyDtoHAsync(unsafe.Pointer(&dst[0]), src, uint64(len(dst)), s))
}

// Copy puts a copy between devices into a stream, whose device drives it.
func (d *Driver) Copy(dst, src Pointer, n uint64, s Stream) error {
	return d.check("cuMemcpyDtoDAsync", d.c.MemcpyDtoDAsync(dst, src, n, s))
}

// Set32 puts filling n words of 4 bytes into a stream.
func (d *Driver) Set32(p Pointer, v uint32, n uint64, s Stream) error {
	return d.check("cuMemsetD32Async", d.c.MemsetD32Async(p, v, n, s))
}

// NewStream creates a stream in the current context that does not wait for
// the default one (CU_STREAM_NON_BLOCKING is 1).
func (d *Driver) NewStream() (Stream, error) {
	var s Stream
	err := d.check("cuStreamCreate", d.c.StreamCreate(&s, 1))
	return s, err
}

// Done reports whether all work of a stream is done.
func (d *Driver) Done(s Stream) (bool, error) {
	r := d.c.StreamQuery(s)
	if r == gpudriver.NotReady {
		return false, nil
	}
	return r == gpudriver.Success, d.check("cuStreamQuery", r)
}

// Wait makes a stream wait for an event.
func (d *Driver) Wait(s Stream, e Event) error {
	if d.c.StreamWaitEvent == nil {
		return gpudriver.Missing("cuStreamWaitEvent")
	}
	return d.check("cuStreamWaitEvent", d.c.StreamWaitEvent(s, e, 0))
}

// NewEvent creates an event with a time in the current context.
func (d *Driver) NewEvent() (Event, error) {
	var e Event
	err := d.check("cuEventCreate", d.c.EventCreate(&e, 0))
	return e, err
}

// Record puts an event into a stream.
func (d *Driver) Record(e Event, s Stream) error {
	return d.check("cuEventRecord", d.c.EventRecord(e, s))
}

// Seconds returns the time between two events that are done.
func (d *Driver) Seconds(a, b Event) (float64, error) {
	var ms float32
	err := d.check("cuEventElapsedTime", d.c.EventElapsedTime(&ms, a, b))
	return float64(ms) / 1e3, err
}

// LoadModule gives PTX to the driver's compiler, for the current context.
func (d *Driver) LoadModule(ptx string) (Module, error) {
	if d.c.ModuleLoadData == nil || d.c.ModuleGetFunction == nil || d.c.LaunchKernel == nil {
		return 0, gpudriver.Missing("cuModuleLoadData")
	}
	var m Module
	err := d.check("cuModuleLoadData", d.c.ModuleLoadData(&m, unsafe.Pointer(gpudriver.CString(ptx))))
	return m, err
}

// Function finds a kernel in a module.
func (d *Driver) Function(m Module, name string) (Function, error) {
	var f Function
	err := d.check("cuModuleGetFunction", d.c.ModuleGetFunction(&f, m, gpudriver.CString(name)))
	return f, err
}

// Launch puts a kernel into a stream. Every parameter of our kernels is 64
// bits wide.
func (d *Driver) Launch(f Function, blocks, threads uint32, s Stream, params ...uint64) error {
	return d.check("cuLaunchKernel", d.c.LaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, s, gpudriver.Params(params), nil))
}

// IPCWay is the name of this way to another process.
func (d *Driver) IPCWay() string { return "cudaIpc" }

// IPCHandle returns the handle by which another process can open memory of
// Alloc.
func (d *Driver) IPCHandle(p Pointer) (IPCHandle, error) {
	var h IPCHandle
	if d.c.IpcGetMemHandle == nil {
		return h, gpudriver.Missing("cuIpcGetMemHandle")
	}
	err := d.check("cuIpcGetMemHandle", d.c.IpcGetMemHandle(&h, p))
	return h, err
}

// OpenIPC maps another process's memory into the current context
// (CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS is 1).
func (d *Driver) OpenIPC(h IPCHandle) (Pointer, error) {
	if d.c.IpcOpenMemHandle == nil {
		return 0, gpudriver.Missing("cuIpcOpenMemHandle_v2")
	}
	var p Pointer
	err := d.check("cuIpcOpenMemHandle", d.c.IpcOpenMemHandle(&p, h, 1))
	return p, err
}

// posixHandle is CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.
const posixHandle = 1

// CanExport reports whether a device's memory can be given by a file descriptor.
func (d *Driver) CanExport(dev Device) bool {
	v, err := d.attribute(attributePOSIXHandle, dev)
	return err == nil && v != 0
}

// hasVMM reports whether the library has the calls of Exportable and Import.
func (d *Driver) hasVMM() bool {
	c := &d.c
	return c.MemGranularity != nil && c.MemCreate != nil && c.MemAddressReserve != nil && c.MemMap != nil &&
		c.MemSetAccess != nil && c.MemExport != nil && c.MemImport != nil
}

// Exportable allocates at least n bytes on a device by the virtual memory
// calls, mapped for that device, and returns a file descriptor by which
// another process can import them, and the size.
func (d *Driver) Exportable(dev Device, n uint64) (p Pointer, size uint64, fd int, err error) {
	if !d.hasVMM() {
		return 0, 0, -1, gpudriver.Missing("cuMemCreate")
	}
	prop := allocationProp{kind: 1, handleTypes: posixHandle, location: memLocation{1, int32(dev)}}
	var granularity uint64
	if err := d.check("cuMemGetAllocationGranularity", d.c.MemGranularity(&granularity, &prop, 0)); err != nil {
		return 0, 0, -1, err
	}
	size = (n + granularity - 1) / granularity * granularity
	var h Allocation
	if err := d.check("cuMemCreate", d.c.MemCreate(&h, size, &prop, 0)); err != nil {
		return 0, 0, -1, err
	}
	var out int32
	if err := d.check("cuMemExportToShareableHandle", d.c.MemExport(&out, h, posixHandle, 0)); err != nil {
		return 0, 0, -1, err
	}
	p, err = d.mapAllocation(h, size, dev)
	return p, size, int(out), err
}

// Import maps an allocation that another process exported for use by dev.
func (d *Driver) Import(fd int, size uint64, dev Device) (Pointer, error) {
	if !d.hasVMM() {
		return 0, gpudriver.Missing("cuMemImportFromShareableHandle")
	}
	var h Allocation
	if err := d.check("cuMemImportFromShareableHandle", d.c.MemImport(&h, uintptr(fd), posixHandle)); err != nil {
		return 0, err
	}
	return d.mapAllocation(h, size, dev)
}

func (d *Driver) mapAllocation(h Allocation, size uint64, dev Device) (Pointer, error) {
	var p Pointer
	if err := d.check("cuMemAddressReserve", d.c.MemAddressReserve(&p, size, 0, 0, 0)); err != nil {
		return 0, err
	}
	if err := d.check("cuMemMap", d.c.MemMap(p, size, 0, h, 0)); err != nil {
		return 0, err
	}
	desc := accessDesc{location: memLocation{1, int32(dev)}, flags: 3}
	return p, d.check("cuMemSetAccess", d.c.MemSetAccess(p, size, &desc, 1))
}
