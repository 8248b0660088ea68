package gpudriver

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"unsafe"
)

// Base is what packages cuda and hip have in common: the functions whose C
// signatures are the same in both libraries, and the methods that call them.
type Base struct {
	Calls Calls
	// Describe returns the name and the description that a library has for a result.
	Describe func(r Result) (name, text string)
	// FirstPeerAttribute is the number of the first attribute of a pair.
	FirstPeerAttribute int32
	// LazyPeerAccess is the flag without which memory of another process is not opened:
	// it enables peer access where the memory needs it.
	LazyPeerAccess uint32

	names   map[any]string // The names of functions, by what they are bound to.
	missing []string
}

// Calls are the functions that both libraries have, as BindAll binds them.
type Calls struct {
	Init                  func(flags uint32) Result                                                                              `cuda:"cuInit,needed" hip:"hipInit,needed"`
	DeviceGetCount        func(n *int32) Result                                                                                  `cuda:"cuDeviceGetCount,needed" hip:"hipGetDeviceCount,needed"`
	DeviceGet             func(d *Device, ordinal int32) Result                                                                  `cuda:"cuDeviceGet,needed" hip:"hipDeviceGet,needed"`
	DeviceGetName         func(name *byte, n int32, d Device) Result                                                             `cuda:"cuDeviceGetName" hip:"hipDeviceGetName"`
	DeviceGetPCIBusID     func(name *byte, n int32, d Device) Result                                                             `cuda:"cuDeviceGetPCIBusId,needed" hip:"hipDeviceGetPCIBusId,needed"`
	DeviceGetAttribute    func(v *int32, a int32, d Device) Result                                                               `cuda:"cuDeviceGetAttribute" hip:"hipDeviceGetAttribute"`
	DeviceTotalMem        func(n *uint64, d Device) Result                                                                       `cuda:"cuDeviceTotalMem_v2" hip:"hipDeviceTotalMem"`
	DeviceCanAccessPeer   func(can *int32, d, peer Device) Result                                                                `cuda:"cuDeviceCanAccessPeer,needed" hip:"hipDeviceCanAccessPeer,needed"`
	DeviceGetP2PAttribute func(v *int32, a int32, src, dst Device) Result                                                        `cuda:"cuDeviceGetP2PAttribute" hip:"hipDeviceGetP2PAttribute"`
	CurrentDevice         func(d *Device) Result                                                                                 `cuda:"cuCtxGetDevice" hip:"hipGetDevice"`
	MemAlloc              func(p *Pointer, n uint64) Result                                                                      `cuda:"cuMemAlloc_v2,needed" hip:"hipMalloc,needed"`
	MemFree               func(p Pointer) Result                                                                                 `cuda:"cuMemFree_v2" hip:"hipFree"`
	MemHostAlloc          func(p *unsafe.Pointer, n uint64, flags uint32) Result                                                 `cuda:"cuMemHostAlloc" hip:"hipHostMalloc"`
	MemHostRegister       func(p unsafe.Pointer, n uint64, flags uint32) Result                                                  `cuda:"cuMemHostRegister_v2" hip:"hipHostRegister"`
	MemHostUnregister     func(p unsafe.Pointer) Result                                                                          `cuda:"cuMemHostUnregister" hip:"hipHostUnregister"`
	MemsetD32Async        func(p Pointer, v uint32, n uint64, s Stream) Result                                                   `cuda:"cuMemsetD32Async,needed" hip:"hipMemsetD32Async,needed"`
	StreamCreate          func(s *Stream, flags uint32) Result                                                                   `cuda:"cuStreamCreate,needed" hip:"hipStreamCreateWithFlags,needed"`
	StreamQuery           func(s Stream) Result                                                                                  `cuda:"cuStreamQuery,needed" hip:"hipStreamQuery,needed"`
	StreamWaitEvent       func(s Stream, e Event, flags uint32) Result                                                           `cuda:"cuStreamWaitEvent" hip:"hipStreamWaitEvent"`
	EventCreate           func(e *Event, flags uint32) Result                                                                    `cuda:"cuEventCreate,needed" hip:"hipEventCreateWithFlags,needed"`
	EventRecord           func(e Event, s Stream) Result                                                                         `cuda:"cuEventRecord,needed" hip:"hipEventRecord,needed"`
	EventElapsedTime      func(ms *float32, a, b Event) Result                                                                   `cuda:"cuEventElapsedTime,needed" hip:"hipEventElapsedTime,needed"`
	ModuleLoadData        func(m *Module, image unsafe.Pointer) Result                                                           `cuda:"cuModuleLoadData" hip:"hipModuleLoadData"`
	ModuleGetFunction     func(f *Function, m Module, name *byte) Result                                                         `cuda:"cuModuleGetFunction" hip:"hipModuleGetFunction"`
	LaunchKernel          func(f Function, gx, gy, gz, bx, by, bz, shared uint32, s Stream, params, extra unsafe.Pointer) Result `cuda:"cuLaunchKernel" hip:"hipModuleLaunchKernel"`
	IpcGetMemHandle       func(h *IPCHandle, p Pointer) Result                                                                   `cuda:"cuIpcGetMemHandle" hip:"hipIpcGetMemHandle"`
	IpcOpenMemHandle      func(p *Pointer, h IPCHandle, flags uint32) Result                                                     `cuda:"cuIpcOpenMemHandle_v2" hip:"hipIpcOpenMemHandle"`
}

// The flags that have one value in both libraries.
const (
	// portable makes pinned memory pinned for every context (CU_MEMHOSTALLOC_PORTABLE,
	// CU_MEMHOSTREGISTER_PORTABLE, hipHostMallocPortable, hipHostRegisterPortable).
	portable = 1
	// streamNonBlocking makes a stream that does not wait for the default one
	// (CU_STREAM_NON_BLOCKING, hipStreamNonBlocking).
	streamNonBlocking = 1
)

// Bind looks the functions of structs up in a library (see BindAll).
func (b *Base) Bind(handle uintptr, api string, structs ...any) {
	b.names = make(map[any]string)
	for _, s := range structs {
		names, missing := BindAll(handle, api, s)
		maps.Copy(b.names, names)
		b.missing = append(b.missing, missing...)
	}
}

// Check turns the result of a call into an error that names the function. fn is what
// the function is bound to.
func (b *Base) Check(fn any, r Result) error {
	switch r {
	case Success:
		return nil
	case Absent:
		return Missing(b.names[fn])
	}
	// cuda.h maps the plain name to the one with the suffix.
	e := &Error{Call: strings.TrimSuffix(b.names[fn], "_v2"), Result: r}
	e.Name, e.Text = b.Describe(r)
	return e
}

// gave turns the result of a call that should give something into an error, also if it
// succeeded and gave nothing.
func (b *Base) gave(fn any, something bool, r Result) error {
	if r == Success && !something {
		return fmt.Errorf("%s reports success and gives nothing", b.names[fn])
	}
	return b.Check(fn, r)
}

// Missing reports the needed functions that the library lacks, without which the probe
// cannot run.
func (b *Base) Missing() []string { return b.missing }

// InitCall is the function that starts the library.
func (b *Base) InitCall() string { return b.names[&b.Calls.Init] }

// Init initialises the library.
func (b *Base) Init() error {
	c := &b.Calls
	return b.Check(&c.Init, c.Init(0))
}

// maxDevices bounds what a driver may say: the largest machine has 72 GPUs (GB200 NVL72).
const maxDevices = 1 << 12

// Devices returns the devices that the library offers to this process.
func (b *Base) Devices() ([]Device, error) {
	c := &b.Calls
	var n int32
	if err := b.Check(&c.DeviceGetCount, c.DeviceGetCount(&n)); err != nil {
		return nil, err
	}
	if n < 0 || n > maxDevices {
		return nil, fmt.Errorf("%s: the driver counts %d devices", b.names[&c.DeviceGetCount], n)
	}
	devices := make([]Device, n)
	for i := range devices {
		if err := b.Check(&c.DeviceGet, c.DeviceGet(&devices[i], int32(i))); err != nil {
			return nil, err
		}
	}
	return devices, nil
}

// Name returns the model's name.
func (b *Base) Name(dev Device) (string, error) {
	c := &b.Calls
	var buffer [256]byte
	err := b.Check(&c.DeviceGetName, c.DeviceGetName(&buffer[0], int32(len(buffer)), dev))
	return String(buffer[:]), err
}

// Address returns the PCI address, lower case.
func (b *Base) Address(dev Device) (string, error) {
	c := &b.Calls
	var buffer [32]byte
	err := b.Check(&c.DeviceGetPCIBusID, c.DeviceGetPCIBusID(&buffer[0], int32(len(buffer)), dev))
	return strings.ToLower(String(buffer[:])), err
}

// Attribute returns an attribute of a device, by its number in the library.
func (b *Base) Attribute(a int32, dev Device) (int, error) {
	c := &b.Calls
	var v int32
	err := b.Check(&c.DeviceGetAttribute, c.DeviceGetAttribute(&v, a, dev))
	return int(v), err
}

// TotalMemory returns the size of a device's memory in bytes.
func (b *Base) TotalMemory(dev Device) (uint64, error) {
	c := &b.Calls
	var n uint64
	err := b.Check(&c.DeviceTotalMem, c.DeviceTotalMem(&n, dev))
	return n, err
}

// CanAccessPeer reports whether dev may reach the memory of peer.
func (b *Base) CanAccessPeer(dev, peer Device) (bool, error) {
	c := &b.Calls
	var can int32
	err := b.Check(&c.DeviceCanAccessPeer, c.DeviceCanAccessPeer(&can, dev, peer))
	return can != 0, err
}

// PeerAttribute returns an attribute of an ordered pair.
func (b *Base) PeerAttribute(a PeerAttribute, src, dst Device) (int, error) {
	c := &b.Calls
	var v int32
	err := b.Check(&c.DeviceGetP2PAttribute, c.DeviceGetP2PAttribute(&v, b.FirstPeerAttribute+int32(a), src, dst))
	return int(v), err
}

// Current returns the device that is current on this thread.
func (b *Base) Current() (Device, error) {
	c := &b.Calls
	d := Device(-1)
	err := b.Check(&c.CurrentDevice, c.CurrentDevice(&d))
	return d, err
}

// Alloc allocates device memory in the current context.
func (b *Base) Alloc(n uint64) (Pointer, error) {
	c := &b.Calls
	var p Pointer
	r := c.MemAlloc(&p, n)
	return p, b.gave(&c.MemAlloc, p != 0, r)
}

// Free frees device memory.
func (b *Base) Free(p Pointer) error {
	c := &b.Calls
	return b.Check(&c.MemFree, c.MemFree(p))
}

// AllocHost allocates n bytes of pinned host memory, known to all contexts.
func (b *Base) AllocHost(n uint64) ([]byte, error) {
	c := &b.Calls
	var p unsafe.Pointer
	r := c.MemHostAlloc(&p, n, portable)
	if err := b.gave(&c.MemHostAlloc, p != nil, r); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), n), nil
}

// RegisterHost pins memory that the caller mapped.
func (b *Base) RegisterHost(memory []byte) error {
	c := &b.Calls
	return b.Check(&c.MemHostRegister, c.MemHostRegister(unsafe.Pointer(&memory[0]), uint64(len(memory)), portable))
}

// UnregisterHost undoes RegisterHost.
func (b *Base) UnregisterHost(memory []byte) error {
	c := &b.Calls
	return b.Check(&c.MemHostUnregister, c.MemHostUnregister(unsafe.Pointer(&memory[0])))
}

// Set32 enqueues filling n words of 4 bytes on a stream.
func (b *Base) Set32(p Pointer, v uint32, n uint64, s Stream) error {
	c := &b.Calls
	return b.Check(&c.MemsetD32Async, c.MemsetD32Async(p, v, n, s))
}

// NewStream creates a stream in the current context that does not wait for
// the default one.
func (b *Base) NewStream() (Stream, error) {
	c := &b.Calls
	var s Stream
	r := c.StreamCreate(&s, streamNonBlocking)
	return s, b.gave(&c.StreamCreate, s != 0, r)
}

// Done reports whether all work of a stream is done.
func (b *Base) Done(s Stream) (bool, error) {
	c := &b.Calls
	r := c.StreamQuery(s)
	if r == NotReady {
		return false, nil
	}
	return r == Success, b.Check(&c.StreamQuery, r)
}

// Wait makes a stream wait for an event.
func (b *Base) Wait(s Stream, e Event) error {
	c := &b.Calls
	return b.Check(&c.StreamWaitEvent, c.StreamWaitEvent(s, e, 0))
}

// NewEvent creates an event with a time in the current context.
func (b *Base) NewEvent() (Event, error) {
	c := &b.Calls
	var e Event
	r := c.EventCreate(&e, 0)
	return e, b.gave(&c.EventCreate, e != 0, r)
}

// Record enqueues an event on a stream.
func (b *Base) Record(e Event, s Stream) error {
	c := &b.Calls
	return b.Check(&c.EventRecord, c.EventRecord(e, s))
}

// Seconds returns the time between two events that are done.
func (b *Base) Seconds(from, to Event) (float64, error) {
	c := &b.Calls
	var ms float32
	err := b.Check(&c.EventElapsedTime, c.EventElapsedTime(&ms, from, to))
	return float64(ms) / 1e3, err
}

// LoadImage loads the code that compile returns, for the current context.
func (b *Base) LoadImage(compile func() ([]byte, error)) (Module, error) {
	c := &b.Calls
	image, err := compile()
	if err != nil {
		return 0, err
	}
	var m Module
	r := c.ModuleLoadData(&m, unsafe.Pointer(&image[0]))
	return m, b.gave(&c.ModuleLoadData, m != 0, r)
}

// Compiled keeps the code of kernels by the model of GPU that it is for and its source, so that
// each is compiled once.
type Compiled struct {
	mu   sync.Mutex
	code map[string][]byte
}

// For returns the code of a model and a source, which compile makes for the first. The others wait for it.
func (k *Compiled) For(model string, compile func() ([]byte, error)) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if code := k.code[model]; code != nil {
		return code, nil
	}
	code, err := compile()
	if err != nil {
		return nil, err
	}
	if k.code == nil {
		k.code = map[string][]byte{}
	}
	k.code[model] = code
	return code, nil
}

// Function finds a kernel in a module.
func (b *Base) Function(m Module, name string) (Function, error) {
	c := &b.Calls
	var f Function
	r := c.ModuleGetFunction(&f, m, CString(name))
	return f, b.gave(&c.ModuleGetFunction, f != 0, r)
}

// Launch enqueues a kernel on a stream. Every parameter of the probe's kernels is 64
// bits wide.
func (b *Base) Launch(f Function, blocks, threads uint32, s Stream, params ...uint64) error {
	c := &b.Calls
	return b.Check(&c.LaunchKernel, c.LaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, s, addresses(params), nil))
}

// addresses are those of a kernel's parameters, as a launch expects them.
func addresses(params []uint64) unsafe.Pointer {
	at := make([]unsafe.Pointer, len(params))
	for i := range params {
		at[i] = unsafe.Pointer(&params[i])
	}
	return unsafe.Pointer(&at[0])
}

// IPCHandle returns the handle by which another process can open memory of
// Alloc.
func (b *Base) IPCHandle(p Pointer) (IPCHandle, error) {
	c := &b.Calls
	var h IPCHandle
	err := b.Check(&c.IpcGetMemHandle, c.IpcGetMemHandle(&h, p))
	return h, err
}

// OpenIPC maps another process's memory into the current context.
func (b *Base) OpenIPC(h IPCHandle) (Pointer, error) {
	c := &b.Calls
	var p Pointer
	err := b.Check(&c.IpcOpenMemHandle, c.IpcOpenMemHandle(&p, h, b.LazyPeerAccess))
	return p, err
}
