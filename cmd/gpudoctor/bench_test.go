package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// program builds the program as a user has it.
func program(b *testing.B) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "gpudoctor")
	build := exec.Command("go", "build", "-o", file, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		b.Fatal(err)
	}
	return file
}

// BenchmarkVersion measures how long the program takes to begin and end.
func BenchmarkVersion(b *testing.B) {
	file := program(b)
	for b.Loop() {
		if err := exec.Command(file, "--version").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheckFrom measures the whole line over the facts of eight GPUs, the
// start of the program and the most memory that it held included.
func BenchmarkCheckFrom(b *testing.B) {
	file := program(b)
	facts := filepath.Join(b.TempDir(), "facts.json")
	if err := writeFacts(facts, eightGPUs()); err != nil {
		b.Fatal(err)
	}
	var most int64
	for b.Loop() {
		run := exec.Command(file, "check", "--fail-on", "none", "--format", "json", "--from", facts)
		if err := run.Run(); err != nil {
			b.Fatal(err)
		}
		most = max(most, maxMemory(run.ProcessState))
	}
	b.ReportMetric(float64(most)/(1<<20), "MiB-rss")
}
