package gpudriver

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// TestResults checks that the results have the numbers that the table of the driver's
// errors has, as far as it has them.
func TestResults(t *testing.T) {
	t.Parallel()
	numbers := map[string]int{}
	for _, e := range data.DriverErrors().Codes {
		numbers[e.Name] = e.Code
	}
	for name, result := range map[string]Result{
		"OUT_OF_MEMORY": OutOfMemory, "STUB_LIBRARY": StubLibrary, "DEVICE_UNAVAILABLE": DeviceUnavail, "NO_DEVICE": NoDevice, "INVALID_DEVICE": InvalidDevice,
		"PEER_ACCESS_ALREADY_ENABLED": PeerAlready, "NOT_SUPPORTED": NotSupported, "SYSTEM_NOT_READY": SystemNotReady,
		"SYSTEM_DRIVER_MISMATCH": DriverMismatch, "COMPAT_NOT_SUPPORTED_ON_DEVICE": CompatNotSupport,
	} {
		expect.That(t, numbers[name] == int(result), "%s is %d, and %d in the table", name, result, numbers[name])
	}
}
