package direct

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
)

// verbsLibrary is the name by which NCCL and UCX load libibverbs.
const verbsLibrary = "libibverbs.so.1"

// verbs is libibverbs: its functions have the signatures of the manual pages of rdma-core (ibv_reg_mr(3)).
// ibv_reg_mr is a macro there as well, which calls the function unless the access flags are unusual.
type verbs struct {
	getDeviceList func(n *int32) uintptr
	getDeviceName func(device uintptr) uintptr
	openDevice    func(device uintptr) uintptr
	allocPD       func(context uintptr) uintptr
	regMR         func(pd, address uintptr, n uint64, access int32) uintptr
	// regDMABufMR is missing before rdma-core 34.
	regDMABufMR func(pd uintptr, offset, n, iova uint64, fd, access int32) uintptr
	deregMR     func(mr uintptr) int32

	// errnoAt gives the address of this thread's errno.
	errnoAt func() uintptr
}

// access is what NCCL asks for: IBV_ACCESS_LOCAL_WRITE, REMOTE_WRITE and REMOTE_READ (libibverbs/verbs.h).
const access = 1 | 2 | 4

// maxDevices bounds the list of devices that the library returns.
const maxDevices = 1 << 10

var errNoErrno = errors.New("it failed without an error")

func loadVerbs() (*verbs, error) {
	v := &verbs{}
	handle, err := load("libibverbs", verbsLibrary, map[string]any{
		"ibv_get_device_list": &v.getDeviceList, "ibv_get_device_name": &v.getDeviceName, "ibv_open_device": &v.openDevice,
		"ibv_alloc_pd": &v.allocPD, "ibv_reg_mr": &v.regMR, "ibv_dereg_mr": &v.deregMR,
	})
	if err != nil {
		return nil, err
	}
	gpudriver.Bind(handle, "ibv_reg_dmabuf_mr", &v.regDMABufMR)
	if !gpudriver.Bind(gpudriver.Global, "__errno_location", &v.errnoAt) {
		return nil, errors.New("the C library lacks __errno_location")
	}
	return v, nil
}

// load opens a library, which people know by a name, and binds the functions that it must have.
func load(name, library string, functions map[string]any) (uintptr, error) {
	handle, err := gpudriver.Open(library)
	if err != nil {
		return 0, fmt.Errorf("load %s: %w", name, err)
	}
	for function, fn := range functions {
		if !gpudriver.Bind(handle, function, fn) {
			return 0, fmt.Errorf("%s: the library lacks %s", library, function)
		}
	}
	return handle, nil
}

// call makes a call that returns 0 when it fails, and then sets errno. The caller has locked its thread.
func (v *verbs) call(f func() uintptr) (uintptr, error) {
	at := v.errnoAt()
	errno := *(**int32)(unsafe.Pointer(&at))
	*errno = 0
	result := f()
	switch {
	case result != 0:
		return result, nil
	case *errno == 0:
		return 0, errNoErrno
	}
	return 0, syscall.Errno(*errno)
}

// devices are the devices that the library offers, by name. The list is kept: the devices are gone with it.
func (v *verbs) devices() (map[string]uintptr, error) {
	var n int32
	list, err := v.call(func() uintptr { return v.getDeviceList(&n) })
	if err != nil {
		return nil, fmt.Errorf("ibv_get_device_list: %w", err)
	}
	found := make(map[string]uintptr)
	for _, d := range unsafe.Slice(*(**uintptr)(unsafe.Pointer(&list)), max(0, min(n, maxDevices))) {
		found[nameOf(v.getDeviceName(d))] = d
	}
	return found, nil
}

// nameOf reads a name of at most 64 bytes (IBV_SYSFS_NAME_MAX).
func nameOf(p uintptr) string {
	var name []byte
	for i := range uintptr(64) {
		at := p + i
		b := **(**byte)(unsafe.Pointer(&at))
		if p == 0 || b == 0 {
			break
		}
		name = append(name, b)
	}
	return string(name)
}
