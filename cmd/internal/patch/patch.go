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
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// The bounds of a file, those of the reader of manifests.
const (
	MaxBytes = 1 << 20
	maxLines = 20000
	// maxRounds bounds how often the file is read again: each time, one setting of each
	// container is written.
	maxRounds = 100
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

	lines []line
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

// Make changes a file.
func Make(ctx context.Context, r Request) (Result, error) {
	switch {
	case len(r.Text) > MaxBytes || strings.Count(r.Text, "\n") > maxLines:
		return Result{}, ErrLarge
	case !utf8.ValidString(r.Text) || strings.ContainsRune(r.Text, 0):
		return Result{}, ErrBinary
	}
	f := newFile(r)
	if err := f.read(ctx); err != nil {
		return Result{}, err
	}
	propose, err := f.form()
	for range maxRounds {
		if err != nil {
			return Result{}, err
		}
		f.manual, f.notes = nil, nil
		if err := propose(f); err != nil {
			return Result{}, err
		}
		if len(f.splices) == 0 {
			return f.result(), nil
		}
		f.apply()
		err = f.read(ctx)
	}
	return Result{}, errors.New("its settings cannot be changed by single edits")
}

// file is a file while it is changed.
type file struct {
	Request
	lines  []line
	prefix string // A byte order mark.
	eol    string
	// launches are what the reader of texts sees in it.
	launches []facts.Launch
	// want is the setting that is being written, and where the container that gets it; empty for the file.
	want  *Want
	where string
	// bare are the characters that comments must not contain.
	bare    string
	splices []*splice
	changes []Remark
	manual  []Remark
	notes   []Remark
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

// newFile splits a text into lines.
func newFile(r Request) *file {
	f := &file{Request: r, eol: "\n", said: map[string]string{}, added: map[string]bool{}}
	text, marked := strings.CutPrefix(r.Text, "\ufeff")
	if marked {
		f.prefix = "\ufeff"
	}
	for l := range strings.Lines(text) {
		content, ended := strings.CutSuffix(l, "\n")
		if ended {
			content = strings.TrimSuffix(content, "\r")
		}
		f.lines = append(f.lines, line{content, l[len(content):], len(f.lines) + 1})
	}
	if strings.Count(text, "\r\n")*2 > len(f.lines) {
		f.eol = "\r\n"
	}
	if f.Vendor != "" && !slices.ContainsFunc(f.Wants, func(w Want) bool { return w.Kind == plan.GPUs }) { // Of AMD's GPUs, plans have the device nodes.
		gpus := plan.Setting{Kind: plan.GPUs, Value: "all", Reason: "The device plugin gives the container its GPUs.", For: []string{"kubernetes"}}
		f.Wants = append([]Want{{Setting: gpus}}, f.Wants...)
	}
	return f
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
	return r.Read(ctx, f.Name, strings.NewReader(f.body()))
}

// write writes settings in turn, up to the first that proposes edits: the next one is written when the file was read again.
func (f *file) write(where string, setting func(*Want)) {
	f.where = where
	before := len(f.splices)
	for i := 0; i < len(f.Wants) && len(f.splices) == before; i++ {
		f.want = &f.Wants[i]
		setting(f.want)
	}
}

// propose proposes edits that belong together, with the reason above a line if it is not the last one that stands in the place, and
// is not -1. An edit of lines for which another is proposed already waits until that is made.
func (f *file) propose(place string, above int, margin string, all ...*splice) {
	place = f.where + "\x00" + place
	if above >= 0 && f.said[place] != f.want.comment() {
		all = slices.Insert(all, 1, &splice{at: above, ins: f.reason(margin)}) // Of several at a line, the last one comes to stand first.
	}
	for _, s := range all {
		if slices.ContainsFunc(f.splices, s.meets) {
			return
		}
	}
	all[0].change = &Remark{Where: f.where, What: words(f.want), Note: emit.Why(f.want.Setting)}
	f.splices = append(f.splices, all...)
	f.said[place] = f.want.comment()
}

// reason is why the setting is made, as comments.
func (f *file) reason(margin string) (all []string) {
	text := strings.Map(func(r rune) rune {
		if strings.ContainsRune(f.bare, r) {
			return ' '
		}
		return r
	}, f.want.comment())
	for _, l := range lines.Paragraphs(text, max(width-len(margin)-2, 40)) {
		all = append(all, margin+"# "+lines.Printable(l, false))
	}
	return all
}

// remove proposes to remove lines, with the comment directly above that says why they are there. A
// comment that heads a group stays: a blank line is above it, and other lines of the group follow.
func (f *file) remove(at, del int) {
	plain := func(i int) string {
		if i < 0 || i >= len(f.lines) {
			return ""
		}
		return strings.TrimSpace(f.lines[i].text)
	}
	isBeside := func(i int) bool { return marginOf(f.lines[i].text) == marginOf(f.lines[at].text) }
	first := at
	for first > 0 && remark.MatchString(plain(first-1)) && isBeside(first-1) {
		first--
	}
	end := at + del
	follows := plain(end) != "" && !strings.HasPrefix(plain(end), "#") && isBeside(end)
	if plain(first-1) == "" && follows {
		first = at
	}
	f.propose("", -1, "", &splice{at: first, del: end - first})
}

// remark is a comment for people: no first line of a script, directive, or option of a batch system.
var remark = lazy.New(`^#(?:$|[^!A-Z]|[A-Z][^A-Z])`)

// marginOf is the blanks with which a line begins.
func marginOf(text string) string { return text[:len(text)-len(strings.TrimLeft(text, " \t"))] }

// meets reports whether two edits are of the same lines. Lines may be added before one that
// is changed.
func (s *splice) meets(o *splice) bool {
	switch {
	case s.del == 0 && o.del == 0:
		return s.at == o.at
	case s.del == 0:
		return o.at < s.at && s.at < o.at+o.del
	case o.del == 0:
		return o.meets(s)
	}
	return s.at < o.at+o.del && o.at < s.at+s.del
}

// apply makes the proposed edits, from the end of the file to its beginning. A changed line keeps its end, and a file
// without a final line end stays so.
func (f *file) apply() {
	ended := len(f.lines) == 0 || f.lines[len(f.lines)-1].eol != ""
	slices.SortStableFunc(f.splices, func(a, b *splice) int { return cmp.Or(b.at-a.at, b.del-a.del) })
	for _, s := range f.splices {
		if s.change != nil {
			s.change.Line = f.origin(s.at + min(s.del, 1) - 1)
			f.changes = append(f.changes, *s.change)
		}
		old := f.lines[s.at : s.at+s.del]
		ins := make([]line, len(s.ins))
		for i, t := range s.ins {
			ins[i] = line{text: t, eol: f.eol}
			if i < len(old) && len(s.ins) == len(old) {
				ins[i].eol, ins[i].origin = old[i].eol, old[i].origin
			}
		}
		f.lines = slices.Concat(f.lines[:s.at], ins, f.lines[s.at+s.del:])
	}
	f.splices = nil
	for i := range f.lines {
		switch isLast := i == len(f.lines)-1; {
		case isLast && !ended:
			f.lines[i].eol = ""
		case f.lines[i].eol == "":
			f.lines[i].eol = f.eol
		}
	}
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

// byHand notes that the setting cannot be written safely. The line is counted from 0.
func (f *file) byHand(at int, note string) {
	f.manual = appendNew(f.manual, Remark{Line: f.origin(at), Where: f.where, What: words(f.want), Note: note})
}

// note notes what the file cannot say.
func (f *file) note(what, note string) {
	f.notes = appendNew(f.notes, Remark{Where: f.where, What: what, Note: note})
}

func appendNew(all []Remark, r Remark) []Remark {
	if slices.Contains(all, r) || len(all) >= maxLines {
		return all
	}
	return append(all, r)
}

// result is the outcome when nothing is left to do.
func (f *file) result() Result {
	var b strings.Builder
	if len(f.lines) > 0 {
		f.lines[0].text = f.prefix + f.lines[0].text
	}
	for _, l := range f.lines {
		b.WriteString(l.text + l.eol)
	}
	slices.SortStableFunc(f.changes, func(a, b Remark) int { return a.Line - b.Line })
	r := Result{Text: b.String(), Changes: slices.Compact(f.changes), Manual: f.manual, Notes: f.notes, lines: f.lines}
	if r.Text == f.Text {
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

// form is how the file is changed, by what the reader found in it.
func (f *file) form() (propose func(*file) error, err error) {
	kinds := map[string]bool{}
	for i := range f.launches {
		kinds[f.launches[i].Kind] = true
	}
	isScript := len(f.lines) > 0 && strings.HasPrefix(f.lines[0].text, "#!")
	ending := strings.ToLower(filepath.Ext(f.Name))
	isYAML := ending == ".yaml" || ending == ".yml"
	isBatch := !isYAML && slices.ContainsFunc(f.lines, func(l line) bool { return strings.HasPrefix(l.text, "#SBATCH") })
	variables, isVariables := ofVariables(f)
	switch {
	case !isScript && (kinds["kubernetes"] || kinds["compose"]):
		if i := slices.IndexFunc(f.lines, func(l line) bool { return strings.Contains(l.text, "{{") }); i >= 0 {
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
