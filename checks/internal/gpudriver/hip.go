package gpudriver

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unsafe"
)

// The numbers of hip_runtime_api.h, the same since ROCm 5.2, but for the clock's, which came with 5.3.
const (
	hipMultiprocessors = 63    // hipDeviceAttributeMultiprocessorCount
	hipWallClockRate   = 10017 // hipDeviceAttributeWallClockRate, in kHz

	hipHostToDevice   = 1 // hipMemcpyHostToDevice
	hipDeviceToHost   = 2 // hipMemcpyDeviceToHost
	hipDeviceToDevice = 3 // hipMemcpyDeviceToDevice

	hipFineGrained = 1 // hipDeviceMallocFinegrained
)

// oldestHIP and newest are the major versions of HIP that this package supports.
const (
	oldestHIP = 5
	newestHIP = 7
)

// hipWallClockHz is the rate of the counter behind wall_clock64 where the library
// does not tell it: 100 MHz on CDNA and RDNA (HIP documentation, «Timer function»).
const hipWallClockHz = 100e6

// hipCalls are the functions that only HIP has, or that have another signature in CUDA.
type hipCalls struct {
	RuntimeGetVersion  func(v *int32) error                                                `hip:"hipRuntimeGetVersion,needed"`
	SetDevice          func(d int32) error                                                 `hip:"hipSetDevice,needed"`
	EnablePeerAccess   func(peer int32, flags uint32) error                                `hip:"hipDeviceEnablePeerAccess,needed"`
	ExtMallocWithFlags func(p *Pointer, n uint64, flags uint32) error                      `hip:"hipExtMallocWithFlags"`
	MemcpyAsync        func(dst, src unsafe.Pointer, n uint64, kind int32, s Stream) error `hip:"hipMemcpyAsync,needed"`
	GetErrorName       func(r Result) uintptr                                              `hip:"hipGetErrorName"`
	GetErrorString     func(r Result) uintptr                                              `hip:"hipGetErrorString"`
}

// hipCompiler is hiprtc: of libamdhip64 itself, or of libhiprtc.
type hipCompiler struct {
	CreateProgram  func(p *uintptr, source, name *byte, headers int32, texts, names unsafe.Pointer) error `hip:"hiprtcCreateProgram,needed"`
	CompileProgram func(p uintptr, options int32, texts unsafe.Pointer) error                             `hip:"hiprtcCompileProgram"`
	GetCodeSize    func(p uintptr, n *uint64) error                                                       `hip:"hiprtcGetCodeSize"`
	GetCode        func(p uintptr, code *byte) error                                                      `hip:"hiprtcGetCode"`
	GetLogSize     func(p uintptr, n *uint64) error                                                       `hip:"hiprtcGetProgramLogSize"`
	GetLog         func(p uintptr, log *byte) error                                                       `hip:"hiprtcGetProgramLog"`
	DestroyProgram func(p *uintptr) error                                                                 `hip:"hiprtcDestroyProgram"`
}

// HIP is AMD's HIP runtime, libamdhip64. Signatures and constants are those of hip_runtime_api.h of ROCm 5.2 to 7
// (ROCm/HIP rocm-5.2.3, rocm-5.7.1, rocm-6.0.0, rocm-6.2.2; ROCm/rocm-systems projects/hip). Differences between
// these versions are noted where they matter; other major versions are rejected.
type HIP struct {
	Base

	c   hipCalls
	rtc hipCompiler
}

// hipNativeAtomics is hipDevP2PAttrNativeAtomicSupported, hipLazyPeerAccess is hipIpcMemLazyEnablePeerAccess, which is 0
// in HIP 5 and 1 from 6.0 on (hip_runtime_api.h).
const (
	hipNativeAtomics  = 2
	hipLazyPeerAccess = 1
)

func newHIP(handle uintptr, name string) *HIP {
	names := Names{API: "hip", Library: name, Init: "hipInit", Query: "hipStreamQuery", IPC: "hipIpc"}
	d := &HIP{Base: Base{Names: names, NativeAtomicsAttribute: hipNativeAtomics, LazyPeerAccess: hipLazyPeerAccess}}
	d.Describe = d.describe
	d.Bind(handle, "hip", &d.Calls, &d.c)
	d.bindCompiler(handle)
	return d
}

// bindCompiler looks the compiler up. ROCm 7 removes it from libamdhip64; since 5.x there is a libhiprtc.
func (d *HIP) bindCompiler(handle uintptr) {
	if BindAll(handle, "hip", &d.rtc, hipCompilerError) == nil {
		return
	}
	library := d.Names.Library
	dir := library[:strings.LastIndexByte(library, '/')+1]
	_, version, _ := strings.Cut(library, ".so")
	for _, name := range []string{dir + "libhiprtc.so" + version, "libhiprtc.so" + version} {
		if own, err := Open(name); err == nil {
			BindAll(own, "hip", &d.rtc, hipCompilerError)
			return
		}
	}
}

// hipLibraries are the names that programs of each major version ask the loader for, and the place where ROCm is installed.
var hipLibraries = []string{
	"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so",
	"/opt/rocm/lib/libamdhip64.so.7", "/opt/rocm/lib/libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so",
}

// LoadHIP loads the library.
func LoadHIP() (Driver, error) {
	var first error
	for _, name := range hipLibraries {
		handle, err := Open(name)
		if err != nil {
			if first == nil || !strings.Contains(err.Error(), "cannot open shared object file") {
				first = err // One that is there and does not load tells more.
			}
			continue
		}
		d := newHIP(handle, name)
		return Driver{&d.Base, d}, nil
	}
	return Driver{}, fmt.Errorf("load libamdhip64: %w", first)
}

func (d *HIP) describe(r Result) (name, text string) {
	if d.c.GetErrorName != nil {
		name = Text(d.c.GetErrorName(r))
	}
	if d.c.GetErrorString != nil {
		text = Text(d.c.GetErrorString(r))
	}
	return cmp.Or(name, "hipError"), text
}

// Version returns the version of HIP, as 6.2.41133.
func (d *HIP) Version() (string, error) {
	var v int32
	if err := d.c.RuntimeGetVersion(&v); err != nil {
		return "", err
	}
	// HIP_VERSION is major * 10^7 + minor * 10^5 + patch.
	major := int(v / 1e7)
	version := fmt.Sprintf("%d.%d.%d", major, v/1e5%100, v%1e5)
	if major == 5 {
		d.LazyPeerAccess = 0
	}
	if major < oldestHIP || major > newestHIP {
		return version, fmt.Errorf("HIP %s: %w; supported are %d to %d", version, ErrVersion, oldestHIP, newestHIP)
	}
	return version, nil
}

// Capability is empty: AMD's GPUs have no compute capability.
func (d *HIP) Capability(Device) string { return "" }

// Multiprocessors counts the compute units.
func (d *HIP) Multiprocessors(dev Device) (int, error) { return d.Attribute(hipMultiprocessors, dev) }

// TimerHz is the rate of wall_clock64.
func (d *HIP) TimerHz(dev Device) float64 {
	if khz, err := d.Attribute(hipWallClockRate, dev); err == nil && khz > 0 {
		return 1e3 * float64(khz)
	}
	return hipWallClockHz
}

// Retain initializes a device by the first call that needs it, such as freeing a null pointer.
func (d *HIP) Retain(dev Device) (Context, error) {
	if err := d.c.SetDevice(int32(dev)); err != nil {
		return 0, err
	}
	if err := d.Free(0); err != nil && !errors.Is(err, ErrMissing) {
		return 0, err
	}
	return Context(dev) + 1, nil
}

func hipDevice(c Context) int32 { return int32(c) - 1 }

// SetCurrent makes a device current on this thread, which the caller must have locked.
func (d *HIP) SetCurrent(c Context) error { return d.c.SetDevice(hipDevice(c)) }

// EnablePeer lets the current device access the memory of peer.
func (d *HIP) EnablePeer(peer Context) error {
	return except(d.c.EnablePeerAccess(hipDevice(peer), 0), PeerAlready)
}

// AllocShared allocates fine-grained memory: what a peer's kernel stores into the other kind need not be seen before the
// kernel ends (HIP programming guide, «Coherence controls»).
func (d *HIP) AllocShared(n uint64) (p Pointer, err error) {
	err = d.c.ExtMallocWithFlags(&p, n, hipFineGrained)
	return p, err
}

// hipPointer is a device's address in the form that the calls for both kinds of memory take.
func hipPointer(p Pointer) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// CopyToDevice enqueues a copy from pinned host memory, which stays until the stream is done.
func (d *HIP) CopyToDevice(dst Pointer, src []byte, s Stream) error {
	return d.c.MemcpyAsync(hipPointer(dst), unsafe.Pointer(&src[0]), uint64(len(src)), hipHostToDevice, s)
}

// CopyToHost enqueues a copy to pinned host memory on a stream.
func (d *HIP) CopyToHost(dst []byte, src Pointer, s Stream) error {
	return d.c.MemcpyAsync(unsafe.Pointer(&dst[0]), hipPointer(src), uint64(len(dst)), hipDeviceToHost, s)
}

// Copy enqueues a copy between devices on a stream. hipMemcpyPeerAsync, which names both, does the same
// (hipamd/src/hip_peer.cpp).
func (d *HIP) Copy(dst, src Pointer, n uint64, s Stream) error {
	return d.c.MemcpyAsync(hipPointer(dst), hipPointer(src), n, hipDeviceToDevice, s)
}

// LoadModule compiles HIP C++ once for each model of GPU, and loads the code for the current device.
func (d *HIP) LoadModule(source string) (Module, error) {
	code, err := d.codeOf(source, d.compile)
	if err != nil {
		return 0, err
	}
	return d.load(code)
}

func (d *HIP) compile(source string) ([]byte, error) {
	c := &d.rtc
	var program uintptr
	if err := c.CreateProgram(&program, CString(source), CString("gpudoctor.hip"), 0, nil, nil); err != nil {
		return nil, err
	}
	defer c.DestroyProgram(&program) //nolint:errcheck // The process ends soon.
	// Without an option for it, the compiler takes the current device's architecture.
	if err := c.CompileProgram(program, 0, nil); err != nil {
		if log := d.log(program); log != "" {
			err = fmt.Errorf("%w: %s", err, log)
		}
		return nil, err
	}
	var n uint64
	if err := c.GetCodeSize(program, &n); err != nil || n == 0 || n > maxCode {
		return nil, cmp.Or(err, errNoCode)
	}
	code := make([]byte, n)
	if err := c.GetCode(program, &code[0]); err != nil {
		return nil, err
	}
	return code, nil
}

var errNoCode = errors.New("the compiler reports success and gives no code")

// maxCode and maxLog bound the output of the compiler.
const (
	maxCode = 64 << 20
	maxLog  = 1 << 20
)

func (d *HIP) log(program uintptr) string {
	var n uint64
	if d.rtc.GetLogSize(program, &n) != nil || n == 0 || n > maxLog {
		return ""
	}
	b := make([]byte, n)
	if d.rtc.GetLog(program, &b[0]) != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(strings.TrimRight(string(b), "\x00")), "\n")
	return line[:min(len(line), 200)]
}

// hipCompilerError is an error of hiprtc, whose numbers are its own (hiprtc.h, enum hiprtcResult).
func hipCompilerError(call string, code int32) error {
	return fmt.Errorf("%s: hiprtc error %d", call, code)
}
