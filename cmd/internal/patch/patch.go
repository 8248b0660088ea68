// Package patch changes a file that describes a job so that it has the settings of a plan.
// It edits the text at the places that parsers tell: what is not removed or changed for a reason stays byte for byte, with its
// comments and its order. After each edit the text is parsed again, and must say what it said before, but for the setting. What
// cannot be changed so is reported and left.
package patch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	texts "github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/emit"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// The bounds of a file, in which the text is read again after each change: nobody writes by hand what has more.
const (
	MaxBytes   = 128 << 10
	maxLines   = 20000
	maxChanges = 100
	// width is that of comments, in columns.
	width = 100
)

// Want is a setting that the file should have.
type Want struct {
	plan.Setting
	// Comment is what is written beside it; its reason if it is empty.
	Comment string
	// Values are those that a variable to remove has; empty for any.
	Values []string
	// Lines are those of the findings about the file that it cures. Where there are some,
	// only what stands there is changed.
	Lines []int
}

// Request is what to change.
type Request struct {
	// Name is the file's name, Text what is in it.
	Name, Text string
	// The file should have these settings, those of most importance first.
	Wants []Want
	// GPUs counts those of the machine, Vendor is theirs.
	GPUs   int
	Vendor string
}

// Remark is a change, or what is to be changed by hand.
type Remark struct {
	// Line is where, in the original file; 0 where it is not known.
	Line int
	// Where names the container or service; empty for the file.
	Where string
	// What is the setting as people write it, or what to do.
	What string
	// Note says why it was made, or why it cannot be.
	Note string
}

// Result is the file with its changes.
type Result struct {
	// Text is the text with the changes, the same as before if there are none.
	Text string
	// Changes are those that were made, Manual those that are left to a person.
	Changes, Manual []Remark
	// Notes are what the file cannot say.
	Notes []Remark
}

// The errors of files that cannot be changed.
var (
	ErrBinary = errors.New("it is not a text file")
	ErrLarge  = fmt.Errorf("it has more than %d bytes or %d lines, or more than %d places to change", MaxBytes, maxLines, maxChanges)
	ErrKind   = errors.New("no description of a job that can be changed was recognized")

	errLineEnds = complaint.Hinted(errors.New("it has a byte order mark, or lines that end with a carriage return"), "dos2unix removes them")
)

// Make changes a file.
func Make(ctx context.Context, r Request) (Result, error) {
	switch {
	case len(r.Text) > MaxBytes || strings.Count(r.Text, "\n") > maxLines:
		return Result{}, ErrLarge
	case !utf8.ValidString(r.Text) || strings.ContainsRune(r.Text, 0):
		return Result{}, ErrBinary
	case strings.ContainsAny(r.Text, "\r\ufeff\u0085\u2028\u2029"): // Parsers disagree on what they end.
		return Result{}, errLineEnds
	}
	f := newFile(r)
	if err := f.read(ctx); err != nil {
		return Result{}, err
	}
	switch i := slices.IndexFunc(f.lines, func(l string) bool { return strings.Contains(l, "{{") }); {
	case strings.HasPrefix(f.Text, "#!"), !slices.ContainsFunc(f.launches, func(l facts.Launch) bool { return l.Kind == "kubernetes" || l.Kind == "compose" }):
		return Result{}, ErrKind
	case i >= 0:
		return Result{}, complaint.Hinted(
			fmt.Errorf("line %d is a template, which says nothing until it is filled in", i+1),
			"render it (helm template, kustomize build), and give the result", "gpudoctor advise --for kubernetes writes what to add",
		)
	}
	if err := (&document{file: f}).change(); err != nil {
		return Result{}, err
	}
	if f.isFull() {
		return Result{}, ErrLarge
	}
	if len(f.changes) == 0 {
		f.Text = r.Text
	}
	for _, remarks := range [][]Remark{f.changes, f.manual} {
		slices.SortStableFunc(remarks, func(a, b Remark) int { return a.Line - b.Line })
	}
	return Result{Text: f.Text, Changes: f.changes, Manual: f.manual, Notes: f.notes}, nil
}

// file is a file while it is changed: one setting after the other is written into its text, which is then read again.
type file struct {
	// Its text is the one so far. It ends in a line end.
	Request
	lines  []string // Without their ends.
	starts []int    // The bytes at which lines begin, and the end of the text.
	// numbers are those of the lines in the original, counted from 1. A new line has that of the one above it.
	numbers []int
	// launches are what the reader of texts sees in the original.
	launches []facts.Launch
	// want is the setting that is being written, and where the container that gets it; empty for the file.
	want    *Want
	where   string
	edits   []edit
	changes []Remark
	manual  []Remark
	notes   []Remark
}

// edit replaces bytes of the text.
type edit struct {
	from, to int
	by       string
}

// newFile splits a text into lines.
func newFile(r Request) *file {
	f := &file{Request: r}
	if !strings.HasSuffix(f.Text, "\n") {
		f.Text += "\n"
	}
	f.split()
	for i := range f.starts {
		f.numbers = append(f.numbers, i+1)
	}
	if f.Vendor != "" && !slices.ContainsFunc(f.Wants, func(w Want) bool { return w.Kind == plan.GPUs }) { // Of AMD's GPUs, plans have the device nodes.
		gpus := plan.Setting{Kind: plan.GPUs, Value: "all", Reason: "The device plugin gives the container its GPUs.", For: []string{"kubernetes"}}
		f.Wants = append([]Want{{Setting: gpus}}, f.Wants...)
	}
	return f
}

func (f *file) split() {
	f.lines, f.starts = nil, nil
	at := 0
	for l := range strings.Lines(f.Text) {
		f.starts = append(f.starts, at)
		f.lines = append(f.lines, strings.TrimSuffix(l, "\n"))
		at += len(l)
	}
	f.starts = append(f.starts, at)
}

// lineOf is the line, counted from 0, that a byte is on.
func (f *file) lineOf(at int) int {
	i, found := slices.BinarySearch(f.starts, at)
	if !found {
		i--
	}
	return max(i, 0)
}

// read has the reader of texts look for launches.
func (f *file) read(ctx context.Context) error {
	r := texts.NewReading()
	r.Sink.Listen(func(e parse.Event) {
		if e.Kind == parse.Launched && len(f.launches) < maxLines {
			l := *e.Launch
			l.Line = e.Line.Number
			f.launches = append(f.launches, l)
		}
	})
	return r.Read(ctx, f.Name, strings.NewReader(f.Text))
}

// isFull reports whether there are more places to change than may be.
func (f *file) isFull() bool { return len(f.changes)+len(f.manual) > maxChanges }

// replace has bytes replaced, with the next apply.
func (f *file) replace(from, to int, by string) { f.edits = append(f.edits, edit{from, to, by}) }

// insert has lines inserted before one, counted from 0, or at the end.
func (f *file) insert(at int, lines []string) {
	if len(lines) > 0 {
		f.replace(f.starts[at], f.starts[at], strings.Join(lines, "\n")+"\n")
	}
}

// apply makes the edits, notes the setting as written at a line, counted from 0, and has the text checked. If it is not right, or edits meet,
// everything is as before, and the setting is left to a person.
func (f *file) apply(at int, isRight func() bool) bool {
	edits, text, numbers := f.edits, f.Text, f.numbers
	f.edits = nil
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	ok := true
	for i, e := range slices.Backward(edits) {
		ok = ok && (i+1 == len(edits) || e.to <= edits[i+1].from)
		if !ok {
			break
		}
		first, last, more := f.lineOf(e.from), f.lineOf(e.to), strings.Count(e.by, "\n")
		above := slices.Repeat([]int{numbers[max(first-1, 0)]}, more)
		f.Text = f.Text[:e.from] + e.by + f.Text[e.to:]
		f.numbers = slices.Concat(f.numbers[:first], above, f.numbers[last:])
	}
	f.split()
	if ok && isRight() {
		f.changes = appendNew(f.changes, Remark{Line: numbers[max(min(at, len(numbers)-2), 0)], Where: f.where, What: words(f.want), Note: emit.Why(f.want.Setting)})
		return true
	}
	f.Text, f.numbers = text, numbers
	f.split()
	f.byHand(at, "its values are laid out in a way in which they cannot be changed one by one")
	return false
}

// comment is the reason of the setting as comments above a line, counted from 0; nil where they are among those directly above it, or are the
// nearest ones above it.
func (f *file) comment(at int, margin string) (all []string) {
	for _, l := range emit.Comments(cmp.Or(f.want.Comment, f.want.Reason), "", max(width-len(margin), 42)) {
		all = append(all, margin+l)
	}
	isAbove := true // Nothing but comments is between.
	for i := at - 1; i >= 0 && len(all) > 0; i-- {
		isComment := strings.HasPrefix(f.lines[i], margin+"#")
		switch isAbove = isAbove && isComment; {
		case isComment && f.lines[i] == all[len(all)-1]:
			return nil
		case !isAbove && isComment, strings.TrimSpace(f.lines[i]) == "", len(marginOf(f.lines[i])) < len(margin):
			return all
		}
	}
	return all
}

// marginOf is the blanks with which a line begins.
func marginOf(text string) string { return text[:len(text)-len(strings.TrimLeft(text, " \t"))] }

// byHand notes that the setting cannot be written safely. The line is counted from 0.
func (f *file) byHand(at int, note string) {
	f.manual = appendNew(f.manual, Remark{Line: f.numbers[max(min(at, len(f.numbers)-2), 0)], Where: f.where, What: words(f.want), Note: note})
}

// note notes what the file cannot say.
func (f *file) note(what, note string) {
	f.notes = appendNew(f.notes, Remark{Where: f.where, What: what, Note: note})
}

func appendNew(all []Remark, r Remark) []Remark {
	if slices.Contains(all, r) {
		return all
	}
	return append(all, r)
}

// words is a setting as people write it.
func words(w *Want) string {
	if w.Kind == plan.Unset {
		return "remove " + w.Name
	}
	return emit.Words(w.Setting)
}

// within reports whether a want is about the lines from one to another, counted from 1.
func (w *Want) within(from, to int) bool {
	return len(w.Lines) == 0 || slices.ContainsFunc(w.Lines, func(n int) bool { return from <= n && n <= to })
}
