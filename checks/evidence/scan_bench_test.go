package evidence

import (
	"bytes"
	"testing"
)

// BenchmarkScan looks for anchors alone.
func BenchmarkScan(b *testing.B) {
	var log bytes.Buffer
	if err := writeLog(&log, 32<<20, 1024); err != nil {
		b.Fatal(err)
	}
	r := registry.newReading()
	b.SetBytes(int64(log.Len()))
	for b.Loop() {
		r.Scan(bytes.NewReader(log.Bytes()))
	}
}
