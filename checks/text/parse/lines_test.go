package parse

import (
	"bytes"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestPlain checks which bytes make a line one that is not plain, at each place.
func TestPlain(t *testing.T) {
	for c := range 256 {
		want := c >= ' ' && c < 0x7f || c == '\t'
		for _, around := range []byte{' ', 'a', '~', '\t'} {
			for at := range 20 {
				line := bytes.Repeat([]byte{around}, 20)
				line[at] = byte(c)
				expect.Equal(t, want, plain(line), "%q", line)
			}
		}
	}
}
