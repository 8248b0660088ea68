package gpudriver

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestNCCLVersion checks how versions are written (NCCL_VERSION of nccl.h) and which are supported.
func TestNCCLVersion(t *testing.T) {
	for _, tt := range []struct {
		number    int32
		want      string
		supported bool
	}{
		{2304, "2.3.4", false},
		{2408, "2.4.8", true},
		{2708, "2.7.8", true},
		{2804, "2.8.4", true},
		{20906, "2.9.6", true},
		{21805, "2.18.5", true},
		{22809, "2.28.9", true},
		{29999, "2.99.99", true},
		{30000, "3.0.0", false},
		{1348, "1.3.48", false},
		{0, "0.0.0", false},
		{-1, "0.0.-1", false},
	} {
		got := ncclVersion(tt.number)
		expect.That(t, got == tt.want && ncclSupported(tt.number) == tt.supported, "%d: %s, supported %t; want %s, %t", tt.number, got, ncclSupported(tt.number), tt.want, tt.supported)
	}
}

// TestNCCLResults checks that every number has a name, and that those of the header are theirs.
func TestNCCLResults(t *testing.T) {
	for r, want := range map[int32]string{0: "ncclSuccess", 2: "ncclSystemError", 5: "ncclInvalidUsage", 6: "ncclRemoteError", ncclInProgress: "ncclInProgress", 8: "ncclResult_t 8", -1: "ncclResult_t -1"} {
		expect.Equal(t, want, ncclName(r), "%d", r)
	}
}
