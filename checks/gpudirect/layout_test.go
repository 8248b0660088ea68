package gpudirect

import (
	"testing"
	"unsafe"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestLayout checks the sizes and places that cufile.h of CUDA 12.6 gives on 64-bit machines.
func TestLayout(t *testing.T) {
	var p cufileProperties
	var d cufileDescription
	for name, c := range map[string][2]uintptr{
		"CUfileDescr_t":                       {unsafe.Sizeof(d), 24},
		"CUfileDescr_t.handle":                {unsafe.Offsetof(d.fd), 8},
		"CUfileDrvProps_t.nvfs.dcontrolflags": {unsafe.Offsetof(p.control), 28},
	} {
		expect.Equal(t, c[1], c[0], "%s", name)
	}
}
