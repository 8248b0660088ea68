package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func program(b *testing.B) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "gpudoctor")
	build := exec.Command("go", "build", "-o", file, ".")
	build.Stderr = os.Stderr
	expect.NoError(b, build.Run())
	return file
}

// BenchmarkVersion measures how long the program takes to begin and end.
func BenchmarkVersion(b *testing.B) {
	file := program(b)
	for b.Loop() {
		expect.NoError(b, exec.Command(file, "--version").Run())
	}
}

// BenchmarkCheckFrom measures the whole line over the facts of eight GPUs, the
// start of the program and the most memory that it held included.
func BenchmarkCheckFrom(b *testing.B) {
	file := program(b)
	facts := filepath.Join(b.TempDir(), "facts.json")
	expect.NoError(b, writeFacts(facts, eightGPUs()))
	var most int64
	for b.Loop() {
		run := exec.Command(file, "check", "--fail-on", "none", "--format", "json", "--from", facts)
		expect.NoError(b, run.Run())
		if usage, ok := run.ProcessState.SysUsage().(*syscall.Rusage); ok {
			most = max(most, usage.Maxrss)
		}
	}
	b.ReportMetric(float64(most)/(1<<10), "MiB-rss") // Linux counts ru_maxrss in KiB (getrusage(2)).
}
