// Package patch changes a file that describes a job so that it has the settings of a plan.
// It edits lines: what is not removed or changed for a reason stays byte for byte, with its
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
	// maxRounds bounds how often the file is read again: each time, one setting of each
	// container is written.
	maxRounds = 100
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

// remark is the remark on a change.
func (w *Want) remark(where string) *Remark {
	return &Remark{Where: where, What: words(w), Note: emit.Why(w.Setting)}
}

// Result is the file with its changes.
type Result struct {
	// Text is the text with the changes, the same as before if there are none.
	Text string
	// Changes are those that were made, Manual those that are left to a person.
	Changes, Manual []Remark
	// Notes are what the file cannot say.
	Notes []Remark

	lines  []line
	prefix string
}

// The errors of files that cannot be changed.
var (
	ErrBinary = errors.New("it is not a text file")
	ErrLarge  = fmt.Errorf("it has more than %d bytes or %d lines", MaxBytes, maxLines)
	ErrQuote  = errors.New("a quote in it does not end, or is not understood")
	ErrKind   = errors.New("no description of a job that can be changed was recognized")
)

// TemplateError is a file with templates, which say nothing until they are filled in.
type TemplateError struct{ Line int }

func (e TemplateError) Error() string {
	return fmt.Sprintf("line %d is a template, which says nothing until it is filled in", e.Line)
}

// SyntaxError is a file that does not parse.
type SyntaxError struct{ Detail string }

func (e SyntaxError) Error() string { return "it is not valid YAML: " + e.Detail }

// Make changes a file.
func Make(ctx context.Context, r Request) (Result, error) {
	if err := check(r.Text); err != nil {
		return Result{}, err
	}
	begun, err := newFile(r)
	if err != nil {
		return Result{}, err
	}
	f := begun
	for range maxRounds {
		if ctx.Err() != nil {
			return Result{}, context.Cause(ctx)
		}
		if err := f.read(ctx); err != nil {
			return Result{}, err
		}
		f.manual, f.notes = nil, nil
		if err := f.form.propose(f); err != nil {
			return Result{}, err
		}
		if len(f.splices) == 0 {
			return f.result(r.Text), nil
		}
		f.apply()
	}
	return Result{}, errors.New("its settings cannot be changed by single edits")
}

// check refuses what is no text or too large.
func check(text string) error {
	switch {
	case len(text) > MaxBytes || strings.Count(text, "\n") > maxLines:
		return ErrLarge
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return ErrBinary
	}
	return nil
}

// form is how a kind of file is changed.
type form interface {
	// propose adds the next edits of a file that was read.
	propose(f *file) error
}

// file is a file while it is changed.
type file struct {
	Request
	form   form
	lines  []line
	prefix string // A byte order mark.
	eol    string
	// launches are what the reader of texts sees in it.
	launches []facts.Launch
	splices  []*splice
	changes  []Remark
	manual   []Remark
	notes    []Remark
	// said are the reasons that stand as the last comment in the places that were changed.
	said map[string]string
	// added are the options that were added to commands.
	added map[string]bool
}

// line is a line without its end, and its number in the original; 0 if it was added.
type line struct {
	text, eol string
	origin    int
}

// splice replaces lines: those from at, counted from 0, by ins.
type splice struct {
	at, del int
	ins     []string
	change  *Remark
}

// newFile splits a text into lines and says how it is changed.
func newFile(r Request) (*file, error) {
	f := &file{Request: r, eol: "\n", said: map[string]string{}, added: map[string]bool{}}
	text := r.Text
	if rest, ok := strings.CutPrefix(text, "\ufeff"); ok {
		f.prefix, text = "\ufeff", rest
	}
	crlf := 0
	for l := range strings.Lines(text) {
		content, eol := l, ""
		for _, end := range []string{"\r\n", "\n"} {
			if rest, ok := strings.CutSuffix(l, end); ok {
				content, eol = rest, end
				break
			}
		}
		if eol == "\r\n" {
			crlf++
		}
		f.lines = append(f.lines, line{content, eol, len(f.lines) + 1})
	}
	if crlf*2 > len(f.lines) {
		f.eol = "\r\n"
	}
	if err := f.read(context.Background()); err != nil {
		return nil, err
	}
	var err error
	f.form, err = f.formOf()
	return f, err
}

// text is the text as it is now.
func (f *file) text() string {
	var b strings.Builder
	b.WriteString(f.prefix)
	for _, l := range f.lines {
		b.WriteString(l.text + l.eol)
	}
	return b.String()
}

// body is the text for a parser: without a byte order mark, with plain line ends.
func (f *file) body() string {
	var b strings.Builder
	for _, l := range f.lines {
		b.WriteString(l.text + "\n")
	}
	return b.String()
}

// read has the reader of texts look for launches.
func (f *file) read(ctx context.Context) error {
	r := texts.NewReading()
	f.launches = nil
	r.Sink.Listen(func(e parse.Event) {
		if e.Kind == parse.Launched && len(f.launches) < maxLines {
			l := *e.Launch
			l.Line = e.Line.Number
			f.launches = append(f.launches, l)
		}
	})
	err := r.Read(ctx, f.Name, strings.NewReader(f.body()))
	return err
}

// launchAt is the launch that begins at a line.
func (f *file) launchAt(number int, kind string) *facts.Launch {
	for i := range f.launches {
		if f.launches[i].Line == number && f.launches[i].Kind == kind {
			return &f.launches[i]
		}
	}
	return nil
}

// splice proposes edits that belong together, unless one of the same lines is proposed
// already, which is made first.
func (f *file) splice(all ...*splice) bool {
	for _, s := range all {
		if slices.ContainsFunc(f.splices, s.meets) {
			return false
		}
	}
	f.splices = append(f.splices, all...)
	return true
}

// removal is an edit that removes lines, with the comment directly above that says why they are there. A
// comment that heads a group stays: a blank line is above it, and other lines of the group follow.
func (f *file) removal(at, del int, w *Want, where string) *splice {
	indent := func(i int) int { return len(f.lines[i].text) - len(strings.TrimLeft(f.lines[i].text, " \t")) }
	plain := func(i int) string {
		if i < 0 || i >= len(f.lines) {
			return ""
		}
		return strings.TrimSpace(f.lines[i].text)
	}
	first := at
	for first > 0 && remark.MatchString(plain(first-1)) && indent(first-1) == indent(at) {
		first--
	}
	end := at + del
	follows := end < len(f.lines) && plain(end) != "" && !strings.HasPrefix(plain(end), "#") && indent(end) == indent(at)
	if plain(first-1) == "" && follows {
		first = at
	}
	return &splice{at: first, del: end - first, change: w.remark(where)}
}

// remark is a comment for people: no first line of a script, directive, or option of a batch system.
var remark = lazy.New(`^#(?:$|[^!A-Z]|[A-Z][^A-Z])`)

// meets reports whether two edits are of the same lines. Lines may be added before one that
// is changed.
func (s *splice) meets(o *splice) bool {
	switch {
	case s.del == 0 && o.del == 0:
		return s.at == o.at
	case s.del == 0:
		return o.at < s.at && s.at < o.at+o.del
	case o.del == 0:
		return s.at < o.at && o.at < s.at+s.del
	}
	return s.at < o.at+o.del && o.at < s.at+s.del
}

// apply makes the proposed edits, from the end of the file to its beginning.
func (f *file) apply() {
	slices.SortStableFunc(f.splices, func(a, b *splice) int { return cmp.Or(b.at-a.at, b.del-a.del) })
	for _, s := range f.splices {
		if s.change != nil {
			s.change.Line = f.origin(s.at)
			if s.del == 0 {
				s.change.Line = f.origin(s.at - 1)
			}
			f.changes = append(f.changes, *s.change)
		}
		old := f.lines[s.at:min(s.at+s.del, len(f.lines))]
		var ins []line
		for i, t := range s.ins {
			l := line{text: t, eol: f.eol}
			if from := i - (len(s.ins) - len(old)); len(s.ins) >= len(old) && from >= 0 { // A changed line keeps its end.
				l.eol, l.origin = old[from].eol, old[from].origin
			}
			ins = append(ins, l)
		}
		if last := len(f.lines) - 1; s.at > last && last >= 0 && f.lines[last].eol == "" && len(ins) > 0 {
			f.lines[last].eol, ins[len(ins)-1].eol = f.eol, "" // A file without a final line end stays so.
		}
		ended := len(f.lines) > 0 && f.lines[len(f.lines)-1].eol != ""
		f.lines = append(f.lines[:s.at:s.at], append(ins, f.lines[min(s.at+s.del, len(f.lines)):]...)...)
		if last := len(f.lines) - 1; last >= 0 && !ended && f.lines[last].eol != "" {
			f.lines[last].eol = ""
		}
	}
	f.splices = nil
}

// origin is the number that a line has in the original, or that of the line before it.
func (f *file) origin(at int) int {
	for i := min(at, len(f.lines)-1); i >= 0; i-- {
		if f.lines[i].origin > 0 {
			return f.lines[i].origin
		}
	}
	return 1
}

// byHand notes what cannot be changed safely. The line is counted from 0.
func (f *file) byHand(w *Want, where string, at int, note string) {
	m := Remark{Line: f.origin(at), Where: where, What: words(w), Note: note}
	if !slices.Contains(f.manual, m) && len(f.manual) < maxLines {
		f.manual = append(f.manual, m)
	}
}

// note notes what the file cannot say.
func (f *file) note(where, what, note string) {
	n := Remark{Where: where, What: what, Note: note}
	if !slices.Contains(f.notes, n) && len(f.notes) < maxLines {
		f.notes = append(f.notes, n)
	}
}

// result is the outcome when nothing is left to do.
func (f *file) result(before string) Result {
	slices.SortStableFunc(f.changes, func(a, b Remark) int { return a.Line - b.Line })
	f.changes = slices.Compact(f.changes)
	r := Result{Text: f.text(), Changes: f.changes, Manual: f.manual, Notes: f.notes, lines: f.lines, prefix: f.prefix}
	if r.Text == before {
		r.Changes = nil
	}
	return r
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

// within reports whether a want is about the lines from one to another, counted from 1. What it names are
// lines of the original.
func (f *file) within(w *Want, from, to int) bool {
	return len(w.Lines) == 0 || slices.ContainsFunc(f.lines[max(from-1, 0):min(to, len(f.lines))], func(l line) bool { return slices.Contains(w.Lines, l.origin) })
}

// formOf says how the file is changed, by what the reader found in it.
func (f *file) formOf() (form, error) {
	kinds := map[string]int{}
	jobs := 0 // Not what a script sets.
	for _, l := range f.launches {
		if kinds[l.Kind] == 0 {
			kinds[l.Kind] = l.Line
		}
		if l.Kind != "shell" {
			jobs++
		}
	}
	isScript := len(f.lines) > 0 && strings.HasPrefix(f.lines[0].text, "#!")
	switch {
	case !isScript && (kinds["kubernetes"] > 0 || kinds["compose"] > 0):
		return yamlForm{}, f.noTemplate()
	case !isScript && kinds["dockerfile"] > 0:
		return dockerForm{}, nil
	case jobs == 0 && isEnvFile(f):
		return newEnvForm(f), nil
	}
	ending := strings.ToLower(filepath.Ext(f.Name))
	batch := slices.ContainsFunc(f.lines, func(l line) bool { return strings.HasPrefix(l.text, "#SBATCH") }) && ending != ".yaml" && ending != ".yml"
	if !isScript && !batch && !slices.Contains(scriptNames, ending) {
		return nil, ErrKind // A log, a document, or a manifest with a fault.
	}
	for _, kind := range []string{"slurm", "docker-run", "apptainer", "mpirun", "torchrun", "command", "shell"} {
		if kinds[kind] > 0 {
			return scriptForm{batch: kinds["slurm"] > 0}, nil
		}
	}
	return nil, ErrKind
}

// scriptNames are the ends of the names of shell scripts.
var scriptNames = []string{".sh", ".bash", ".sbatch", ".slurm", ".job"}

// noTemplate refuses a manifest that is a template.
func (f *file) noTemplate() error {
	for i, l := range f.lines {
		if strings.Contains(l.text, "{{") {
			return TemplateError{i + 1}
		}
	}
	return nil
}
