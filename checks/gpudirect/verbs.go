package gpudirect

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
)

// verbsLibrary is the name by which NCCL and UCX load libibverbs.
const verbsLibrary = "libibverbs.so.1"

// verbs is libibverbs, with the errno of the C library.
type verbs struct {
	verbsCalls
	libc
}

// verbsCalls have the signatures of the manual pages of rdma-core (ibv_reg_mr(3)). ibv_reg_mr is a macro there as
// well, which calls the function unless the access flags are unusual.
type verbsCalls struct {
	GetDeviceList func(n *int32) uintptr                                    `c:"ibv_get_device_list,needed"`
	GetDeviceName func(device uintptr) uintptr                              `c:"ibv_get_device_name,needed"`
	OpenDevice    func(device uintptr) uintptr                              `c:"ibv_open_device,needed"`
	AllocPD       func(context uintptr) uintptr                             `c:"ibv_alloc_pd,needed"`
	RegMR         func(pd, address uintptr, n uint64, access int32) uintptr `c:"ibv_reg_mr,needed"`
	// RegDMABufMR is missing before rdma-core 34.
	RegDMABufMR func(pd uintptr, offset, n, iova uint64, fd, access int32) uintptr `c:"ibv_reg_dmabuf_mr"`
	DeregMR     func(mr uintptr) int32                                             `c:"ibv_dereg_mr,needed"`
}

type libc struct {
	// ErrnoLocation gives the address of this thread's errno.
	ErrnoLocation func() uintptr `c:"__errno_location,needed"`
}

// access is what NCCL asks for: IBV_ACCESS_LOCAL_WRITE, REMOTE_WRITE and REMOTE_READ (libibverbs/verbs.h).
const access = 1 | 2 | 4

// maxDevices bounds the list of devices that the library returns.
const maxDevices = 1 << 10

var errNoErrno = errors.New("it failed without an error")

func loadVerbs() (*verbs, error) {
	handle, err := gpudriver.Open(verbsLibrary)
	if err != nil {
		return nil, fmt.Errorf("load libibverbs: %w", err)
	}
	v := &verbs{}
	missing := append(gpudriver.BindAll(handle, "c", &v.verbsCalls, nil), gpudriver.BindAll(gpudriver.Global, "c", &v.libc, nil)...)
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s: the library lacks %s", verbsLibrary, missing[0])
	}
	return v, nil
}

// call makes a call that returns 0 when it fails, and then sets errno. The caller has locked its thread.
func (v *verbs) call(f func() uintptr) (uintptr, error) {
	at := v.ErrnoLocation()
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
	list, err := v.call(func() uintptr { return v.GetDeviceList(&n) })
	if err != nil {
		return nil, fmt.Errorf("ibv_get_device_list: %w", err)
	}
	found := make(map[string]uintptr)
	for _, d := range unsafe.Slice(*(**uintptr)(unsafe.Pointer(&list)), max(0, min(n, maxDevices))) {
		found[gpudriver.Text(v.GetDeviceName(d))] = d
	}
	return found, nil
}
