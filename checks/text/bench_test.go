package text_test

import (
	"bytes"
	"os"
	"strconv"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// BenchmarkReadAllSubsystems reads the log of 150 hosts. With -cpu 1 it is the speed of one core.
func BenchmarkReadAllSubsystems(b *testing.B) {
	log := texttest.AllSubsystems(150)
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		r := text.NewReading()
		expect.NoError(b, r.Read(b.Context(), "log", bytes.NewReader(log)))
		r.Finish()
	}
}

// BenchmarkReadLog reads the interleaved log of 1024 ranks.
func BenchmarkReadLog(b *testing.B) {
	var log bytes.Buffer
	expect.NoError(b, texttest.WriteLog(&log, 32<<20, 1024))
	b.SetBytes(int64(log.Len()))
	b.ReportAllocs()
	for b.Loop() {
		r := text.NewReading()
		expect.NoError(b, r.Read(b.Context(), "log", bytes.NewReader(log.Bytes())))
		r.Finish()
	}
}

// TestWriteLog writes a log of the size that GPUDOCTOR_LOG_BYTES says to the
// file that GPUDOCTOR_LOG names, for measuring the whole program on it.
func TestWriteLog(t *testing.T) {
	path, size := os.Getenv("GPUDOCTOR_LOG"), os.Getenv("GPUDOCTOR_LOG_BYTES")
	if path == "" {
		path, size = t.TempDir()+"/log", "1000000"
	}
	n := expect.Value(strconv.ParseInt(size, 10, 64))(t)
	f := expect.Value(os.Create(path))(t)
	expect.NoError(t, texttest.WriteLog(f, n, 1024))
	if info, err := f.Stat(); err != nil || info.Size() < n {
		t.Errorf("wrote %d of %d bytes: %v", info.Size(), n, err)
	}
	expect.NoError(t, f.Close())
}
