package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/fixtures"
)

// The values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// asciiFlag is for terminals whose locale promises more than they can show.
var asciiFlag = &cli.BoolFlag{Name: "ascii", DisableDefaultText: true, Usage: "write only ASCII (default if the locale is not UTF-8)"}

// style is how to write on standard output: in its width and in colour if it
// is a terminal.
func style(c *cli.Context, color string) report.Style {
	s := report.Style{Color: color == colorAlways, ASCII: c.Bool(asciiFlag.Name) || !utf8Locale(), Example: example()}
	f, ok := plain(c.App.Writer).(*os.File)
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
	most  time.Duration // The deadline of the whole.
	name  string        // What is under way.
	shown bool
	stop  chan struct{}
}

// patience is how long nothing is shown: what ends before needs no progress.
const patience = 400 * time.Millisecond

// slow is when a person begins to wonder, and is told how long it may last.
const slow = 3 * time.Second

// newProgress returns a progress that shows nothing where nobody looks. most is
// how long the whole may take.
func newProgress(quiet bool, most time.Duration) *progress {
	p := &progress{since: time.Now(), most: most, stop: make(chan struct{})}
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
			p.step("")
		case <-p.stop:
			return
		}
	}
}

// step says what has begun, or with no name that the same is still under way.
func (p *progress) step(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.name = cmp.Or(name, p.name)
	took := time.Since(p.since)
	if p.w == nil || took < patience || p.name == "" {
		return
	}
	line := fmt.Sprintf("gpudoctor: %.40s ...", lines.Printable(p.name, true))
	if took >= slow {
		line += fmt.Sprintf(" %.0f s of at most %.0f s", took.Seconds(), p.most.Seconds())
	}
	_, err := fmt.Fprint(p.w, "\r\x1b[K"+line)
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
