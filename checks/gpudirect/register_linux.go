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

// registerBytes is one large page of a GPU, so that cuMemAlloc gives it pages of its own.
const registerBytes = 2 << 20

// registrar registers memory. Everything that it opens is closed when its process ends.
type registrar struct {
	verbs *verbs
	names map[string]uintptr
	// failed is why nothing can be tried.
	failed error

	domains map[string]domain
	host    []byte

	// driver is CUDA's once a GPU is needed, gpus are those that it offers, and noGPUs is why it offers none.
	driver gpudriver.Driver
	gpus   map[string]*gpu
	noGPUs error
}

// domain is the protection domain of a device, or what refused it.
type domain struct {
	pd      uintptr
	refused *attempt.Result
}

// gpu is a GPU, with its primary context and some memory once it was used.
type gpu struct {
	device  gpudriver.Device
	context gpudriver.Context
	memory  gpudriver.Pointer
}

func newRegistrar() func(Try) attempt.Result {
	runtime.LockOSThread() // errno and the current context are those of a thread.
	r := &registrar{domains: make(map[string]domain)}
	if r.verbs, r.failed = loadVerbs(); r.failed == nil {
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
	case d.refused.Outcome == attempt.Refused:
		return attempt.NotKnown("the device could not be used: " + d.refused.Call + ": " + d.refused.Errno)
	default:
		return attempt.NotKnown("the device could not be used: " + d.refused.Reason)
	}
	register := r.registerGPU
	if t.Way == wayHost {
		register = r.registerHost
	}
	result := register(d.pd, t)
	if result.Outcome != attempt.Unknown {
		result.Bytes = registerBytes
	}
	return result
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
	} else if context, err := r.verbs.call(func() uintptr { return r.verbs.OpenDevice(device) }); err != nil {
		fail("ibv_open_device", err)
	} else if d.pd, err = r.verbs.call(func() uintptr { return r.verbs.AllocPD(context) }); err != nil {
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
	r.verbs.DeregMR(mr) // What came of that is of no interest: the end of the process undoes it.
	return attempt.Result{Outcome: attempt.OK}
}

func (r *registrar) registerHost(pd uintptr, _ Try) attempt.Result {
	if r.host == nil {
		memory, err := unix.Mmap(-1, 0, registerBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return attempt.NotKnown("mmap: " + err.Error())
		}
		r.host = memory
	}
	address := uintptr(unsafe.Pointer(&r.host[0]))
	return r.registered("ibv_reg_mr", func() uintptr { return r.verbs.RegMR(pd, address, registerBytes, access) })
}

func (r *registrar) registerGPU(pd uintptr, t Try) attempt.Result {
	g, err := r.gpu(t.GPU)
	if err != nil {
		return attempt.NotKnown(err.Error())
	}
	if t.Way == wayPeermem {
		return r.registered("ibv_reg_mr", func() uintptr { return r.verbs.RegMR(pd, uintptr(g.memory), registerBytes, access) })
	}
	cuda, _ := r.driver.Vendor.(*gpudriver.CUDA) // No other is of this API.
	fd, err := cuda.DMABuf(g.device, g.memory, registerBytes)
	if e, ok := errors.AsType[*gpudriver.Error](err); ok && e.Result == gpudriver.NotSupported {
		return attempt.Result{Outcome: attempt.Refused, Call: e.Call, Errno: e.Name}
	}
	if err != nil {
		return attempt.NotKnown(err.Error())
	}
	defer func() { _ = unix.Close(fd) }() // A registration keeps the buffer by itself.
	if r.verbs.RegDMABufMR == nil {
		return attempt.NotKnown(verbsLibrary + " lacks ibv_reg_dmabuf_mr: it is older than rdma-core 34")
	}
	return r.registered("ibv_reg_dmabuf_mr", func() uintptr { return r.verbs.RegDMABufMR(pd, 0, registerBytes, 0, int32(fd), access) })
}

// outcome is the result of a call that failed. Errno 95 has two names; verbs documents this one.
func outcome(call string, err error) attempt.Result {
	r := attempt.Of(call, err)
	if errors.Is(err, unix.EOPNOTSUPP) {
		r.Errno = "EOPNOTSUPP"
	}
	return r
}

func (r *registrar) startCUDA() error {
	var f *drive.Failure
	if r.driver, f = drive.Start(drive.CUDA, func(string, *drive.Library) {}); f != nil {
		return errors.New(f.Reason)
	}
	devices, err := r.driver.Devices()
	for _, d := range devices {
		if address, err := r.driver.Address(d); err == nil {
			r.gpus[address] = &gpu{device: d}
		}
	}
	return err
}

// gpu makes a GPU the current one, with some memory of it.
func (r *registrar) gpu(address string) (g *gpu, err error) {
	if r.gpus == nil {
		r.gpus = make(map[string]*gpu)
		r.noGPUs = r.startCUDA()
	}
	switch g = r.gpus[address]; {
	case r.noGPUs != nil:
		return nil, r.noGPUs
	case g == nil:
		return nil, fmt.Errorf("CUDA does not offer GPU %s here", address)
	case g.context == 0:
		g.context, err = r.driver.Retain(g.device)
	}
	if err == nil {
		err = r.driver.SetCurrent(g.context)
	}
	if err == nil && g.memory == 0 {
		g.memory, err = r.driver.Alloc(registerBytes)
	}
	return g, err
}
