package gpudirect

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/checks/internal/attempt"
	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
	"github.com/gpudoctor/gpudoctor/checks/probe/drive"
)

// registerBytes is the size of the memory that is registered: one large page of a GPU, so that cuMemAlloc
// gives it pages of its own.
const registerBytes = 2 << 20

// registrar registers memory. Everything that it opens is closed when its process ends.
type registrar struct {
	verbs *verbs
	names map[string]uintptr
	gpus  *gpus
	// failed is why nothing can be tried.
	failed error

	domains map[string]domain
	host    []byte
}

// domain is the protection domain of a device, or what refused it.
type domain struct {
	pd      uintptr
	refused *attempt.Result
}

func newRegistrar() func(Try) attempt.Result {
	runtime.LockOSThread() // errno and the current context are those of a thread.
	r := &registrar{domains: make(map[string]domain), verbs: &verbs{}}
	if r.failed = load("libibverbs", verbsLibrary, &r.verbs.calls, &r.verbs.libc); r.failed == nil {
		r.names, r.failed = r.verbs.devices()
	}
	return r.try
}

func (r *registrar) try(t Try) attempt.Result {
	if r.failed != nil {
		return attempt.NotKnown(r.failed.Error())
	}
	d := r.domain(t.Device)
	switch {
	case d.refused == nil:
	case t.Way == wayHost:
		return *d.refused
	default:
		return attempt.NotKnown("the device could not be used: " + wordsOf(d.refused))
	}
	var result attempt.Result
	switch t.Way {
	case wayHost:
		result = r.registerHost(d.pd)
	case wayDMABuf, wayPeermem:
		result = r.registerGPU(d.pd, t)
	default:
		return attempt.NotKnown("no such way")
	}
	if result.Outcome != attempt.Unknown {
		result.Bytes = registerBytes
	}
	return result
}

// wordsOf says why a result is not OK.
func wordsOf(r *attempt.Result) string {
	if r.Outcome == attempt.Refused {
		return r.Call + ": " + r.Errno
	}
	return r.Reason
}

// domain opens a device and allocates a protection domain, once.
func (r *registrar) domain(name string) domain {
	d, ok := r.domains[name]
	if ok {
		return d
	}
	fail := func(call string, err error) { d.refused = new(outcome(call, err)) }
	device := r.names[name]
	if device == 0 {
		d.refused = new(attempt.NotKnown(verbsLibrary + " does not list the device here"))
	} else if context, err := r.verbs.call(func() uintptr { return r.verbs.calls.OpenDevice(device) }); err != nil {
		fail("ibv_open_device", err)
	} else if d.pd, err = r.verbs.call(func() uintptr { return r.verbs.calls.AllocPD(context) }); err != nil {
		fail("ibv_alloc_pd", err)
	}
	r.domains[name] = d
	return d
}

// registered is the outcome of a registration, which is undone.
func (r *registrar) registered(call string, register func() uintptr) attempt.Result {
	mr, err := r.verbs.call(register)
	if err != nil {
		return outcome(call, err)
	}
	r.verbs.calls.DeregMR(mr) // What came of that is of no interest: the end of the process undoes it.
	return attempt.Result{Outcome: attempt.OK}
}

func (r *registrar) registerHost(pd uintptr) attempt.Result {
	if r.host == nil {
		memory, err := unix.Mmap(-1, 0, registerBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return attempt.NotKnown("mmap: " + err.Error())
		}
		r.host = memory
	}
	address := uintptr(unsafe.Pointer(&r.host[0]))
	return r.registered("ibv_reg_mr", func() uintptr { return r.verbs.calls.RegMR(pd, address, registerBytes, access) })
}

func (r *registrar) registerGPU(pd uintptr, t Try) attempt.Result {
	if r.gpus == nil {
		r.gpus = startGPUs()
	}
	g, err := r.gpus.use(t.GPU, registerBytes)
	if err != nil {
		return attempt.NotKnown(err.Error())
	}
	if t.Way == wayPeermem {
		return r.registered("ibv_reg_mr", func() uintptr { return r.verbs.calls.RegMR(pd, uintptr(g.memory), registerBytes, access) })
	}
	cuda, _ := r.gpus.driver.Vendor.(*gpudriver.CUDA) // No other is of this API.
	fd, err := cuda.DMABuf(g.device, g.memory, registerBytes)
	if e, ok := errors.AsType[*gpudriver.Error](err); ok && e.Result == gpudriver.NotSupported {
		return attempt.Result{Outcome: attempt.Refused, Call: e.Call, Errno: e.Name}
	}
	if err != nil {
		return attempt.NotKnown(err.Error())
	}
	defer func() { _ = unix.Close(fd) }() // A registration keeps the buffer by itself.
	if r.verbs.calls.RegDMABufMR == nil {
		return attempt.NotKnown(verbsLibrary + " lacks ibv_reg_dmabuf_mr: it is older than rdma-core 34")
	}
	return r.registered("ibv_reg_dmabuf_mr", func() uintptr { return r.verbs.calls.RegDMABufMR(pd, 0, registerBytes, 0, int32(fd), access) })
}

// outcome is the result of a call that failed. Errno 95 has two names; verbs documents this one.
func outcome(call string, err error) attempt.Result {
	r := attempt.Of(call, err)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		r.Errno = "EOPNOTSUPP"
	case r.Outcome == attempt.OK: // It failed, and set no errno.
		return attempt.Result{Outcome: attempt.Refused, Call: call, Errno: "errno 0"}
	}
	return r
}

// gpus are the GPUs that CUDA offers to this process.
type gpus struct {
	driver gpudriver.Driver
	failed error
	all    map[string]*gpu
}

// gpu is one of them, with its primary context and some memory once it was used.
type gpu struct {
	device  gpudriver.Device
	context gpudriver.Context
	memory  gpudriver.Pointer
}

// startGPUs starts CUDA.
func startGPUs() *gpus {
	g := &gpus{all: make(map[string]*gpu)}
	var f *drive.Failure
	if g.driver, f = drive.Start(drive.CUDA, func(string, *drive.Library) {}); f != nil {
		g.failed = errors.New(f.Reason)
		return g
	}
	var devices []gpudriver.Device
	if devices, g.failed = g.driver.Devices(); g.failed != nil {
		return g
	}
	for _, d := range devices {
		address, err := g.driver.Address(d)
		if err == nil {
			g.all[address] = &gpu{device: d}
		}
	}
	return g
}

// use makes a GPU the current one, with some memory of it.
func (g *gpus) use(address string, n uint64) (u *gpu, err error) {
	switch u = g.all[address]; {
	case g.failed != nil:
		return nil, g.failed
	case u == nil:
		return nil, fmt.Errorf("CUDA does not offer GPU %s here", address)
	case u.context == 0:
		u.context, err = g.driver.Retain(u.device)
	}
	if err == nil {
		err = g.driver.SetCurrent(u.context)
	}
	if err == nil && u.memory == 0 {
		u.memory, err = g.driver.Alloc(n)
	}
	return u, err
}
