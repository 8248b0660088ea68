package parse_test

import (
	"bytes"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// BenchmarkScan looks for anchors alone.
func BenchmarkScan(b *testing.B) {
	var log bytes.Buffer
	expect.NoError(b, texttest.WriteLog(&log, 32<<20, 1024))
	r := text.NewReading()
	b.SetBytes(int64(log.Len()))
	for b.Loop() {
		r.Scan(bytes.NewReader(log.Bytes()))
	}
}
