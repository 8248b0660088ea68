// Package message is the catalogue of messages: the forms of lines by which programs
// state what affects the communication of GPUs, and what they mean by themselves.
package message

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"gopkg.in/yaml.v3"
)

// Files are the files of the catalogue.
//
//go:embed *.yaml
var Files embed.FS

// Row is what rows of the catalogue have in common: a form of line.
type Row struct {
	// ID is kebab-case and begins with the program: "nccl-shm-extend-failed".
	ID string `yaml:"id"`
	// Says is what the line states, in one phrase, as a sentence without its
	// full stop: "NCCL could not enlarge its file in /dev/shm".
	Says string `yaml:"says"`
	// Anchors are literals: every such line holds one of them, and few other lines do.
	Anchors []string `yaml:"anchors"`
	// Like is a pattern (RE2) that the line must match somewhere; its named
	// groups are the message's fields. Without it an anchor is enough.
	Like string `yaml:"like,omitempty"`
	// Unlike is a pattern that the line must not match.
	Unlike string `yaml:"unlike,omitempty"`
	// Finding is what the message means by itself; nil if a rule decides.
	Finding *Template `yaml:"finding,omitempty"`
	// Source is where the form is from: a file of the program at a version, or a page.
	Source string `yaml:"source"`
	// Examples are lines that match, of our own making.
	Examples []string `yaml:"examples"`

	// like and unlike are the patterns; nil if the row has none.
	like, unlike *lazy.Regexp
}

// Statement is one row of the catalogue of messages: a form of line by which
// a program states something that affects the communication of GPUs.
type Statement struct {
	Row `yaml:",inline"`
	// Program is who writes it: "nccl", "rccl", "pytorch", "cuda", "hip",
	// "ofi", "libibverbs", "gloo", "vllm", "ray", "docker", "kubelet", ...
	Program string `yaml:"program"`
	// Role is "cause", "category", "consequence", "warning" or "setting"; see facts.Message.
	Role string `yaml:"role"`
	// Area is the area of the library that failed (rules/data/areas.yaml), where the message tells it better than the
	// source file does: a socket that its peer closed, for one, is no fault of the code for sockets.
	Area string `yaml:"area,omitempty"`
	// PeerGone is true if the message says that another process is gone; its field peer_rank is that one's rank.
	PeerGone bool `yaml:"peer_gone,omitempty"`
	// Waits is true if the message says that a rank waits for others.
	Waits bool `yaml:"waits,omitempty"`
	// Passes is how many steps of work behind the message show that what it says has passed; 0 where it does not pass.
	Passes int `yaml:"passes,omitempty"`
	// Step is true if the message is itself a step of work: a server answers, a wait ended.
	Step bool `yaml:"step,omitempty"`
	// Done is true if the message says that a job ended well.
	Done bool `yaml:"done,omitempty"`
}

// KernelForm is one row of the catalogue of kernel messages: a form of line that tells of an event (facts.KernelEvent).
type KernelForm struct {
	Row `yaml:",inline"`
	// Kind is the event's kind.
	Kind string `yaml:"kind"`
	// Twin is shared by forms that come along with each other for the same event: the two are not counted twice.
	Twin string `yaml:"twin,omitempty"`
}

// lastFile holds the rows that tell no more than a line's form: they come after all others.
const lastFile = "forms.yaml"

// kernelFile holds the forms of kernel messages; it is read alone where nothing but a kernel log is.
const kernelFile = "kernel.yaml"

// Statements is the catalogue but for kernel messages, in the order in which a line is
// compared: the first row that matches counts.
var Statements = sync.OnceValue(func() []*Statement { return embedded(readStatements) })

// KernelForms are the forms of kernel messages, in the order in which a line is compared.
var KernelForms = sync.OnceValue(func() []*KernelForm { return embedded(readKernelForms) })

func embedded[T any](read func(fs.FS) ([]T, error)) []T {
	all, err := read(Files)
	if err != nil {
		panic(err) // A test checks that the catalogue is right.
	}
	return all
}

func readStatements(files fs.FS) ([]*Statement, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(strings.Index(a, lastFile), strings.Index(b, lastFile)) })
	names = slices.DeleteFunc(names, func(name string) bool { return name == kernelFile })
	return readRows(files, names, func(t *Statement) *Row { return t.prepare(t.Like) })
}

func readKernelForms(files fs.FS) ([]*KernelForm, error) {
	return readRows(files, []string{kernelFile}, func(k *KernelForm) *Row { return k.prepare(strings.ReplaceAll(k.Like, anyAddress, address)) })
}

// readRows reads the rows of files. prepare makes a row ready, and returns what it has in common with others.
func readRows[T any](files fs.FS, names []string, prepare func(*T) *Row) ([]*T, error) {
	var all []*T
	var common []*Row
	for _, name := range names {
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		d := yaml.NewDecoder(bytes.NewReader(raw))
		d.KnownFields(true)
		var rows []*T
		if err := d.Decode(&rows); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, row := range rows {
			common = append(common, prepare(row))
		}
		all = append(all, rows...)
	}
	return all, shareTemplates(common)
}

// anyAddress is an empty group addr, which stands for a PCI address as logs write it: with
// or without a domain or a function.
const (
	anyAddress = "(?P<addr>)"
	address    = "(?P<addr>(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\\.[0-7])?)"
)

// prepare sets the patterns of a row, of which like is the first, and adds the forms of anchors that hold a colon.
func (r *Row) prepare(like string) *Row {
	if like != "" {
		r.like = lazy.New(normal(like))
	}
	if r.Unlike != "" {
		r.unlike = lazy.New(normal(r.Unlike))
	}
	for _, a := range r.Anchors {
		if either := normal(a + " "); strings.Contains(either, colon) {
			r.Anchors = append(r.Anchors, strings.TrimSuffix(either, " "), strings.TrimSuffix(strings.ReplaceAll(either, colon, blankColon), " "))
		}
	}
	return r
}

// People and programs write a colon with or without a blank before it. A line and a form are compared without.
const (
	colon      = ": "
	blankColon = " : "
)

func normal(text string) string { return strings.ReplaceAll(text, blankColon, colon) }

// blanks are those that a program or a person put where others put one.
var blanks = lazy.New(`(\S) {2,}`)

// Of is the first row of the catalogue that a line is of, and its fields.
func Of(line string) (row *Statement, fields map[string]string, ok bool) {
	for _, row := range Statements() {
		if slices.ContainsFunc(row.Anchors, func(a string) bool { return strings.Contains(line, a) }) {
			if fields, ok = row.Match(line); ok {
				return row, fields, true
			}
		}
	}
	return nil, nil, false
}

// OfProcess reports whether a row only says that a process ended, or how.
func OfProcess(id string) bool {
	return strings.HasPrefix(id, "process-") || id == "torch-first-failure" || id == "cuda-assert"
}

// mortal are the programs whose complaints end a process, unless it says how it goes on.
var mortal = map[string]bool{"linux": true, "python": true, "pytorch": true, "cuda": true, "hip": true, "mpi": true, "socket": true}

// copes are words by which a program says of an error that it goes on.
var copes = lazy.New(`(?i)\b(?:fall(?:s|ing)? back|(?:go(?:es|ing)|carry(?:ing)?) on|continu(?:es|ing)|proceed(?:s|ing)|skipp(?:ed|ing)|taking the next|taking (?:\w+ ){1,3}instead|tak(?:es|ing) its place|recovered|(?:is|are|was|were|be|been|being) (?:repeated|redone|retried|replayed|requeued|queued again|grown|enlarged|rebuilt|respawned|quarantined|ignored)|dropped|closing the oldest|using the \w+ (?:form|path|one))\b`)

// Copes reports whether a line says of an error that the program goes on.
func Copes(line string) bool { return copes.MatchString(line) }

// Survived reports whether a line with a row's message says that the program goes on behind what else would end it.
func (t *Statement) Survived(line string) bool {
	return triesAgain(line) || Bygone(line) || debug.MatchString(line) && !strings.Contains(line, "(GTL DEBUG: ") || mortal[t.Program] && Copes(line)
}

// Bygone reports whether a person tells of trouble that is over.
func Bygone(line string) bool { return bygone.MatchString(line) }

// bygone is how a person tells of trouble that is over.
var bygone = lazy.New(`(?i)\b(?:used to (?:get|have|see)|(?:I|we) (?:had|got|saw))\b.*\b(?:is|are|all|now|since) (?:gone|fixed|solved|resolved)\s*(?:[.;!)]|$)`)

// debug is a line at a level at which nothing fails, but for the errors of Cray's GTL.
var debug = lazy.New(`^.{0,120}?(?:^|[\s\[|])(?:DEBUG|TRACE)(?:$|[\s\]|:])`)

// triesAgain reports whether a line tells of an attempt before the last one.
func triesAgain(line string) bool {
	m := attempt.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	n, _ := strconv.Atoi(m[1]) // Of at most six digits.
	of, _ := strconv.Atoi(m[2])
	return n < of
}

// attempt is how a program counts attempts.
var attempt = lazy.New(`(?i)\b(?:attempt|try|retry)\W{0,2}(\d{1,6}) ?(?:of|/) ?(\d{1,6})\b`)

// PeerGone reports whether a row states that another process is gone.
func PeerGone(id string) bool { return cmp.Or(StatementOf(id), &Statement{}).PeerGone }

// Waits reports whether a row states that a rank waits for others.
func Waits(id string) bool { return cmp.Or(StatementOf(id), &Statement{}).Waits }

// Ends reports whether a row states that a job ended well.
func Ends(id string) bool { return cmp.Or(StatementOf(id), &Statement{}).Done }

// Passes is how many steps of work behind a row's message show that what it says has passed; 0 where it does not pass.
func Passes(id string) int { return cmp.Or(StatementOf(id), &Statement{}).Passes }

// Says is what a row states, in one phrase.
func Says(id string) string { return cmp.Or(cmp.Or(StatementOf(id), &Statement{}).Says, id) }

var byID = sync.OnceValue(func() map[string]*Statement {
	all := make(map[string]*Statement)
	for _, row := range Statements() {
		all[row.ID] = row
	}
	return all
})

// StatementOf is the row of an id; nil if the catalogue has no such row.
func StatementOf(id string) *Statement { return byID()[id] }

// AsWarning is what a warning of NCCL says, in the form in which NCCL prints it; which file it is from is not known.
func AsWarning(said string) string { return "NCCL WARN " + said }

// Match returns the fields of a line that is of this form.
func (r *Row) Match(line string) (fields map[string]string, ok bool) {
	if fields, ok = r.match(normal(line)); !ok && strings.Contains(line, "  ") {
		return r.match(normal(blanks.ReplaceAllString(line, "$1 ")))
	}
	return fields, ok
}

func (r *Row) match(line string) (fields map[string]string, ok bool) {
	// What a line must not hold is short, and excludes most lines that long forms would be tried on.
	if r.like != nil && !r.like.May(line) || r.unlike != nil && r.unlike.MatchString(line) {
		return nil, false
	}
	if r.like == nil {
		return nil, true
	}
	m := r.like.FindStringSubmatch(line)
	if m == nil {
		return nil, false
	}
	for i, name := range r.like.Get().SubexpNames() {
		if value := strings.TrimSpace(m[i]); name != "" && value != "" {
			facts.Put(&fields, name, value)
		}
	}
	return fields, true
}

// People is the program of rows that match what people write.
const People = "people"

// sentenceEnd is where a sentence ends and another begins.
var sentenceEnd = lazy.New(`[.!?]["')\x60]*\s+(?:["'(\x60]*\p{Lu}|-\s)`)

// Match is as that of a row. What people write is matched sentence by sentence, because what one asks or denies says
// nothing of the others.
func (t *Statement) Match(line string) (fields map[string]string, ok bool) {
	if t.Program != People {
		return t.Row.Match(line)
	}
	for from := 0; t.like == nil || t.like.May(line); {
		to := len(line)
		if m := sentenceEnd.Get().FindStringIndex(line[from:]); m != nil {
			to = from + m[0] + 1
		}
		if fields, ok = t.Row.Match(line[from:to]); ok || to == len(line) {
			return fields, ok
		}
		from = to
	}
	return nil, false
}
