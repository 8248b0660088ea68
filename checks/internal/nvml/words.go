package nvml

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// NVML's numbers and gpudoctor's words for them. The numbers are those of nvml.h 13.

// architectures are NVML_DEVICE_ARCH_*.
var architectures = map[int64]string{
	2: "kepler", 3: "maxwell", 4: "pascal", 5: "volta", 6: "turing", 7: "ampere",
	8: "ada", 9: "hopper", 10: "blackwell", 13: "rubin",
}

// virtualizationModes are nvmlGpuVirtualizationMode_t.
var virtualizationModes = map[int64]string{0: "none", 1: "passthrough", 2: "vgpu", 3: "host-vgpu", 4: "host-vsga"}

// recoveryActions are nvmlDeviceGpuRecoveryAction_t.
var recoveryActions = map[int64]string{
	0: "none", 1: "gpu-reset", 2: "node-reboot", 3: "drain-p2p", 4: "drain-and-reset", 5: "recover-imex-domain",
}

// peerStatuses are nvmlGpuP2PStatus_t.
var peerStatuses = map[int64]string{
	0: "ok", 1: "chipset-not-supported", 2: "gpu-not-supported", 3: "topology-not-supported",
	4: "disabled-by-regkey", 5: "not-supported", 6: "unknown",
}

// linkGenerations are the NVLink generations of nvmlNvlinkVersion_t: 2.2 counts as 2, 3.1 as 3.
var linkGenerations = map[int64]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 5, 8: 6}

// remoteTypes are nvmlIntNvLinkDeviceType_t.
var remoteTypes = map[int64]string{0: "gpu", 1: "cpu", 2: "switch"}

// fabricStates are NVML_GPU_FABRIC_STATE_*.
var fabricStates = map[int64]string{0: "not-supported", 1: "not-started", 2: "in-progress", 3: "completed"}

// errorNames are nvmlReturn_t without "NVML_ERROR_".
var errorNames = map[int64]string{
	0: "SUCCESS", 1: "UNINITIALIZED", 2: "INVALID_ARGUMENT", 3: "NOT_SUPPORTED", 4: "NO_PERMISSION",
	5: "ALREADY_INITIALIZED", 6: "NOT_FOUND", 7: "INSUFFICIENT_SIZE", 8: "INSUFFICIENT_POWER",
	9: "DRIVER_NOT_LOADED", 10: "TIMEOUT", 11: "IRQ_ISSUE", 12: "LIBRARY_NOT_FOUND",
	13: "FUNCTION_NOT_FOUND", 14: "CORRUPTED_INFOROM", 15: "GPU_IS_LOST", 16: "RESET_REQUIRED",
	17: "OPERATING_SYSTEM", 18: "LIB_RM_VERSION_MISMATCH", 19: "IN_USE", 20: "MEMORY", 21: "NO_DATA",
	22: "VGPU_ECC_NOT_SUPPORTED", 23: "INSUFFICIENT_RESOURCES", 24: "FREQ_NOT_SUPPORTED",
	25: "ARGUMENT_VERSION_MISMATCH", 26: "DEPRECATED", 27: "NOT_READY", 28: "GPU_NOT_FOUND",
	29: "INVALID_STATE", 30: "RESET_TYPE_NOT_SUPPORTED", 999: "UNKNOWN",
}

// errorName names an error; an unknown one by its number.
func errorName(code uint32) string {
	return cmp.Or(errorNames[int64(code)], fmt.Sprintf("ERROR_%d", code))
}

// unhealthy names the bad parts of a fabric's health mask (NVML_GPU_FABRIC_HEALTH_MASK_*). A part is two bits wide, of which
// 1 is bad, 2 good and 0 unknown; the configuration is four bits wide, of which 0 is unknown, 1 good, more wrong.
func unhealthy(mask uint32) []string {
	var bad []string
	for i, part := range []string{"degraded-bandwidth", "route-recovery", "route-unhealthy", "access-timeout-recovery"} {
		if mask>>(2*i)&0x3 == 1 {
			bad = append(bad, part)
		}
	}
	if mask>>8&0xf > 1 {
		bad = append(bad, "incorrect-configuration")
	}
	return bad
}

// address turns NVML's bus id ("00000000:3B:00.0") into the kernel's form ("0000:3b:00.0"); "" for what is no address, and
// for the all-zero or all-ones one of a hidden device.
func address(busID string) string {
	a := facts.Address(busID)
	if !wholeAddress.MatchString(busID) || a == "0000:00:00.0" || strings.HasSuffix(a, ":ff:1f.7") {
		return ""
	}
	return a
}

var wholeAddress = lazy.New(`^[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7]$`)

// fieldNumber reads the value of a field (nvmlValue_t, a union) by its type (nvmlValueType_t). The fields that are
// queried are unsigned.
func fieldNumber(kind uint32, value [8]byte) (int64, bool) {
	switch kind {
	case 1: // unsigned int
		return int64(binary.NativeEndian.Uint32(value[:4])), true
	case 2, 3: // unsigned long, unsigned long long
		n := bytesOf(binary.NativeEndian.Uint64(value[:]))
		return known(n), n != nil
	}
	return 0, false
}

// known is what a pointer leads to, if anything.
func known[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// bytesOf returns a size, or nil for NVML_VALUE_NOT_AVAILABLE, all ones.
func bytesOf(n uint64) *int64 {
	if n > math.MaxInt64 {
		return nil
	}
	return new(int64(n))
}

// cudaVersion spells 13000 as "13.0".
func cudaVersion(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d", n/1000, n%1000/10)
}
