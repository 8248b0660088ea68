// Package patch changes a file that describes a job so that it has the settings of a plan.
// It edits the text at the places that parsers tell: what is not removed or changed for a reason stays byte for byte, with its
// comments, its order and its line endings. What cannot be changed safely is reported and left.
package patch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	texts "github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/cmd/internal/emit"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// The bounds of a file, those of the reader of manifests.
const (
	MaxBytes = 1 << 20
	maxLines = 20000
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

	edits []udiff.Edit
}

// The errors of files that cannot be changed.
var (
	ErrBinary = errors.New("it is not a text file")
	ErrLarge  = fmt.Errorf("it has more than %d bytes or %d lines", MaxBytes, maxLines)
	ErrQuote  = errors.New("a quote in it does not end, or is not understood")
	ErrKind   = errors.New("no description of a job that can be changed was recognized")
)

// Error is a fault of a file that must be removed before it can be changed.
type Error struct {
	Reason string
	// Hints say how.
	Hints []string
}

func (e *Error) Error() string { return e.Reason }

var errLineEnds = &Error{"it has a byte order mark, or lines that end with a carriage return", []string{"dos2unix removes them"}}

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
	propose, err := f.form()
	if err != nil {
		return Result{}, err
	}
	if err := propose(f); err != nil {
		return Result{}, err
	}
	return f.result()
}

// file is a file while it is changed. All edits are made at once, so that lines and bytes are those of the original.
type file struct {
	Request
	lines  []string // Without their ends.
	starts []int    // The bytes at which lines begin, and the end of the text.
	// launches are what the reader of texts sees in it.
	launches []facts.Launch
	// want is the setting that is being written, and where the container that gets it; empty for the file.
	want  *Want
	where string
	// bare are the characters that comments must not contain, and reasons stand above lines, counted from 0.
	bare    string
	reasons map[int][]string
	edits   []udiff.Edit
	changes []Remark
	manual  []Remark
	notes   []Remark
}

// newFile splits a text into lines.
func newFile(r Request) *file {
	f := &file{Request: r, reasons: map[int][]string{}}
	at := 0
	for l := range strings.Lines(f.Text) {
		f.starts = append(f.starts, at)
		f.lines = append(f.lines, strings.TrimSuffix(l, "\n"))
		at += len(l)
	}
	f.starts = append(f.starts, at)
	if f.Vendor != "" && !slices.ContainsFunc(f.Wants, func(w Want) bool { return w.Kind == plan.GPUs }) { // Of AMD's GPUs, plans have the device nodes.
		gpus := plan.Setting{Kind: plan.GPUs, Value: "all", Reason: "The device plugin gives the container its GPUs.", For: []string{"kubernetes"}}
		f.Wants = append([]Want{{Setting: gpus}}, f.Wants...)
	}
	return f
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

// write writes the settings in turn, of several for the same thing the first.
func (f *file) write(where string, setting func(*Want)) {
	f.where = where
	made := map[string]bool{}
	for i := range f.Wants {
		f.want = &f.Wants[i]
		thing := string(f.want.Kind) + " " + f.want.Name
		if made[thing] {
			continue
		}
		before := len(f.changes)
		setting(f.want)
		made[thing] = len(f.changes) > before && f.want.Kind != plan.Unset
	}
}

// replace replaces bytes.
func (f *file) replace(from, to int, by string) {
	f.edits = append(f.edits, udiff.Edit{Start: from, End: to, New: by})
}

// insert inserts lines before one, counted from 0, or at the end.
func (f *file) insert(at int, lines []string) {
	if len(lines) > 0 {
		f.replace(f.starts[at], f.starts[at], strings.Join(lines, "\n")+"\n")
	}
}

// changed notes that the setting was written at a line, counted from 0.
func (f *file) changed(at int) {
	f.changes = appendNew(f.changes, Remark{Line: max(min(at+1, len(f.lines)), 1), Where: f.where, What: words(f.want), Note: emit.Why(f.want.Setting)})
}

// reason is a text as comments.
func (f *file) reason(margin, text string) (all []string) {
	if text == "" {
		return nil
	}
	for _, l := range emit.Comments(text, f.bare, max(width-len(margin), 42)) {
		all = append(all, margin+l)
	}
	return all
}

// explain has the reason of the setting written above a line, counted from 0, unless it stands there.
func (f *file) explain(at int) { f.reasons[at] = appendNew(f.reasons[at], f.want.comment()) }

// writeReasons writes the reasons above their lines, behind what is added there.
func (f *file) writeReasons() {
	for line, all := range f.reasons {
		for _, why := range all {
			f.insert(line, f.reason(marginOf(f.lines[line]), why))
		}
	}
}

// removal is the edit that removes lines, with the comment directly above that says why they are there. A
// comment that heads a group stays: a blank line is above it, and other lines of the group follow.
func (f *file) removal(at, del int) udiff.Edit {
	plain := func(i int) string {
		if i < 0 || i >= len(f.lines) {
			return ""
		}
		return strings.TrimSpace(f.lines[i])
	}
	isBeside := func(i int) bool { return marginOf(f.lines[i]) == marginOf(f.lines[at]) }
	first, end := at, at+del
	for first > 0 && remark.MatchString(plain(first-1)) && isBeside(first-1) {
		first--
	}
	follows := plain(end) != "" && !strings.HasPrefix(plain(end), "#") && isBeside(end)
	if plain(first-1) == "" && follows {
		first = at
	}
	return udiff.Edit{Start: f.starts[first], End: f.starts[end]}
}

// remark is a comment for people: no first line of a script, directive, or option of a batch system.
var remark = lazy.New(`^#(?:$|[^!A-Z]|[A-Z][^A-Z])`)

// marginOf is the blanks with which a line begins.
func marginOf(text string) string { return text[:len(text)-len(strings.TrimLeft(text, " \t"))] }

// byHand notes that the setting cannot be written safely. The line is counted from 0.
func (f *file) byHand(at int, note string) {
	f.manual = appendNew(f.manual, Remark{Line: max(at+1, 1), Where: f.where, What: words(f.want), Note: note})
}

// note notes what the file cannot say.
func (f *file) note(what, note string) {
	f.notes = appendNew(f.notes, Remark{Where: f.where, What: what, Note: note})
}

func appendNew[T comparable](all []T, r T) []T {
	if slices.Contains(all, r) || len(all) >= maxLines {
		return all
	}
	return append(all, r)
}

// result makes the edits. A file whose last line has no end gets one.
func (f *file) result() (Result, error) {
	isLastGone := slices.ContainsFunc(f.edits, func(e udiff.Edit) bool {
		return e.End == len(f.Text) && e.New == "" && slices.Contains(f.starts, e.Start)
	})
	if len(f.edits) > 0 && !strings.HasSuffix(f.Text, "\n") && !isLastGone {
		f.edits = append([]udiff.Edit{{Start: len(f.Text), End: len(f.Text), New: "\n"}}, f.edits...)
	}
	udiff.SortEdits(f.edits)
	text, err := udiff.Apply(f.Text, f.edits)
	if err != nil {
		return Result{}, errors.New("its settings stand too close together to be changed by edits")
	}
	slices.SortStableFunc(f.changes, func(a, b Remark) int { return a.Line - b.Line })
	return Result{Text: text, Changes: f.changes, Manual: f.manual, Notes: f.notes, edits: f.edits}, nil
}

// words is a setting as people write it.
func words(w *Want) string {
	if w.Kind == plan.Unset {
		return "remove " + w.Name
	}
	return emit.Words(w.Setting)
}

// comment is what is written beside a setting.
func (w *Want) comment() string { return cmp.Or(w.Comment, w.Reason) }

// removes reports whether a variable with a value is to be removed.
func (w *Want) removes(name, value string) bool {
	return w.Kind == plan.Unset && w.Name == name && (len(w.Values) == 0 || slices.Contains(w.Values, value))
}

// within reports whether a want is about the lines from one to another, counted from 1.
func (w *Want) within(from, to int) bool {
	return len(w.Lines) == 0 || slices.ContainsFunc(w.Lines, func(n int) bool { return from <= n && n <= to })
}

// form is how the file is changed, by what the reader found in it.
func (f *file) form() (propose func(*file) error, err error) {
	kinds := map[string]bool{}
	for i := range f.launches {
		kinds[f.launches[i].Kind] = true
	}
	isScript := len(f.lines) > 0 && strings.HasPrefix(f.lines[0], "#!")
	ending := strings.ToLower(filepath.Ext(f.Name))
	isYAML := ending == ".yaml" || ending == ".yml"
	isBatch := !isYAML && slices.ContainsFunc(f.lines, func(l string) bool { return strings.HasPrefix(l, "#SBATCH") })
	variables, isVariables := ofVariables(f)
	switch {
	case !isScript && (kinds["kubernetes"] || kinds["compose"]):
		if i := slices.IndexFunc(f.lines, func(l string) bool { return strings.Contains(l, "{{") }); i >= 0 {
			return nil, &Error{
				fmt.Sprintf("line %d is a template, which says nothing until it is filled in", i+1),
				[]string{"render it (helm template, kustomize build), and give the result", "gpudoctor advise --for kubernetes writes what to add"},
			}
		}
		return proposeYAML, nil
	case !isScript && kinds["dockerfile"]:
		return proposeDockerfile, nil
	case isVariables && (len(kinds) == 0 || len(kinds) == 1 && kinds["shell"]): // A job is more than what a script sets.
		return variables.propose, nil
	case !isScript && !isBatch && !slices.Contains(scriptNames, ending): // A log, a document, or a manifest with a fault.
		return nil, ErrKind
	case slices.ContainsFunc(ofScripts, func(kind string) bool { return kinds[kind] }):
		target := "env"
		if kinds["slurm"] {
			target = "slurm"
		}
		return scriptForm{target: target}.propose, nil
	}
	return nil, ErrKind
}

var (
	// ofScripts are the kinds of launches that scripts start, and scriptNames the ends of their names.
	ofScripts   = []string{"slurm", "docker-run", "apptainer", "mpirun", "torchrun", "command", "shell"}
	scriptNames = []string{".sh", ".bash", ".sbatch", ".slurm", ".job"}
)
