package parse_test

import (
	"bytes"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
)

// BenchmarkScan looks for anchors alone.
func BenchmarkScan(b *testing.B) {
	log := texttest.RecordedLogs(b, 16)
	r := text.NewReading()
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		r.Scan(bytes.NewReader(log))
	}
}
