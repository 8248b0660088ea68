package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// dead is a file system in which files named dead never answer, as on a network
// share whose server is gone.
type dead struct {
	files.OS
	end chan struct{}
}

func (d dead) wait(name string) {
	if strings.HasPrefix(filepath.Base(name), "dead") {
		<-d.end
	}
}

func (d dead) Stat(name string) (fs.FileInfo, error) {
	d.wait(name)
	return d.OS.Stat(name)
}

func (d dead) Open(name string) (files.File, error) {
	d.wait(name)
	return d.OS.Open(name)
}

// TestDeadShare checks that files on a dead network share do not stop the command
// before it has begun: they are refused where they are all that was given, and else
// the others are examined.
func TestDeadShare(t *testing.T) {
	dir := t.TempDir()
	log, share := filepath.Join(dir, "job.log"), filepath.Join(dir, "dead.log")
	for _, name := range []string{log, share} {
		expect.NoError(t, os.WriteFile(name, []byte("NCCL version 2.21.5+cuda12.4\n"), 0o600))
	}
	system := dead{end: make(chan struct{})}
	t.Cleanup(func() { close(system.end) })
	// Each answer is waited for up to deadline.Silence; the context ends it sooner.
	over, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer stop()
	alone := source{from: []string{share}, system: system}
	if err := alone.check(over); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("alone: %v", err)
	}
	is := alone.isRecording(over, share)
	expect.That(t, !is, "it is taken for a recording")
	if _, _, err := alone.openRecording(over, share); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("opened: %v", err)
	}
	both := source{from: []string{log, share}, system: system}
	g := collect(t.Context(), both, gather.Options{Whole: 4 * time.Second})
	if g.err != nil {
		t.Fatal(g.err)
	}
	for _, text := range g.facts.Texts {
		dead := text.Name == share
		expect.That(t, dead == (text.Unread == facts.UnreadTime) && dead != (len(text.Kinds) > 0), "%+v", text)
	}
}

// TestMaxBytesFlag checks which sizes --max-bytes takes.
func TestMaxBytesFlag(t *testing.T) {
	for value, want := range map[string]int64{"500MB": 500e6, "2GiB": 2 << 30, "64 KiB": 64 << 10, "1": 1, "0": 0, "-1": 0, "x": 0, "": 0, "1e30": 0, "1.5GiB": 3 << 29, "99999999EB": 0, "5QB": 0} {
		got, err := parseMaxBytes(t, value)
		expect.That(t, (err == nil) == (want > 0) && (err != nil || got == want), "%q: got %d, %v, want %d", value, got, err, want)
		expect.That(t, err == nil || strings.Contains(err.Error(), "--max-bytes"), "%q: %v", value, err)
	}
}

// parseMaxBytes reads a command line with --max-bytes as the program does.
func parseMaxBytes(t *testing.T, value string) (size int64, err error) {
	t.Helper()
	c := checkCommand()
	c.Action = func(c *cli.Context) error {
		r, err := readRequest(c)
		size = r.source.maxBytes
		return err
	}
	app := &cli.App{Name: "gpudoctor", Reader: strings.NewReader(""), Commands: []*cli.Command{c}}
	err = app.Run([]string{"gpudoctor", "check", "--max-bytes", value})
	return size, err
}
