package facts

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"0000:3B:00": "0000:3b:00.0", "3b:00.1": "0000:3b:00.1", "3b:00": "0000:3b:00.0", "00000000:01:00.0": "0000:01:00.0",
		"10000:e1:00.0": "10000:e1:00.0", "0009:01:00.0": "0009:01:00.0", "new_id": "", "3b:00.9": "", "": "",
	} {
		expect.Equal(t, want, Address(in), "Address(%q)", in)
	}
}
