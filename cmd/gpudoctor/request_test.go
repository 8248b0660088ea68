package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
)

// parseRequest reads a command line of "gpudoctor check" as the program does.
func parseRequest(t *testing.T, flags []string) request {
	t.Helper()
	var got request
	c := checkCommand()
	c.Action = func(c *cli.Context) (err error) {
		got, err = readRequest(c)
		return err
	}
	app := &cli.App{Name: "gpudoctor", Reader: strings.NewReader(""), Commands: []*cli.Command{c}}
	if err := app.Run(append([]string{"gpudoctor", "check"}, flags...)); err != nil {
		t.Fatalf("%q: %v", flags, err)
	}
	got.source.stdin = nil
	return got
}

// TestRecheckKnowsFlags checks that of each flag it was decided whether a command that checks again needs it.
func TestRecheckKnowsFlags(t *testing.T) {
	repeated := []string{"from", "with", "profile", "policy", "waive", "fail-on", "strict", "probe", "probe-busy", "probe-timeout", "deadline", "max-bytes", "exclude", "target", "driver", "platform", "plain-http"}
	left := []string{"baseline", "only", "skip", "redact", "no-redact", "keep-identifiers", "format", "output", "verbose", "quiet", "color", "ascii"}
	for _, f := range checkCommand().Flags {
		name := f.Names()[0]
		expect.That(t, slices.Contains(repeated, name) || slices.Contains(left, name), "--%s: add it to request.recheck and to TestRecheck if it decides what is examined or how it is judged, else to the flags that are left out", name)
	}
}

// TestRecheck checks, for all sets of flags, that the command that checks again asks for the same.
func TestRecheck(t *testing.T) {
	slowWithRace(t)
	for _, name := range []string{"GPUDOCTOR_PROFILE", "GPUDOCTOR_FAIL_ON", "GPUDOCTOR_POLICY"} {
		t.Setenv(name, "") // It is as it was after the test.
		expect.NoError(t, os.Unsetenv(name))
	}
	policy := expect.Value(filepath.Abs(filepath.Join("testdata", "policy")))(t)
	t.Chdir(t.TempDir())
	for _, name := range []string{"my logs", "b.log", "c.log"} {
		expect.NoError(t, os.WriteFile(name, []byte("NCCL INFO"), 0o600))
	}
	options := [][]string{
		{"--from", "my logs"},
		{"--from", "b.log"},
		{"--with", "c.log"},
		{"--profile", "image"},
		{"--policy", policy},
		{"--waive", "my waivers.yaml"},
		{"--fail-on", "medium"},
		{"--strict"},
		{"--probe", "off"},
		{"--probe", "quick"},
		{"--probe", "full"},
		{"--probe-busy"},
		{"--probe-timeout", "30s"},
		{"--deadline", "45s"},
		{"--max-bytes", "500MB"},
	}
	tried := 0
	for set := range 1 << len(options) {
		if night.Few() && set%7 > 0 {
			continue
		}
		var flags []string
		for i, option := range options {
			if set&(1<<i) != 0 {
				flags = append(flags, option...)
			}
		}
		if slices.Contains(flags, "--from") && slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--probe") }) {
			continue // A recording cannot be probed.
		}
		tried++
		want := parseRequest(t, flags)
		again := want.recheck()
		got := parseRequest(t, again.Flags)
		expect.That(t, reflect.DeepEqual(got, want), "%q checks again with %q: %+v, want %+v", flags, again.Flags, got, want)
		expect.That(t, len(flags) != 0 || len(again.Flags) == 0, "without flags it checks again with %q", again.Flags)
	}
	// A target needs files, and its profile.
	flags := []string{"--from", "my logs", "--exclude", "test/*", "--exclude", "b", "--profile", "launch", "--target", "example:h200x2"}
	want := parseRequest(t, flags)
	if got := parseRequest(t, want.recheck().Flags); want.source.target == "" || !reflect.DeepEqual(got, want) {
		t.Errorf("%q checks again as %+v, want %+v", flags, got, want)
	}
	t.Logf("%d sets of flags", tried)
}

// TestRecheckOfImage checks the same of the machine that an image is judged for.
func TestRecheckOfImage(t *testing.T) {
	for _, flags := range [][]string{
		{"--profile", "image", "--driver", "550.54"},
		{"--profile", "image", "--target", "example:model-2x-zeros"},
		{"--profile", "image", "--target", "example:model-2x-zeros", "--driver", "550.54"},
		{"--profile", "image", "--from", "docker://127.0.0.1:1/org/app:1", "--driver", "550.54", "--platform", "linux/arm64/v8", "--plain-http"},
	} {
		want := parseRequest(t, flags)
		expect.Must(t, want.driver != "" || want.source.target != "", "%q: no target", flags)
		if got := parseRequest(t, want.recheck().Flags); !reflect.DeepEqual(got, want) {
			t.Errorf("%q checks again with %q: %+v, want %+v", flags, want.recheck().Flags, got, want)
		}
	}
}

// dead is a file system in which files named dead never answer, as on a network share whose server is gone.
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

// TestDeadShare checks that files on a dead network share do not stop the command before it has begun: they are refused
// where they are all that was given, and else the others are examined.
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
