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

// verbs is libibverbs: its functions have the signatures of the manual pages of rdma-core (ibv_reg_mr(3)).
// ibv_reg_mr is a macro there as well, which calls the function unless the access flags are unusual.
type verbs struct {
	libc
	calls verbsCalls
}

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

// libc is the C library of this process.
type libc struct {
	// ErrnoLocation gives the address of this thread's errno.
	ErrnoLocation func() uintptr `c:"__errno_location,needed"`
}

// errno is this thread's errno. The caller has locked its thread.
func (c *libc) errno() *int32 {
	at := c.ErrnoLocation()
	return *(**int32)(unsafe.Pointer(&at))
}

// access is what NCCL asks for: IBV_ACCESS_LOCAL_WRITE, REMOTE_WRITE and REMOTE_READ (libibverbs/verbs.h).
const access = 1 | 2 | 4

// maxDevices bounds the list of devices that the library returns.
const maxDevices = 1 << 10

var errNoErrno = errors.New("it failed without an error")

// load opens a library, which people know by a name, and binds its functions and those of the C library.
func load(name, library string, functions any, c *libc) error {
	handle, err := gpudriver.Open(library)
	if err != nil {
		return fmt.Errorf("load %s: %w", name, err)
	}
	missing := append(gpudriver.BindAll(handle, "c", functions, nil), gpudriver.BindAll(gpudriver.Global, "c", c, nil)...)
	if len(missing) > 0 {
		return fmt.Errorf("%s: the library lacks %s", library, missing[0])
	}
	return nil
}

// call makes a call that returns 0 when it fails, and then sets errno. The caller has locked its thread.
func (v *verbs) call(f func() uintptr) (uintptr, error) {
	errno := v.errno()
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
	list, err := v.call(func() uintptr { return v.calls.GetDeviceList(&n) })
	if err != nil {
		return nil, fmt.Errorf("ibv_get_device_list: %w", err)
	}
	found := make(map[string]uintptr)
	for _, d := range unsafe.Slice(*(**uintptr)(unsafe.Pointer(&list)), max(0, min(n, maxDevices))) {
		found[gpudriver.Text(v.calls.GetDeviceName(d))] = d
	}
	return found, nil
}
