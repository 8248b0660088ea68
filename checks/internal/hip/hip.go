// Package hip is the door to AMD's HIP runtime, libamdhip64, bound at run time
// without an installation of ROCm. It is to be used in a child process alone: a
// driver that hangs or crashes takes the process with it.
//
// Signatures and constants are those of hip_runtime_api.h of ROCm 5.2 to 7
// (ROCm/HIP rocm-5.2.3, rocm-5.7.1, rocm-6.0.0, rocm-6.2.2; ROCm/rocm-systems
// projects/hip). What differs between these versions is said where it is used;
// another major version is refused.
package hip

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
)

type (
	// Result is what a function answers.
	Result = gpudriver.Result
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
)

// The numbers of hip_runtime_api.h. hipDeviceAttributeWallClockRate came with
// ROCm 5.3; all others have been the same since 5.2.
const (
	attributeMultiprocessors = 63    // hipDeviceAttributeMultiprocessorCount
	attributeWallClockRate   = 10017 // hipDeviceAttributeWallClockRate, in kHz

	hostToDevice   = 1 // hipMemcpyHostToDevice
	deviceToHost   = 2 // hipMemcpyDeviceToHost
	deviceToDevice = 3 // hipMemcpyDeviceToDevice

	streamNonBlocking = 1 // hipStreamNonBlocking
	portable          = 1 // hipHostMallocPortable, hipHostRegisterPortable
	fineGrained       = 1 // hipDeviceMallocFinegrained
)

// oldest and newest are the major versions of HIP that this door knows.
const (
	oldest = 5
	newest = 7
)

// wallClockHz is the rate of the counter behind wall_clock64 where the library
// does not tell it: 100 MHz on CDNA and RDNA (HIP documentation, «Timer function»).
const wallClockHz = 100e6

// calls are the functions of the library; one that it lacks is nil.
type calls struct {
	Init                  func(flags uint32) Result
	RuntimeGetVersion     func(v *int32) Result
	GetDeviceCount        func(n *int32) Result
	DeviceGet             func(d *Device, ordinal int32) Result
	DeviceGetName         func(name *byte, n int32, d Device) Result
	DeviceGetPCIBusID     func(name *byte, n, d int32) Result
	DeviceGetAttribute    func(v *int32, a, d int32) Result
	DeviceTotalMem        func(n *uint64, d Device) Result
	DeviceCanAccessPeer   func(can *int32, d, peer int32) Result
	DeviceGetP2PAttribute func(v *int32, a, src, dst int32) Result
	SetDevice             func(d int32) Result
	GetDevice             func(d *int32) Result
	EnablePeerAccess      func(peer int32, flags uint32) Result
	Malloc                func(p *Pointer, n uint64) Result
	ExtMallocWithFlags    func(p *Pointer, n uint64, flags uint32) Result
	Free                  func(p Pointer) Result
	HostMalloc            func(p *unsafe.Pointer, n uint64, flags uint32) Result
	HostRegister          func(p unsafe.Pointer, n uint64, flags uint32) Result
	HostUnregister        func(p unsafe.Pointer) Result
	MemcpyAsync           func(dst, src unsafe.Pointer, n uint64, kind int32, s Stream) Result
	MemcpyPeerAsync       func(dst Pointer, dstDevice int32, src Pointer, srcDevice int32, n uint64, s Stream) Result
	MemsetD32Async        func(p Pointer, v int32, n uint64, s Stream) Result
	StreamCreate          func(s *Stream, flags uint32) Result
	StreamQuery           func(s Stream) Result
	StreamWaitEvent       func(s Stream, e Event, flags uint32) Result
	EventCreate           func(e *Event, flags uint32) Result
	EventRecord           func(e Event, s Stream) Result
	EventElapsedTime      func(ms *float32, a, b Event) Result
	ModuleLoadData        func(m *Module, image unsafe.Pointer) Result
	ModuleGetFunction     func(f *Function, m Module, name *byte) Result
	ModuleLaunchKernel    func(f Function, gx, gy, gz, bx, by, bz, shared uint32, s Stream, params, extra unsafe.Pointer) Result
	IpcGetMemHandle       func(h *IPCHandle, p Pointer) Result
	IpcOpenMemHandle      func(p *Pointer, h IPCHandle, flags uint32) Result
	GetErrorName          func(r Result) uintptr
	GetErrorString        func(r Result) uintptr

	// The compiler, hiprtc: of libamdhip64 itself, or of libhiprtc.
	CreateProgram  func(p *uintptr, source, name *byte, headers int32, texts, names unsafe.Pointer) Result
	CompileProgram func(p uintptr, options int32, texts unsafe.Pointer) Result
	GetCodeSize    func(p uintptr, n *uint64) Result
	GetCode        func(p uintptr, code *byte) Result
	GetLogSize     func(p uintptr, n *uint64) Result
	GetLog         func(p uintptr, log *byte) Result
	DestroyProgram func(p *uintptr) Result
}

// functions are the library's, by name, with what each is bound to. The compiler's
// are apart: they may lie in a library of their own.
func functions(c *calls) (runtime, compiler map[string]any) {
	runtime = map[string]any{
		"hipInit": &c.Init, "hipRuntimeGetVersion": &c.RuntimeGetVersion,
		"hipGetDeviceCount": &c.GetDeviceCount, "hipDeviceGet": &c.DeviceGet,
		"hipDeviceGetName": &c.DeviceGetName, "hipDeviceGetPCIBusId": &c.DeviceGetPCIBusID,
		"hipDeviceGetAttribute": &c.DeviceGetAttribute, "hipDeviceTotalMem": &c.DeviceTotalMem,
		"hipDeviceCanAccessPeer": &c.DeviceCanAccessPeer, "hipDeviceGetP2PAttribute": &c.DeviceGetP2PAttribute,
		"hipSetDevice": &c.SetDevice, "hipGetDevice": &c.GetDevice, "hipDeviceEnablePeerAccess": &c.EnablePeerAccess,
		"hipMalloc": &c.Malloc, "hipExtMallocWithFlags": &c.ExtMallocWithFlags, "hipFree": &c.Free,
		"hipHostMalloc": &c.HostMalloc, "hipHostRegister": &c.HostRegister, "hipHostUnregister": &c.HostUnregister,
		"hipMemcpyAsync": &c.MemcpyAsync, "hipMemcpyPeerAsync": &c.MemcpyPeerAsync, "hipMemsetD32Async": &c.MemsetD32Async,
		"hipStreamCreateWithFlags": &c.StreamCreate, "hipStreamQuery": &c.StreamQuery, "hipStreamWaitEvent": &c.StreamWaitEvent,
		"hipEventCreateWithFlags": &c.EventCreate, "hipEventRecord": &c.EventRecord, "hipEventElapsedTime": &c.EventElapsedTime,
		"hipModuleLoadData": &c.ModuleLoadData, "hipModuleGetFunction": &c.ModuleGetFunction, "hipModuleLaunchKernel": &c.ModuleLaunchKernel,
		"hipIpcGetMemHandle": &c.IpcGetMemHandle, "hipIpcOpenMemHandle": &c.IpcOpenMemHandle,
		"hipGetErrorName": &c.GetErrorName, "hipGetErrorString": &c.GetErrorString,
	}
	compiler = map[string]any{
		"hiprtcCreateProgram": &c.CreateProgram, "hiprtcCompileProgram": &c.CompileProgram,
		"hiprtcGetCodeSize": &c.GetCodeSize, "hiprtcGetCode": &c.GetCode,
		"hiprtcGetProgramLogSize": &c.GetLogSize, "hiprtcGetProgramLog": &c.GetLog, "hiprtcDestroyProgram": &c.DestroyProgram,
	}
	return runtime, compiler
}

// needed are the functions without which nothing can be done.
var needed = []string{
	"hipInit", "hipRuntimeGetVersion", "hipGetDeviceCount", "hipDeviceGet", "hipDeviceGetPCIBusId", "hipDeviceCanAccessPeer",
	"hipSetDevice", "hipDeviceEnablePeerAccess", "hipMalloc", "hipMemcpyAsync", "hipMemcpyPeerAsync", "hipMemsetD32Async",
	"hipStreamCreateWithFlags", "hipStreamQuery", "hipEventCreateWithFlags", "hipEventRecord", "hipEventElapsedTime",
}

// Driver is the loaded library.
type Driver struct {
	c       calls
	library string
	missing map[string]bool
	major   int
	// owners are the allocations of this process, so that a copy between two
	// devices can name both.
	mu     sync.Mutex
	owners []allocation
	// code is what the compiler made, by model: it takes a second for each.
	code map[string][]byte
}

type allocation struct {
	at     Pointer
	size   uint64
	device int32
}

// libraries are the names under which the runtime is looked for: what programs of
// each major version ask the loader for, and the place where ROCm is installed
// without telling the loader.
var libraries = []string{
	"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so",
	"/opt/rocm/lib/libamdhip64.so.7", "/opt/rocm/lib/libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so",
}

// Load loads the library. Its functions are looked up one by one, so that one that
// lacks a newer one is still of use.
func Load() (*Driver, error) {
	var first error
	for _, name := range libraries {
		handle, err := gpudriver.Open(name)
		if err != nil {
			if first == nil || !strings.Contains(err.Error(), "cannot open shared object file") {
				first = err // One that is there and does not load tells more.
			}
			continue
		}
		d := &Driver{library: name, missing: make(map[string]bool), code: make(map[string][]byte)}
		d.bind(handle)
		return d, nil
	}
	return nil, fmt.Errorf("load libamdhip64: %w", first)
}

// bind finds the functions.
func (d *Driver) bind(handle uintptr) {
	runtime, compiler := functions(&d.c)
	for name, fn := range runtime {
		d.register(handle, name, fn)
	}
	// ROCm 7 takes the compiler out of libamdhip64; since 5.x there is a libhiprtc.
	with := handle
	if !gpudriver.Has(handle, "hiprtcCreateProgram") {
		dir := d.library[:strings.LastIndexByte(d.library, '/')+1]
		_, version, _ := strings.Cut(d.library, ".so")
		suffix := ".so" + version
		for _, name := range []string{dir + "libhiprtc" + suffix, "libhiprtc" + suffix} {
			if own, err := gpudriver.Open(name); err == nil {
				with = own
				break
			}
		}
	}
	for name, fn := range compiler {
		d.register(with, name, fn)
	}
}

func (d *Driver) register(handle uintptr, name string, fn any) {
	d.missing[name] = !gpudriver.Bind(handle, name, fn)
}

// API is the name of the interface, as reports give it.
func (d *Driver) API() string { return "hip" }

// Library is the name of the library that was loaded.
func (d *Driver) Library() string { return d.library }

// InitCall is the function that starts the library.
func (d *Driver) InitCall() string { return "hipInit" }

// Missing reports the functions that the library lacks, without which nothing
// can be done.
func (d *Driver) Missing() []string { return gpudriver.Lacking(needed, d.missing) }

// check turns a result into an error that names the call.
func (d *Driver) check(call string, r Result) error {
	if r == gpudriver.Success {
		return nil
	}
	e := &gpudriver.Error{Call: call, Result: r}
	if d.c.GetErrorName != nil {
		e.Name = gpudriver.Text(d.c.GetErrorName(r))
	}
	if e.Name == "" {
		e.Name = "hipError"
	}
	if d.c.GetErrorString != nil {
		e.Text = gpudriver.Text(d.c.GetErrorString(r))
	}
	return e
}

// Init initialises the runtime.
func (d *Driver) Init() error { return d.check("hipInit", d.c.Init(0)) }

// Version returns the version of HIP, as 6.2.41133.
func (d *Driver) Version() (string, error) {
	var v int32
	if err := d.check("hipRuntimeGetVersion", d.c.RuntimeGetVersion(&v)); err != nil {
		return "", err
	}
	// HIP_VERSION is major * 10^7 + minor * 10^5 + patch.
	d.major = int(v / 1e7)
	version := fmt.Sprintf("%d.%d.%d", d.major, v/1e5%100, v%1e5)
	if d.major < oldest || d.major > newest {
		return version, fmt.Errorf("HIP %s: %w, which are %d to %d", version, gpudriver.ErrVersion, oldest, newest)
	}
	return version, nil
}

// Devices returns the devices that the runtime offers to this process.
func (d *Driver) Devices() ([]Device, error) {
	var n int32
	if err := d.check("hipGetDeviceCount", d.c.GetDeviceCount(&n)); err != nil {
		return nil, err
	}
	devices := make([]Device, n)
	for i := range devices {
		if err := d.check("hipDeviceGet", d.c.DeviceGet(&devices[i], int32(i))); err != nil {
			return nil, err
		}
	}
	return devices, nil
}

// Name returns the model's name.
func (d *Driver) Name(dev Device) (string, error) {
	if d.c.DeviceGetName == nil {
		return "", gpudriver.Missing("hipDeviceGetName")
	}
	var b [256]byte
	err := d.check("hipDeviceGetName", d.c.DeviceGetName(&b[0], int32(len(b)), dev))
	return gpudriver.String(b[:]), err
}

// Address returns the PCI address, lower case.
func (d *Driver) Address(dev Device) (string, error) {
	var b [32]byte
	err := d.check("hipDeviceGetPCIBusId", d.c.DeviceGetPCIBusID(&b[0], int32(len(b)), int32(dev)))
	return strings.ToLower(gpudriver.String(b[:])), err
}

// Capability is nothing that AMD's GPUs have.
func (d *Driver) Capability(Device) string { return "" }

func (d *Driver) attribute(a int32, dev Device) (int, error) {
	if d.c.DeviceGetAttribute == nil {
		return 0, gpudriver.Missing("hipDeviceGetAttribute")
	}
	var v int32
	err := d.check("hipDeviceGetAttribute", d.c.DeviceGetAttribute(&v, a, int32(dev)))
	return int(v), err
}

// Multiprocessors counts the compute units.
func (d *Driver) Multiprocessors(dev Device) (int, error) {
	return d.attribute(attributeMultiprocessors, dev)
}

// TimerHz is the rate of wall_clock64.
func (d *Driver) TimerHz(dev Device) float64 {
	if khz, err := d.attribute(attributeWallClockRate, dev); err == nil && khz > 0 {
		return 1e3 * float64(khz)
	}
	return wallClockHz
}

// TotalMemory returns the size of a device's memory in bytes.
func (d *Driver) TotalMemory(dev Device) (uint64, error) {
	if d.c.DeviceTotalMem == nil {
		return 0, gpudriver.Missing("hipDeviceTotalMem")
	}
	var n uint64
	err := d.check("hipDeviceTotalMem", d.c.DeviceTotalMem(&n, dev))
	return n, err
}

// CanAccessPeer reports whether dev may reach the memory of peer.
func (d *Driver) CanAccessPeer(dev, peer Device) (bool, error) {
	var can int32
	err := d.check("hipDeviceCanAccessPeer", d.c.DeviceCanAccessPeer(&can, int32(dev), int32(peer)))
	return can != 0, err
}

// PeerAttribute returns an attribute of an ordered pair. HIP's numbers start at 0
// (hipDevP2PAttrPerformanceRank), as the door's own do.
func (d *Driver) PeerAttribute(a gpudriver.PeerAttribute, src, dst Device) (int, error) {
	if d.c.DeviceGetP2PAttribute == nil {
		return 0, gpudriver.Missing("hipDeviceGetP2PAttribute")
	}
	var v int32
	err := d.check("hipDeviceGetP2PAttribute", d.c.DeviceGetP2PAttribute(&v, int32(a), int32(src), int32(dst)))
	return int(v), err
}

// Retain makes a device ready. The runtime does that at the first call that needs
// it, such as giving back nothing.
func (d *Driver) Retain(dev Device) (Context, error) {
	if err := d.check("hipSetDevice", d.c.SetDevice(int32(dev))); err != nil {
		return 0, err
	}
	if d.c.Free != nil {
		if err := d.check("hipFree", d.c.Free(0)); err != nil {
			return 0, err
		}
	}
	return Context(dev) + 1, nil
}

// device is the device of a context.
func device(c Context) int32 { return int32(c) - 1 }

// SetCurrent makes a device current on this thread, which the caller must have
// locked.
func (d *Driver) SetCurrent(c Context) error {
	return d.check("hipSetDevice", d.c.SetDevice(device(c)))
}

// EnablePeer lets the current device reach the memory of peer's.
func (d *Driver) EnablePeer(peer Context) error {
	r := d.c.EnablePeerAccess(device(peer), 0)
	if r == gpudriver.PeerAlready {
		return nil
	}
	return d.check("hipDeviceEnablePeerAccess", r)
}

// Alloc allocates memory of the current device.
func (d *Driver) Alloc(n uint64) (Pointer, error) {
	var p Pointer
	if err := d.check("hipMalloc", d.c.Malloc(&p, n)); err != nil {
		return 0, err
	}
	return p, d.own(p, n)
}

// AllocShared allocates fine-grained memory: what a peer's kernel stores into
// memory of the other kind need not be seen before the kernel ends (HIP
// programming guide, «Coherence controls»).
func (d *Driver) AllocShared(n uint64) (Pointer, error) {
	if d.c.ExtMallocWithFlags == nil {
		return 0, gpudriver.Missing("hipExtMallocWithFlags")
	}
	var p Pointer
	if err := d.check("hipExtMallocWithFlags", d.c.ExtMallocWithFlags(&p, n, fineGrained)); err != nil {
		return 0, err
	}
	return p, d.own(p, n)
}

// own notes whose memory it is.
func (d *Driver) own(p Pointer, n uint64) error {
	if d.c.GetDevice == nil {
		return nil
	}
	var dev int32
	if err := d.check("hipGetDevice", d.c.GetDevice(&dev)); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owners = append(d.owners, allocation{p, n, dev})
	return nil
}

// owner is the device whose memory is at p; false for what this process did not
// allocate.
func (d *Driver) owner(p Pointer) (int32, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.owners {
		if p >= a.at && uint64(p-a.at) < a.size {
			return a.device, true
		}
	}
	return 0, false
}

// Free frees device memory.
func (d *Driver) Free(p Pointer) error {
	if d.c.Free == nil {
		return gpudriver.Missing("hipFree")
	}
	d.mu.Lock()
	d.owners = slices.DeleteFunc(d.owners, func(a allocation) bool { return a.at == p })
	d.mu.Unlock()
	return d.check("hipFree", d.c.Free(p))
}

// AllocHost allocates n bytes of pinned host memory, known to all devices.
func (d *Driver) AllocHost(n uint64) ([]byte, error) {
	if d.c.HostMalloc == nil {
		return nil, gpudriver.Missing("hipHostMalloc")
	}
	var p unsafe.Pointer
	if err := d.check("hipHostMalloc", d.c.HostMalloc(&p, n, portable)); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), n), nil
}

// RegisterHost pins memory that the caller mapped.
func (d *Driver) RegisterHost(b []byte) error {
	if d.c.HostRegister == nil {
		return gpudriver.Missing("hipHostRegister")
	}
	return d.check("hipHostRegister", d.c.HostRegister(unsafe.Pointer(&b[0]), uint64(len(b)), portable))
}

// UnregisterHost undoes RegisterHost.
func (d *Driver) UnregisterHost(b []byte) error {
	if d.c.HostUnregister == nil {
		return gpudriver.Missing("hipHostUnregister")
	}
	return d.check("hipHostUnregister", d.c.HostUnregister(unsafe.Pointer(&b[0])))
}

// pointer is a device's address as the calls for both kinds of memory want it.
func pointer(p Pointer) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// CopyToDevice puts a copy from pinned host memory into a stream. The memory
// must stay until the stream is done, and must not be Go's own.
func (d *Driver) CopyToDevice(dst Pointer, src []byte, s Stream) error {
	return d.check("hipMemcpyAsync", d.c.MemcpyAsync(pointer(dst), unsafe.Pointer(&src[0]), uint64(len(src)), hostToDevice, s))
}

// CopyToHost puts a copy to pinned host memory into a stream.
func (d *Driver) CopyToHost(dst []byte, src Pointer, s Stream) error {
	return d.check("hipMemcpyAsync", d.c.MemcpyAsync(unsafe.Pointer(&dst[0]), pointer(src), uint64(len(dst)), deviceToHost, s))
}

// Copy puts a copy between devices into a stream. Memory that another process gave
// has no owner here, and the runtime finds it out by itself.
func (d *Driver) Copy(dst, src Pointer, n uint64, s Stream) error {
	to, ours := d.owner(dst)
	from, also := d.owner(src)
	if !ours || !also || from == to {
		return d.check("hipMemcpyAsync", d.c.MemcpyAsync(pointer(dst), pointer(src), n, deviceToDevice, s))
	}
	return d.check("hipMemcpyPeerAsync", d.c.MemcpyPeerAsync(dst, to, src, from, n, s))
}

// Set32 puts filling n words of 4 bytes into a stream.
func (d *Driver) Set32(p Pointer, v uint32, n uint64, s Stream) error {
	return d.check("hipMemsetD32Async", d.c.MemsetD32Async(p, int32(v), n, s))
}

// NewStream creates a stream of the current device that does not wait for the
// default one.
func (d *Driver) NewStream() (Stream, error) {
	var s Stream
	err := d.check("hipStreamCreateWithFlags", d.c.StreamCreate(&s, streamNonBlocking))
	return s, err
}

// Done reports whether all work of a stream is done.
func (d *Driver) Done(s Stream) (bool, error) {
	r := d.c.StreamQuery(s)
	if r == gpudriver.NotReady {
		return false, nil
	}
	return r == gpudriver.Success, d.check("hipStreamQuery", r)
}

// Wait makes a stream wait for an event.
func (d *Driver) Wait(s Stream, e Event) error {
	if d.c.StreamWaitEvent == nil {
		return gpudriver.Missing("hipStreamWaitEvent")
	}
	return d.check("hipStreamWaitEvent", d.c.StreamWaitEvent(s, e, 0))
}

// NewEvent creates an event with a time, of the current device.
func (d *Driver) NewEvent() (Event, error) {
	var e Event
	err := d.check("hipEventCreateWithFlags", d.c.EventCreate(&e, 0))
	return e, err
}

// Record puts an event into a stream.
func (d *Driver) Record(e Event, s Stream) error {
	return d.check("hipEventRecord", d.c.EventRecord(e, s))
}

// Seconds returns the time between two events that are done.
func (d *Driver) Seconds(a, b Event) (float64, error) {
	var ms float32
	err := d.check("hipEventElapsedTime", d.c.EventElapsedTime(&ms, a, b))
	return float64(ms) / 1e3, err
}

// LoadModule compiles HIP C++ for the current device and loads what comes of it.
func (d *Driver) LoadModule(source string) (Module, error) {
	c := &d.c
	if c.ModuleLoadData == nil || c.ModuleGetFunction == nil || c.ModuleLaunchKernel == nil {
		return 0, gpudriver.Missing("hipModuleLoadData")
	}
	code, err := d.compile(source)
	if err != nil {
		return 0, err
	}
	var m Module
	err = d.check("hipModuleLoadData", c.ModuleLoadData(&m, unsafe.Pointer(&code[0])))
	return m, err
}

// compile makes code for the current device, once for each model. One compiler
// runs at a time: hiprtc locks itself.
func (d *Driver) compile(source string) ([]byte, error) {
	c := &d.c
	if c.CreateProgram == nil || c.CompileProgram == nil || c.GetCodeSize == nil || c.GetCode == nil || c.GetDevice == nil {
		return nil, gpudriver.Missing("hiprtcCompileProgram")
	}
	var dev int32
	if err := d.check("hipGetDevice", c.GetDevice(&dev)); err != nil {
		return nil, err
	}
	model, err := d.Name(Device(dev))
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if code := d.code[model]; code != nil {
		return code, nil
	}
	var program uintptr
	if r := c.CreateProgram(&program, gpudriver.CString(source), gpudriver.CString("gpudoctor.hip"), 0, nil, nil); r != gpudriver.Success {
		return nil, compilerError("hiprtcCreateProgram", r, "")
	}
	if c.DestroyProgram != nil {
		defer c.DestroyProgram(&program)
	}
	// Without an option for it, the compiler takes the current device's
	// architecture.
	if r := c.CompileProgram(program, 0, nil); r != gpudriver.Success {
		return nil, compilerError("hiprtcCompileProgram", r, d.log(program))
	}
	var n uint64
	if r := c.GetCodeSize(program, &n); r != gpudriver.Success || n == 0 || n > maxCode {
		return nil, compilerError("hiprtcGetCodeSize", r, "")
	}
	code := make([]byte, n)
	if r := c.GetCode(program, &code[0]); r != gpudriver.Success {
		return nil, compilerError("hiprtcGetCode", r, "")
	}
	d.code[model] = code
	return code, nil
}

// maxCode and maxLog bound what the compiler may hand out.
const (
	maxCode = 64 << 20
	maxLog  = 1 << 20
)

// log is the first line of the compiler's complaints.
func (d *Driver) log(program uintptr) string {
	var n uint64
	if d.c.GetLogSize == nil || d.c.GetLog == nil || d.c.GetLogSize(program, &n) != gpudriver.Success || n == 0 || n > maxLog {
		return ""
	}
	b := make([]byte, n)
	if d.c.GetLog(program, &b[0]) != gpudriver.Success {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(strings.TrimRight(string(b), "\x00")), "\n")
	return line[:min(len(line), 200)]
}

// compilerError is an error of hiprtc, whose numbers are its own (hiprtc.h, enum
// hiprtcResult).
func compilerError(call string, r Result, log string) error {
	name := map[Result]string{
		1: "HIPRTC_ERROR_OUT_OF_MEMORY", 2: "HIPRTC_ERROR_PROGRAM_CREATION_FAILURE", 3: "HIPRTC_ERROR_INVALID_INPUT",
		4: "HIPRTC_ERROR_INVALID_PROGRAM", 5: "HIPRTC_ERROR_INVALID_OPTION", 6: "HIPRTC_ERROR_COMPILATION",
		7: "HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE", 11: "HIPRTC_ERROR_INTERNAL_ERROR",
	}[r]
	if name == "" {
		name = fmt.Sprintf("hiprtc error %d", int32(r))
	}
	if log != "" {
		name += ": " + log
	}
	return errors.New(call + ": " + name)
}

// Function finds a kernel in a module.
func (d *Driver) Function(m Module, name string) (Function, error) {
	var f Function
	err := d.check("hipModuleGetFunction", d.c.ModuleGetFunction(&f, m, gpudriver.CString(name)))
	return f, err
}

// Launch puts a kernel into a stream. Every parameter of our kernels is 64
// bits wide.
func (d *Driver) Launch(f Function, blocks, threads uint32, s Stream, params ...uint64) error {
	return d.check("hipModuleLaunchKernel", d.c.ModuleLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, s, gpudriver.Params(params), nil))
}

// IPCWay is the name of this way to another process.
func (d *Driver) IPCWay() string { return "hipIpc" }

// IPCHandle returns the handle by which another process can open memory of
// Alloc.
func (d *Driver) IPCHandle(p Pointer) (IPCHandle, error) {
	var h IPCHandle
	if d.c.IpcGetMemHandle == nil {
		return h, gpudriver.Missing("hipIpcGetMemHandle")
	}
	err := d.check("hipIpcGetMemHandle", d.c.IpcGetMemHandle(&h, p))
	return h, err
}

// OpenIPC maps another process's memory for the current device.
// hipIpcMemLazyEnablePeerAccess, which must be given, is 0 in HIP 5 and 1 from 6.0
// on (hip_runtime_api.h).
func (d *Driver) OpenIPC(h IPCHandle) (Pointer, error) {
	if d.c.IpcOpenMemHandle == nil {
		return 0, gpudriver.Missing("hipIpcOpenMemHandle")
	}
	lazy := uint32(1)
	if d.major == 5 {
		lazy = 0
	}
	var p Pointer
	err := d.check("hipIpcOpenMemHandle", d.c.IpcOpenMemHandle(&p, h, lazy))
	return p, err
}

// CanExport is false: RCCL gives memory to another process by hipIpc, unless it is
// told otherwise, and that is the way that is tried.
func (d *Driver) CanExport(Device) bool { return false }

// Exportable and Import are not offered.
func (d *Driver) Exportable(Device, uint64) (p Pointer, size uint64, fd int, err error) {
	return 0, 0, -1, gpudriver.Missing("hipMemExportToShareableHandle")
}

// Import is not offered.
func (d *Driver) Import(int, uint64, Device) (Pointer, error) {
	return 0, gpudriver.Missing("hipMemImportFromShareableHandle")
}
