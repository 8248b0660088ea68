package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// progress shows on standard error what is under way, if that is a terminal.
type progress struct {
	mu    sync.Mutex
	w     *os.File
	since time.Time
	most  time.Duration // The deadline of the whole.
	name  string        // What is under way.
	shown bool
	stop  chan struct{}
}

// patience is how long nothing is shown: what ends before needs no progress.
const progressPatience = 400 * time.Millisecond

// slow is when a person begins to wonder, and is told how long it may last.
const progressSlow = 3 * time.Second

// newProgress returns a progress that shows nothing where nobody looks. It follows the steps of what is gathered with the options.
func newProgress(quiet bool, opts *gather.Options) *progress {
	p := &progress{since: time.Now(), most: opts.Whole, stop: make(chan struct{})}
	opts.Progress = p.Step
	if !quiet && term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb" {
		p.w = os.Stderr
		go p.tick()
	}
	return p
}

// tick shows each second that something is still under way.
func (p *progress) tick() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.Step("")
		case <-p.stop:
			return
		}
	}
}

// Step says what has begun, or with no name that the same is still under way.
func (p *progress) Step(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.name = cmp.Or(name, p.name)
	took := time.Since(p.since)
	if p.w == nil || took < progressPatience || p.name == "" {
		return
	}
	line := fmt.Sprintf("gpudoctor: %.40s ...", lines.Printable(p.name, true))
	if took >= progressSlow {
		line += fmt.Sprintf(" %.0f s of at most %.0f s", took.Seconds(), p.most.Seconds())
	}
	_, err := fmt.Fprint(p.w, "\r\x1b[K"+line)
	p.shown = err == nil
}

func (p *progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		_, _ = io.WriteString(p.w, "\r\x1b[K") // A terminal that is gone needs no tidying.
		p.shown = false
	}
	if p.w != nil {
		close(p.stop)
	}
	p.w = nil
}

// tell writes a remark for a person who looks on, and nothing elsewhere.
func tell(format string, args ...any) {
	if term.IsTerminal(int(os.Stderr.Fd())) {
		_, _ = io.WriteString(os.Stderr, lines.Printable(fmt.Sprintf(format, args...), false)+"\n") // It is a remark.
	}
}
