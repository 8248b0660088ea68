package gpudirect

import (
	"cmp"
	"strconv"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
)

// cufileLibrary is the name by which programs load cuFile.
const cufileLibrary = "libcufile.so.0"

// cufile is libcufile: its functions have the signatures of cufile.h of CUDA 12.6. A CUfileError_t has 8 bytes,
// which come back in one register: the CUfileOpError in the lower half.
type cufile struct {
	libc
	calls cufileCalls
}

type cufileCalls struct {
	DriverOpen    func() uint64                                                             `c:"cuFileDriverOpen,needed"`
	GetProperties func(p *cufileProperties) uint64                                          `c:"cuFileDriverGetProperties,needed"`
	Register      func(handle *uintptr, d *cufileDescription) uint64                        `c:"cuFileHandleRegister,needed"`
	BufRegister   func(p gpudriver.Pointer, n uint64, flags int32) uint64                   `c:"cuFileBufRegister,needed"`
	Read          func(handle uintptr, p gpudriver.Pointer, n uint64, at, into int64) int64 `c:"cuFileRead,needed"`
}

// cufileDescription is a CUfileDescr_t; kind 1 is a file descriptor.
type cufileDescription struct {
	kind int32
	_    int32
	fd   int32
	_    int32
	_    uintptr // fs_ops.
}

// cufileProperties is a CUfileDrvProps_t, with room for what later versions add.
type cufileProperties struct {
	_       [2]uint32 // nvfs.major_version, minor_version.
	_       [2]uint64 // poll_thresh_size, max_direct_io_size.
	_       uint32    // dstatusflags.
	control uint32
	_       [6]uint32
	_       [128]byte
}

// controlCompat is the bit of cufileProperties.control that says that the compatibility mode is allowed
// (CU_FILE_ALLOW_COMPAT_MODE).
const controlCompat = 1 << 1

// codeName is the name of a CUfileOpError.
func codeName(code int32) string {
	return cmp.Or(codeNames[code], "CU_FILE_ERROR_"+strconv.Itoa(int(code)))
}

// codeNames are the CUfileOpErrors of cufile.h of CUDA 12.6; 5021 and 5032 are not used.
var codeNames = map[int32]string{
	5001: "CU_FILE_DRIVER_NOT_INITIALIZED", 5002: "CU_FILE_DRIVER_INVALID_PROPS", 5003: "CU_FILE_DRIVER_UNSUPPORTED_LIMIT",
	5004: "CU_FILE_DRIVER_VERSION_MISMATCH", 5005: "CU_FILE_DRIVER_VERSION_READ_ERROR", 5006: "CU_FILE_DRIVER_CLOSING",
	5007: "CU_FILE_PLATFORM_NOT_SUPPORTED", 5008: "CU_FILE_IO_NOT_SUPPORTED", 5009: "CU_FILE_DEVICE_NOT_SUPPORTED",
	5010: "CU_FILE_NVFS_DRIVER_ERROR", 5011: "CU_FILE_CUDA_DRIVER_ERROR", 5012: "CU_FILE_CUDA_POINTER_INVALID",
	5013: "CU_FILE_CUDA_MEMORY_TYPE_INVALID", 5014: "CU_FILE_CUDA_POINTER_RANGE_ERROR", 5015: "CU_FILE_CUDA_CONTEXT_MISMATCH",
	5016: "CU_FILE_INVALID_MAPPING_SIZE", 5017: "CU_FILE_INVALID_MAPPING_RANGE", 5018: "CU_FILE_INVALID_FILE_TYPE",
	5019: "CU_FILE_INVALID_FILE_OPEN_FLAG", 5020: "CU_FILE_DIO_NOT_SET", 5022: "CU_FILE_INVALID_VALUE",
	5023: "CU_FILE_MEMORY_ALREADY_REGISTERED", 5024: "CU_FILE_MEMORY_NOT_REGISTERED", 5025: "CU_FILE_PERMISSION_DENIED",
	5026: "CU_FILE_DRIVER_ALREADY_OPEN", 5027: "CU_FILE_HANDLE_NOT_REGISTERED", 5028: "CU_FILE_HANDLE_ALREADY_REGISTERED",
	5029: "CU_FILE_DEVICE_NOT_FOUND", 5030: "CU_FILE_INTERNAL_ERROR", 5031: "CU_FILE_GETNEWFD_FAILED", 5033: "CU_FILE_NVFS_SETUP_ERROR",
	5034: "CU_FILE_IO_DISABLED", 5035: "CU_FILE_BATCH_SUBMIT_FAILED", 5036: "CU_FILE_GPU_MEMORY_PINNING_FAILED", 5037: "CU_FILE_BATCH_FULL",
	5038: "CU_FILE_ASYNC_NOT_SUPPORTED",
}
