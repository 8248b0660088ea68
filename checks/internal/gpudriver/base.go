package gpudriver

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

// Base is what CUDA and HIP have in common: functions whose C signatures are the same, and methods that call them.
type Base struct {
	Calls
	// Describe returns the name and the description that a library has for a result.
	Describe func(r Result) (name, text string)
	// NativeAtomicsAttribute is the number of that attribute of a pair.
	NativeAtomicsAttribute int32
	// LazyPeerAccess is the flag without which memory of another process is not opened:
	// it enables peer access where the memory needs it.
	LazyPeerAccess uint32

	// Names are those of the library.
	Names Names
	// Missing are the functions that the library lacks and without which the probe cannot run.
	Missing []string

	// compiled is the code of kernels by the model of GPU that it is for, and its source: to compile takes 40 ms on an
	// H200, in which another GPU's context is made, and a second with HIP.
	compiled  map[string][]byte
	compiling sync.Mutex
}

// Calls are the functions that both libraries have, as BindAll binds them. A stream is polled too often
// for an error each time. Set32 enqueues filling n words of 4 bytes.
type Calls struct {
	Init                  func(flags uint32) error                                                                              `cuda:"cuInit,needed" hip:"hipInit,needed"`
	DeviceGetCount        func(n *int32) error                                                                                  `cuda:"cuDeviceGetCount,needed" hip:"hipGetDeviceCount,needed"`
	DeviceGet             func(d *Device, ordinal int32) error                                                                  `cuda:"cuDeviceGet,needed" hip:"hipDeviceGet,needed"`
	DeviceGetName         func(name *byte, n int32, d Device) error                                                             `cuda:"cuDeviceGetName" hip:"hipDeviceGetName"`
	DeviceGetPCIBusID     func(name *byte, n int32, d Device) error                                                             `cuda:"cuDeviceGetPCIBusId,needed" hip:"hipDeviceGetPCIBusId,needed"`
	DeviceGetAttribute    func(v *int32, a int32, d Device) error                                                               `cuda:"cuDeviceGetAttribute" hip:"hipDeviceGetAttribute"`
	DeviceTotalMem        func(n *uint64, d Device) error                                                                       `cuda:"cuDeviceTotalMem_v2" hip:"hipDeviceTotalMem"`
	DeviceCanAccessPeer   func(can *int32, d, peer Device) error                                                                `cuda:"cuDeviceCanAccessPeer,needed" hip:"hipDeviceCanAccessPeer,needed"`
	DeviceGetP2PAttribute func(v *int32, a int32, src, dst Device) error                                                        `cuda:"cuDeviceGetP2PAttribute" hip:"hipDeviceGetP2PAttribute"`
	CurrentDevice         func(d *Device) error                                                                                 `cuda:"cuCtxGetDevice" hip:"hipGetDevice"`
	MemAlloc              func(p *Pointer, n uint64) error                                                                      `cuda:"cuMemAlloc_v2,needed" hip:"hipMalloc,needed"`
	Free                  func(p Pointer) error                                                                                 `cuda:"cuMemFree_v2" hip:"hipFree"`
	MemHostAlloc          func(p *unsafe.Pointer, n uint64, flags uint32) error                                                 `cuda:"cuMemHostAlloc" hip:"hipHostMalloc"`
	MemHostRegister       func(p unsafe.Pointer, n uint64, flags uint32) error                                                  `cuda:"cuMemHostRegister_v2" hip:"hipHostRegister"`
	MemHostUnregister     func(p unsafe.Pointer) error                                                                          `cuda:"cuMemHostUnregister" hip:"hipHostUnregister"`
	Set32                 func(p Pointer, v uint32, n uint64, s Stream) error                                                   `cuda:"cuMemsetD32Async,needed" hip:"hipMemsetD32Async,needed"`
	StreamCreate          func(s *Stream, flags uint32) error                                                                   `cuda:"cuStreamCreate,needed" hip:"hipStreamCreateWithFlags,needed"`
	StreamQuery           func(s Stream) Result                                                                                 `cuda:"cuStreamQuery,needed" hip:"hipStreamQuery,needed"`
	StreamWaitEvent       func(s Stream, e Event, flags uint32) error                                                           `cuda:"cuStreamWaitEvent" hip:"hipStreamWaitEvent"`
	EventCreate           func(e *Event, flags uint32) error                                                                    `cuda:"cuEventCreate,needed" hip:"hipEventCreateWithFlags,needed"`
	Record                func(e Event, s Stream) error                                                                         `cuda:"cuEventRecord,needed" hip:"hipEventRecord,needed"`
	EventElapsedTime      func(ms *float32, a, b Event) error                                                                   `cuda:"cuEventElapsedTime,needed" hip:"hipEventElapsedTime,needed"`
	ModuleLoadData        func(m *Module, image unsafe.Pointer) error                                                           `cuda:"cuModuleLoadData" hip:"hipModuleLoadData"`
	ModuleGetFunction     func(f *Function, m Module, name *byte) error                                                         `cuda:"cuModuleGetFunction" hip:"hipModuleGetFunction"`
	LaunchKernel          func(f Function, gx, gy, gz, bx, by, bz, shared uint32, s Stream, params, extra unsafe.Pointer) error `cuda:"cuLaunchKernel" hip:"hipModuleLaunchKernel"`
	IpcGetMemHandle       func(h *IPCHandle, p Pointer) error                                                                   `cuda:"cuIpcGetMemHandle" hip:"hipIpcGetMemHandle"`
	IpcOpenMemHandle      func(p *Pointer, h IPCHandle, flags uint32) error                                                     `cuda:"cuIpcOpenMemHandle_v2" hip:"hipIpcOpenMemHandle"`
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

func except(err, harmless error) error {
	if errors.Is(err, harmless) {
		return nil
	}
	return err
}

// Bind looks the functions of structs up in a library (see BindAll).
func (b *Base) Bind(handle uintptr, api string, structs ...any) {
	b.compiled = map[string][]byte{}
	for _, s := range structs {
		b.Missing = append(b.Missing, BindAll(handle, api, s, b.Fail)...)
	}
}

// Fail is the error of a call that returned a code other than 0.
func (b *Base) Fail(call string, code int32) error {
	// cuda.h maps the plain name to the one with the suffix.
	e := &Error{Call: strings.TrimSuffix(call, "_v2"), Result: Result(code)}
	e.Name, e.Text = b.Describe(e.Result)
	return e
}

// given is the error of a call that should give something, also if it succeeded and gave nothing.
func given(err error, something bool, what string) error {
	if err == nil && !something {
		return errors.New("the driver reports success and gives no " + what)
	}
	return err
}

// Init initialises the library.
func (b *Base) Init() error { return b.Calls.Init(0) }

// maxDevices bounds what a driver may say: the largest machine has 72 GPUs (GB200 NVL72).
const maxDevices = 1 << 12

// Devices returns the devices that the library offers to this process.
func (b *Base) Devices() ([]Device, error) {
	var n int32
	if err := b.DeviceGetCount(&n); err != nil {
		return nil, err
	}
	if n < 0 || n > maxDevices {
		return nil, fmt.Errorf("the driver counts %d devices", n)
	}
	devices := make([]Device, n)
	for i := range devices {
		if err := b.DeviceGet(&devices[i], int32(i)); err != nil {
			return nil, err
		}
	}
	return devices, nil
}

// Name returns the model's name.
func (b *Base) Name(dev Device) (string, error) {
	var buffer [256]byte
	err := b.DeviceGetName(&buffer[0], int32(len(buffer)), dev)
	return String(buffer[:]), err
}

// Address returns the PCI address, lower case.
func (b *Base) Address(dev Device) (string, error) {
	var buffer [32]byte
	err := b.DeviceGetPCIBusID(&buffer[0], int32(len(buffer)), dev)
	return strings.ToLower(String(buffer[:])), err
}

// Attribute returns an attribute of a device, by its number in the library.
func (b *Base) Attribute(a int32, dev Device) (int, error) {
	var v int32
	err := b.DeviceGetAttribute(&v, a, dev)
	return int(v), err
}

// TotalMemory returns the size of a device's memory in bytes.
func (b *Base) TotalMemory(dev Device) (n uint64, err error) {
	err = b.DeviceTotalMem(&n, dev)
	return n, err
}

// CanAccessPeer reports whether dev may reach the memory of peer.
func (b *Base) CanAccessPeer(dev, peer Device) (bool, error) {
	var can int32
	err := b.DeviceCanAccessPeer(&can, dev, peer)
	return can != 0, err
}

// NativeAtomics reports whether src does atomics of its own on the memory of dst, as far as the driver says.
func (b *Base) NativeAtomics(src, dst Device) bool {
	var v int32
	err := b.DeviceGetP2PAttribute(&v, b.NativeAtomicsAttribute, src, dst)
	return err != nil || v != 0
}

// Current returns the device that is current on this thread.
func (b *Base) Current() (Device, error) {
	d := Device(-1)
	err := b.CurrentDevice(&d)
	return d, err
}

// Alloc allocates device memory in the current context.
func (b *Base) Alloc(n uint64) (p Pointer, err error) {
	err = b.MemAlloc(&p, n)
	return p, given(err, p != 0, "memory")
}

// AllocHost allocates n bytes of pinned host memory, known to all contexts.
func (b *Base) AllocHost(n uint64) ([]byte, error) {
	var p unsafe.Pointer
	err := b.MemHostAlloc(&p, n, portable)
	if err := given(err, p != nil, "host memory"); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), n), nil
}

// RegisterHost pins memory that the caller mapped.
func (b *Base) RegisterHost(memory []byte) error {
	return b.MemHostRegister(unsafe.Pointer(&memory[0]), uint64(len(memory)), portable)
}

// UnregisterHost undoes RegisterHost.
func (b *Base) UnregisterHost(memory []byte) error {
	return b.MemHostUnregister(unsafe.Pointer(&memory[0]))
}

// NewStream creates a stream in the current context that does not wait for the default one.
func (b *Base) NewStream() (s Stream, err error) {
	err = b.StreamCreate(&s, streamNonBlocking)
	return s, given(err, s != 0, "stream")
}

// Done reports whether all work of a stream is done.
func (b *Base) Done(s Stream) (bool, error) {
	switch r := b.StreamQuery(s); r {
	case NotReady:
		return false, nil
	case Success:
		return true, nil
	default:
		return false, b.Fail(b.Names.Query, int32(r))
	}
}

// Wait makes a stream wait for an event.
func (b *Base) Wait(s Stream, e Event) error { return b.StreamWaitEvent(s, e, 0) }

// NewEvent creates an event with a time in the current context.
func (b *Base) NewEvent() (e Event, err error) {
	err = b.EventCreate(&e, 0)
	return e, given(err, e != 0, "event")
}

// Seconds returns the time between two events that are done.
func (b *Base) Seconds(from, to Event) (float64, error) {
	var ms float32
	err := b.EventElapsedTime(&ms, from, to)
	return float64(ms) / 1e3, err
}

// codeOf compiles kernels once for each model of GPU.
func (b *Base) codeOf(source string, compile func(source string) ([]byte, error)) (code []byte, err error) {
	dev, err := b.Current()
	if err != nil {
		return nil, err
	}
	model, err := b.Name(dev)
	if err != nil { // The code is for this device alone.
		model = fmt.Sprint("device ", dev)
	}
	key := model + "\x00" + source
	b.compiling.Lock()
	defer b.compiling.Unlock()
	if code, known := b.compiled[key]; known {
		return code, nil
	}
	if code, err = compile(source); err == nil {
		b.compiled[key] = code
	}
	return code, err
}

// load loads the code of kernels, or PTX that the driver compiles, for the current context.
func (b *Base) load(code []byte) (m Module, err error) {
	err = b.ModuleLoadData(&m, unsafe.Pointer(&code[0]))
	return m, given(err, m != 0, "module")
}

// Function finds a kernel in a module.
func (b *Base) Function(m Module, name string) (f Function, err error) {
	err = b.ModuleGetFunction(&f, m, CString(name))
	return f, given(err, f != 0, "function")
}

// Launch enqueues a kernel on a stream. Every parameter is 64 bits wide.
func (b *Base) Launch(f Function, blocks, threads uint32, s Stream, params ...uint64) error {
	at := make([]unsafe.Pointer, len(params))
	for i := range params {
		at[i] = unsafe.Pointer(&params[i])
	}
	return b.LaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, s, unsafe.Pointer(&at[0]), nil)
}

// IPCHandle returns the handle by which another process can open memory of Alloc.
func (b *Base) IPCHandle(p Pointer) (h IPCHandle, err error) {
	err = b.IpcGetMemHandle(&h, p)
	return h, err
}

// OpenIPC maps another process's memory into the current context.
func (b *Base) OpenIPC(h IPCHandle) (p Pointer, err error) {
	err = b.IpcOpenMemHandle(&p, h, b.LazyPeerAccess)
	return p, err
}
