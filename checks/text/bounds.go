package text

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// The bounds of what is read.
const (
	// DefaultMaxBytes bounds what is read in all, after unpacking: no log that people attach to a ticket was
	// larger, and logs of NCCL are read at 100 to 200 MB/s.
	DefaultMaxBytes = 2 << 30
	// maxTexts bounds the texts that are read, maxFiles the files of a folder that are listed before any is read.
	maxTexts = 4096
	maxFiles = 100_000
	// maxNamed is how many files of a folder or an archive are listed by name that are not read; the rest is counted.
	maxNamed = 20
	// maxDepth bounds archives in archives.
	maxDepth = 3
	// maxInMemory bounds what has to be held in memory whole: a zip inside another archive or a pipe, and a txtar.
	maxInMemory = 64 << 20
	// headBytes is how much of a text is looked at to tell what it is, and
	// peekBytes the buffer that it is looked at in.
	headBytes = 4 << 10
	peekBytes = 16 * headBytes
)

// counter counts what is read, and ends it where no more may be.
type counter struct {
	from   io.Reader
	intake *intake
}

func (c *counter) Read(p []byte) (int, error) {
	if c.intake.left <= 0 {
		// A text that ends here is whole.
		if n, err := io.ReadFull(c.from, make([]byte, 1)); n == 0 {
			return 0, err
		}
		c.intake.stopped = cmp.Or(c.intake.stopped, ErrMaxBytes)
		return 0, ErrMaxBytes
	}
	n, err := c.from.Read(p[:min(int64(len(p)), c.intake.left)])
	c.intake.left -= int64(n)
	return n, err
}

// problem is why a text is not read, for people and for programs.
type problem struct {
	why    string
	unread facts.Unread
}

// tooMany is the problem of what is one text more than are read.
var tooMany = problem{fmt.Sprintf("more than %d texts", maxTexts), facts.UnreadCount}

// irregular is the problem of pipes, sockets, devices and links.
var irregular = problem{errNotRegular.Error(), facts.UnreadForm}

// problemOf is the problem of an error.
func (t *intake) problemOf(err error) problem {
	switch {
	case errors.Is(err, ErrMaxBytes):
		return problem{fmt.Sprintf("the limit of %s was reached (--max-bytes)", parse.Size(t.options.MaxBytes)), facts.UnreadSize}
	case errors.Is(err, ErrDeadline), errors.Is(err, context.DeadlineExceeded):
		return problem{ErrDeadline.Error(), facts.UnreadTime}
	}
	return problem{gather.Cause(err), facts.UnreadError}
}

// full reports whether no further text is taken.
func (t *intake) full() bool { return len(t.Sink.Facts.Texts) >= maxTexts }

// note lists a text that is not read.
func (t *intake) note(name string, p problem) {
	if t.full() {
		t.beyond.count(p, 1)
		return
	}
	t.list(facts.Text{Name: t.unique(name), Problem: p.why, Unread: p.unread})
}

func (t *intake) list(text facts.Text) {
	text.Kinds, text.Problem = []facts.TextKind{}, escape.Printable(text.Problem, 200)
	t.Sink.Facts.Texts = append(t.Sink.Facts.Texts, text)
}

// unique is the name by which a text is known. Archives may hold two members of one
// name, and folders that are given files of one name.
func (t *intake) unique(name string) string {
	name = escape.Printable(name, 200)
	unique := name
	for t.names[unique] > 0 {
		t.names[name]++
		unique = fmt.Sprintf("%s (%d)", name, t.names[name])
	}
	t.names[unique] = 1
	return unique
}

// listing lists the members of a folder or an archive that are not read: the first ones by name, the rest by number.
type listing struct {
	intake *intake
	of     string
	named  int
	// skipped are those that hold no text, unread those that may.
	skipped, unread tally
}

// tally counts members, with why the first of them is not read; mixed is true where others are not for other reasons.
type tally struct {
	all   int
	first problem
	mixed bool
}

// pass lists a member that is not read.
func (l *listing) pass(name string, p problem) {
	if p.unread == facts.UnreadSize || p.unread == facts.UnreadTime {
		p.why = "not read: " + p.why
	}
	if l.named >= maxNamed && l.of != "" {
		l.count(p, 1)
		return
	}
	l.named++
	l.intake.note(name, p)
}

// count counts members that are not listed by name.
func (l *listing) count(p problem, members int) {
	at := &l.skipped
	if p.unread != "" {
		at = &l.unread
	}
	if at.all == 0 {
		at.first = p
	}
	at.all += members
	at.mixed = at.mixed || p.why != at.first.why
}

// close lists those that were counted.
func (l *listing) close() {
	for _, sum := range []tally{l.unread, l.skipped} {
		if sum.all == 0 {
			continue
		}
		p := sum.first
		if sum.mixed {
			p.why += "; and others"
		}
		if l.intake.full() && l != &l.intake.beyond {
			l.intake.beyond.count(p, sum.all)
			continue
		}
		name := fmt.Sprintf("and %d more", sum.all)
		if l.of != "" {
			name += " in " + l.of
		}
		l.intake.list(facts.Text{Name: l.intake.unique(name), Problem: p.why, Unread: p.unread, More: sum.all})
	}
}
