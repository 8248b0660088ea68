package gpudriver

import (
	"errors"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestNCCLVersion checks how versions are written (NCCL_VERSION of nccl.h) and which are supported.
func TestNCCLVersion(t *testing.T) {
	for number, want := range map[int32]string{
		2408: "2.4.8", 2804: "2.8.4", 20906: "2.9.6", 22809: "2.28.9", 29999: "2.99.99",
		2304: "2.3.4 no", 30000: "3.0.0 no", 1348: "1.3.48 no", 0: "0.0.0 no", -1: "0.0.-1 no",
	} {
		got, supported := ncclVersion(number)
		if !supported {
			got += " no"
		}
		expect.Equal(t, want, got, "%d", number)
	}
}

// TestNCCLResults checks that every number has a name, and that those of the header are theirs.
func TestNCCLResults(t *testing.T) {
	for r, want := range map[int32]string{2: "ncclSystemError", 6: "ncclRemoteError", ncclInProgress: "ncclInProgress", 8: "ncclResult_t 8", -1: "ncclResult_t -1"} {
		var e *Error
		expect.That(t, errors.As((&NCCL{}).fail("ncclSend", r), &e) && e.Name == want, "%d: got %+v, want %s", r, e, want)
	}
}
