package text_test

import (
	"bytes"
	"os"
	"strconv"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
)

// BenchmarkReadAllSubsystems reads the log of 150 hosts. With -cpu 1 it is the speed of
// one core.
func BenchmarkReadAllSubsystems(b *testing.B) {
	log := texttest.AllSubsystems(150)
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		r := text.NewReading()
		if err := r.Read(b.Context(), "log", bytes.NewReader(log)); err != nil {
			b.Fatal(err)
		}
		r.Finish()
	}
}

// BenchmarkReadLog reads the interleaved log of 1024 ranks.
func BenchmarkReadLog(b *testing.B) {
	var log bytes.Buffer
	if err := texttest.WriteLog(&log, 32<<20, 1024); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(log.Len()))
	b.ReportAllocs()
	for b.Loop() {
		r := text.NewReading()
		if err := r.Read(b.Context(), "log", bytes.NewReader(log.Bytes())); err != nil {
			b.Fatal(err)
		}
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
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := texttest.WriteLog(f, n, 1024); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Size() < n {
		t.Errorf("wrote %d of %d bytes: %v", info.Size(), n, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
