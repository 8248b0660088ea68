package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/evidence"
	"github.com/gpudoctor/gpudoctor/fixtures"
)

// source is what is examined: this machine when from is empty, else
// recordings and texts.
type source struct {
	// from are recordings, texts, folders and archives; "-" is standard input.
	from []string
	// with are texts of what happened on the machine that is examined.
	with  []string
	stdin io.Reader
}

// The prefix of a name of a recording that comes with gpudoctor, and what
// stands for standard input.
const (
	examplePrefix = "example:"
	standardInput = "-"
)

// textsMemory is what the program keeps to while it reads texts, however long
// they are: what it holds of them is far less, and garbage is collected sooner.
const textsMemory = 140 << 20

var (
	errProbeRecorded = errors.New("--probe and --from do not go together")
	errExampleAlone  = errors.New("--from: an example stands alone")
)

// names says what was examined.
func (s source) names() []string {
	if len(s.from) == 0 {
		return append([]string{"this machine"}, s.with...)
	}
	return slices.Concat(s.from, s.with)
}

// What --from takes, for hints.
const (
	takesTexts = "--from takes logs, outputs of commands, job descriptions, folders and archives of them, and what gpudoctor snapshot or gpudoctor facts wrote"
	takesKinds = "gpudoctor texts lists what is recognised and how to produce it"
)

// gathered is what was read, and how long each check took.
type gathered struct {
	facts *checks.Facts
	took  map[string]time.Duration
	// textsOnly is true where no machine was examined, live or recorded.
	textsOnly bool
	// err may come with facts: that of texts in which nothing was recognised.
	err error
}

// gather reads the facts of this machine, or those of recordings and texts.
func gather(ctx context.Context, s source, opts checks.Options) gathered {
	g := s.machine(ctx, opts)
	if g.err != nil {
		return g
	}
	texts := s.with
	if g.facts == nil {
		texts = slices.Concat(s.from, s.with)
	}
	if len(texts) == 0 {
		return g
	}
	debug.SetMemoryLimit(textsMemory)
	reading := ctx
	if opts.Whole > 0 {
		var stop context.CancelFunc
		reading, stop = context.WithTimeout(ctx, opts.Whole)
		defer stop()
	}
	read, err := evidence.Read(reading, texts, evidence.Options{Stdin: s.stdin, Gather: opts, Progress: opts.Progress})
	switch {
	case ctx.Err() != nil:
		return gathered{err: context.Cause(ctx)}
	case reading.Err() != nil:
		return gathered{err: hinted(fmt.Errorf("reading the input took longer than %s", opts.Whole), "--deadline sets another limit")}
	case errors.Is(err, evidence.ErrNothing):
		g := gathered{err: hinted(err, takesTexts, takesKinds)}
		if slices.ContainsFunc(read.Facts.Texts, func(t checks.Text) bool { return t.Problem == "" }) {
			g.facts, g.textsOnly = read.Facts, true // The report says what to send in its place.
		}
		return g
	case errors.Is(err, checks.ErrNewer):
		return gathered{err: hinted(err, "a newer gpudoctor wrote it: update this one")}
	case err != nil:
		return gathered{err: hinted(err, takesTexts)}
	case g.facts != nil:
		read.Facts = evidence.Join(g.facts, read.Facts)
	}
	return gathered{facts: read.Facts, took: g.took, textsOnly: g.facts == nil && read.Recording == ""}
}

// machine gathers what is known of a machine itself: this one, or the one that
// a recording shows. There are no facts where the sources are texts.
func (s source) machine(ctx context.Context, opts checks.Options) gathered {
	var host *checks.Host
	var facts *checks.Facts
	var err error
	switch {
	case len(s.from) == 0:
		host = checks.Live()
	case strings.HasPrefix(s.from[0], examplePrefix):
		host, facts, err = openExample(s.from[0])
	case len(s.from) == 1 && isRecording(s.from[0]):
		host, facts, err = openRecording(s.from[0])
	default:
		return gathered{}
	}
	if err != nil || facts != nil {
		return gathered{facts: facts, err: err}
	}
	facts, took := checks.Gather(ctx, host, opts)
	return gathered{facts: facts, took: took, err: context.Cause(ctx)}
}

// openExample opens a recording that comes with gpudoctor.
func openExample(from string) (*checks.Host, *checks.Facts, error) {
	name := strings.TrimPrefix(from, examplePrefix)
	raw, err := fixtures.Example(name)
	if err != nil {
		return nil, nil, unknownName("example", name, fixtures.Examples(), "examples: "+strings.Join(fixtures.Examples(), ", "))
	}
	return checks.Open(from, bytes.NewReader(raw))
}

// isRecording reports whether a file is one of gpudoctor's own.
func isRecording(path string) bool {
	if info, err := os.Stat(path); path == standardInput || err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // It was only read.
	head := make([]byte, 1024)
	n, _ := io.ReadFull(f, head)
	return checks.IsRecording(head[:n])
}

// openRecording opens a snapshot or a facts file.
func openRecording(path string) (*checks.Host, *checks.Facts, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() //nolint:errcheck // It was only read.
	host, facts, err := checks.Open(path, f)
	switch {
	case errors.Is(err, checks.ErrNewer):
		return nil, nil, hinted(err, "a newer gpudoctor wrote it: update this one")
	case err != nil:
		return nil, nil, hinted(err, takesTexts)
	}
	return host, facts, nil
}

// check refuses sources that do not go together.
func (s source) check() error {
	all := slices.Concat(s.from, s.with)
	for i, name := range all {
		if strings.HasPrefix(name, examplePrefix) && (i > 0 || len(s.from) > 1) {
			return hinted(errExampleAlone, "a log of what happened there may be given along with it: --with FILE")
		}
	}
	if n := len(slices.DeleteFunc(all, func(name string) bool { return name != standardInput })); n > 1 {
		return fmt.Errorf("standard input (-) is named %d times", n)
	}
	return nil
}
