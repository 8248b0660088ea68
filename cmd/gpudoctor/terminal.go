package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures"
)

// The values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// style is how to write on standard output: in its width and in colour if it
// is a terminal.
func style(stdout io.Writer, color string) report.Style {
	s := report.Style{Color: color == colorAlways, ASCII: !utf8Locale(), Example: example()}
	f, ok := stdout.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil {
		s.Width = width
	}
	// NO_COLOR: https://no-color.org
	if color == colorAuto {
		s.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return s
}

// utf8Locale reports whether the locale's characters are UTF-8, by the first
// of the variables that is set (locale(7)).
func utf8Locale() bool {
	name := strings.ToLower(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	return strings.Contains(name, "utf-8") || strings.Contains(name, "utf8")
}

// example is a recorded machine to point to: the largest, by its name the
// last.
func example() string {
	if names := fixtures.Examples(); len(names) > 0 {
		const best = "h200x4"
		for _, n := range names {
			if n == best {
				return n
			}
		}
		return names[len(names)-1]
	}
	return ""
}

// progress shows on standard error what is under way, if that is a terminal.
type progress struct {
	mu    sync.Mutex
	w     *os.File
	since time.Time
	shown bool
}

// patience is how long nothing is shown: what ends before needs no progress.
const patience = 400 * time.Millisecond

// newProgress returns a progress that shows nothing where nobody looks.
func newProgress(quiet bool) *progress {
	p := &progress{since: time.Now()}
	if !quiet && term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb" {
		p.w = os.Stderr
	}
	return p
}

// step says what has begun.
func (p *progress) step(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil || time.Since(p.since) < patience {
		return
	}
	_, err := fmt.Fprintf(p.w, "\r\x1b[Kgpudoctor: %.60s ...", report.Printable(name, true))
	p.shown = err == nil
}

// done takes away what was shown.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		_, _ = io.WriteString(p.w, "\r\x1b[K") // A terminal that is gone needs no tidying.
		p.shown = false
	}
	p.w = nil
}

// tell writes a remark for a person who looks on, and nothing elsewhere.
func tell(format string, args ...any) {
	if term.IsTerminal(int(os.Stderr.Fd())) {
		fmt.Fprintf(os.Stderr, format+"\n", args...)
	}
}
