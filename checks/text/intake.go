// Package text reads the texts that users give, such as logs, outputs of commands and descriptions of jobs, and builds
// from them the same facts that a live machine gives. It recognises each text by its content, several kinds in one file
// included, and records which line a fact comes from. It judges nothing.
package text

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/host/rootfs"
	"github.com/gpudoctor/gpudoctor/checks/text/launch"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// Options says how texts are read.
type Options struct {
	// Stdin is what "-" stands for.
	Stdin io.Reader
	// Gather is how the facts of a recording among the texts are gathered.
	Gather gather.Options
	// Progress, if set, is told the name of each text as it begins.
	Progress func(name string)
	// MaxBytes bounds what is read in all, after unpacking; 0 is DefaultMaxBytes.
	MaxBytes int64
	// Silence bounds how long one answer of a file may take; 0 is
	// deadline.Silence. It does not bound pipes: their writer may be slow.
	Silence time.Duration
	// Excluded, if set, reports whether a file or a folder below a folder is left out.
	Excluded func(name string) bool
	// Files is where the files are; nil is this machine.
	Files files.System
}

// The errors of Read where nothing in the texts was recognized. The facts still list the texts.
var (
	// ErrNothing is any of them.
	ErrNothing = errors.New("nothing in it was recognized")
	// ErrDeadline and ErrMaxBytes are those of texts that were not read since a bound was reached.
	ErrDeadline = errors.New("the deadline was reached (--deadline)")
	ErrMaxBytes = errors.New("the limit was reached (--max-bytes)")
)

// intake opens files, folders and archives, and gives their texts to a reading.
type intake struct {
	*parse.Reading
	options Options
	// base are the facts of a recording among the texts, and baseName is that recording.
	base     *facts.Facts
	baseName string
	// alone is the archive whose members are called by their own names, since it is all that was given.
	alone string
	// explicit is set while a file is read that was named itself, not found in a folder or an archive.
	explicit bool
	// machines are those of which the files are among what is read.
	machines machines
	// left is what may still be read, of Options.MaxBytes.
	left int64
	// stopped is why nothing more is read, once a bound was reached.
	stopped error
	// names are those of the texts so far.
	names map[string]int
	// beyond are texts that are counted only: there are too many to list.
	beyond listing
}

// Result is what was read.
type Result struct {
	// Facts are what the texts tell.
	Facts *facts.Facts
	// Recording names the recording of a machine among the texts; empty if there was none.
	Recording string
}

// Read examines files, folders, archives and standard input ("-"), and returns the facts that their texts tell. A
// recording of gpudoctor's own among them (a snapshot, or a facts file) describes the machine.
//
// What cannot be read is listed with the reason. When the deadline of the context or MaxBytes is reached, the facts are
// those of what was read until then. A context that is cancelled gives its cause.
func Read(ctx context.Context, paths []string, options Options) (Result, error) {
	if options.Progress == nil {
		options.Progress = func(string) {}
	}
	options.MaxBytes = cmp.Or(options.MaxBytes, DefaultMaxBytes)
	options.Silence = cmp.Or(options.Silence, deadline.Silence)
	options.Files = cmp.Or[files.System](options.Files, files.OS{})
	t := &intake{Reading: NewReading(), options: options, left: options.MaxBytes, names: make(map[string]int)}
	t.beyond = listing{intake: t}
	if len(paths) == 1 {
		t.alone = paths[0]
	}
	for _, path := range paths {
		if err := t.path(ctx, path); err != nil {
			return Result{}, err
		}
	}
	whole, err := t.machine(ctx)
	if err != nil {
		return Result{}, err
	}
	t.beyond.close()
	f := t.Finish()
	for i := range f.Texts {
		if text := &f.Texts[i]; len(text.Kinds) == 0 && text.Problem == "" && text.Bytes == 0 {
			if text.Problem = "empty"; launch.IsManifest(text.Name, "") {
				text.Unread = facts.UnreadBroken
			}
		}
	}
	switch {
	case whole != nil:
		return Result{Complete(whole, f), t.baseName}, nil
	case len(f.Texts) == 0 && t.base == nil && t.machines.passed:
		return Result{Facts: f}, fmt.Errorf("%s: %w", strings.Join(paths, ", "), ErrNothing)
	case len(f.Texts) == 0 && t.base == nil:
		return Result{}, fmt.Errorf("%s: no files in it", strings.Join(paths, ", "))
	case t.base != nil:
		return Result{Join(t.base, f), t.baseName}, nil
	case !slices.ContainsFunc(f.Texts, func(t facts.Text) bool { return len(t.Kinds) > 0 }):
		return Result{Facts: f}, fmt.Errorf("%s: %w", strings.Join(paths, ", "), t.nothing(f.Texts))
	}
	return Result{Facts: f}, nil
}

// nothing says why nothing was recognized, by the only text or the first that was not read to its end.
func (t *intake) nothing(texts []facts.Text) error {
	first := slices.IndexFunc(texts, func(t facts.Text) bool { return t.Unread != "" })
	if len(texts) == 1 {
		first = 0
	}
	if first < 0 || texts[first].Problem == "" {
		return ErrNothing
	}
	switch text := texts[first]; {
	case text.Unread == facts.UnreadSize || text.Unread == facts.UnreadTime:
		return fmt.Errorf("%w: %w", ErrNothing, cmp.Or(t.stopped, ErrDeadline))
	case len(texts) > 1:
		return fmt.Errorf("%w; %s: %s", ErrNothing, text.Name, text.Problem)
	case text.Unread == facts.UnreadError && text.Bytes == 0:
		return fmt.Errorf("%w (not read: %s)", ErrNothing, text.Problem)
	default:
		return fmt.Errorf("%w (%s)", ErrNothing, text.Problem)
	}
}

// ended reports whether nothing more is read: a bound was reached. A context that was cancelled gives its cause.
func (t *intake) ended(ctx context.Context) (bool, error) {
	if ctx.Err() != nil {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return true, context.Cause(ctx)
		}
		t.stopped = cmp.Or(t.stopped, ErrDeadline)
	}
	return t.stopped != nil, nil
}

// path reads a file, a folder or standard input.
func (t *intake) path(ctx context.Context, path string) error {
	if ended, err := t.ended(ctx); err != nil {
		return err
	} else if ended {
		t.beyond.pass(path, t.problemOf(t.stopped))
		return nil
	}
	if path == "-" {
		if t.options.Stdin == nil {
			return errors.New("standard input is not open")
		}
		r := files.NewReader(ctx, t.options.Stdin, 0, nil)
		defer r.Close()
		return t.stream(ctx, text{name: "standard input", from: r, list: &t.beyond})
	}
	info, err := files.Within(ctx, t.options.Silence, func() (fs.FileInfo, error) { return t.options.Files.Stat(path) })
	switch {
	case errors.Is(err, fs.ErrNotExist) && t.alone != "":
		return fmt.Errorf("%s: no such file", path)
	case err != nil:
		return t.unreadable(ctx, &t.beyond, path, err)
	case !info.IsDir():
		t.explicit = true
		defer func() { t.explicit = false }()
		return t.file(ctx, path, path, info.Mode(), &t.beyond)
	}
	return t.folder(ctx, path)
}

// unreadable lists a file that could not be read, and lets the reading go on unless it was cancelled.
func (t *intake) unreadable(ctx context.Context, list *listing, name string, err error) error {
	if _, cancelled := t.ended(ctx); cancelled != nil {
		return cancelled
	}
	list.pass(name, t.problemOf(err))
	return nil
}

// opened is an open file.
type opened struct {
	files.File
	info fs.FileInfo
}

// file reads a file.
func (t *intake) file(ctx context.Context, path, shown string, mode fs.FileMode, list *listing) error {
	silence := t.options.Silence
	if !mode.IsRegular() {
		silence = 0
	}
	f, err := files.Within(ctx, silence, func() (opened, error) {
		f, err := t.options.Files.Open(path)
		if err != nil {
			return opened{}, err
		}
		info, err := f.Stat()
		if err != nil {
			_ = f.Close() // It was not even read.
			return opened{}, err
		}
		return opened{f, info}, nil
	})
	if err != nil {
		return t.unreadable(ctx, list, shown, err)
	}
	// Files of /proc and /sys have no size, and reading /proc/kmsg takes away what was read.
	if f.info.Mode().IsRegular() && f.info.Size() > 0 {
		at := files.NewReaderAt(ctx, f, silence)
		head := make([]byte, 4)
		if n, _ := at.ReadAt(head, 0); n == len(head) && isZip(head) {
			defer f.Close() //nolint:errcheck // It was only read.
			return t.zip(ctx, text{name: shown, list: list}, at, f.info.Size())
		}
	}
	r := files.NewReader(ctx, f, silence, f.Close)
	defer r.Close()
	return t.stream(ctx, text{name: shown, from: r, list: list})
}

// found is what a folder holds.
type found struct {
	path, shown string
	mode        fs.FileMode
	// at is where it is on the machine that a copy of /sys or /proc shows; empty for others.
	at string
	// err is why it cannot be read, and problem why it is not read.
	err     error
	problem problem
}

// folder reads the files of a folder, which are listed first, so that those are known that a bound leaves unread. Their
// names begin with the folder's where it is not the only one.
func (t *intake) folder(ctx context.Context, path string) error {
	shown := "."
	if t.alone == "" {
		shown = path
	}
	all := t.walk(ctx, path, shown, nil)
	list := &listing{intake: t, of: path}
	defer list.close()
	regular := map[string]bool{}
	for _, f := range all {
		regular[f.path] = f.mode.IsRegular() && f.problem.why == ""
	}
	for _, f := range all {
		m := member{
			name: f.shown, shown: f.shown, mode: f.mode, problem: f.problem,
			content: func() (io.ReadCloser, error) { return t.contentOf(ctx, f) },
			text:    func() error { return t.file(ctx, f.path, f.shown, f.mode, list) },
		}
		ended, err := t.ended(ctx)
		switch {
		case err != nil:
		case f.err != nil:
			err = t.unreadable(ctx, list, f.shown, f.err)
		case f.mode&fs.ModeSymlink != 0 && f.at == "" && !ended:
			err = t.link(ctx, f, regular, list)
		case f.problem.unread == facts.UnreadCount:
			list.pass(f.shown, f.problem)
		default:
			err = t.take(ctx, path, m, list)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// link lists a symbolic link, which is not followed: what it points to is not read unless it is a regular file
// of the same folder.
func (t *intake) link(ctx context.Context, f found, regular map[string]bool, list *listing) error {
	target, err := files.Within(ctx, t.options.Silence, func() (string, error) {
		if _, err := t.options.Files.Stat(f.path); err != nil {
			return "", err
		}
		return t.options.Files.ReadLink(f.path)
	})
	if err != nil {
		return t.unreadable(ctx, list, f.shown, err)
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(f.path), target)
	}
	if regular[target] {
		f.problem.unread = ""
	}
	list.pass(f.shown, f.problem)
	return nil
}

// walk lists a folder and those in it. Links are not followed, and folders whose
// names begin with a dot (.git) are left out.
func (t *intake) walk(ctx context.Context, path, shown string, all []found) []found {
	entries, err := files.Within(ctx, t.options.Silence, func() ([]fs.DirEntry, error) { return t.options.Files.ReadDir(path) })
	if err != nil { // With it come the names before it.
		if shown == "." {
			shown = path
		}
		all = append(all, found{shown: shown, err: err})
	}
	for _, d := range entries {
		f := found{path: filepath.Join(path, d.Name()), shown: filepath.Join(shown, d.Name()), mode: d.Type()}
		if t.options.Excluded != nil && t.options.Excluded(f.shown) {
			continue
		}
		if _, at, ok := rootfs.Split(f.shown); ok && !rootfs.IsText(at) {
			if !d.IsDir() && !rootfs.Keeps(at) || d.IsDir() && rootfs.Prunes(at) {
				continue
			}
			f.at = at
		}
		switch {
		case len(all) >= maxFiles:
			f.problem = problem{fmt.Sprintf("more than %d files: this one and those after it were not read", maxFiles), facts.UnreadCount}
			return append(all, f)
		case f.at == "" && d.IsDir() && strings.HasPrefix(d.Name(), "."):
			continue
		case f.at == "" && !d.IsDir() && !d.Type().IsRegular():
			f.problem = irregular
		}
		if f.at != "" || !d.IsDir() {
			all = append(all, f)
		}
		if d.IsDir() {
			if all = t.walk(ctx, f.path, f.shown, all); len(all) > maxFiles {
				return all
			}
		}
	}
	return all
}

// text is a text, or what one may be packed in.
type text struct {
	name string
	from io.Reader
	// depth counts the archives around it.
	depth int
	// counted is set where what is read of it is counted already: it lies in an archive that is not compressed.
	counted bool
	// list is that of the folder or archive in which it lies.
	list *listing
}

// stream reads a text, or what is packed in it. What it is follows from its first bytes.
func (t *intake) stream(ctx context.Context, in text) error {
	if t.full() {
		in.list.pass(in.name, tooMany)
		return nil
	}
	r := bufio.NewReaderSize(in.from, peekBytes)
	head, err := r.Peek(headBytes)
	if len(head) == 0 && err != nil && !errors.Is(err, io.EOF) {
		return t.unreadable(ctx, in.list, in.name, err)
	}
	if packed, err := t.unpack(ctx, in, r, head); packed {
		return err
	}
	if !in.counted {
		r, in.counted = bufio.NewReaderSize(&counter{from: r, intake: t}, peekBytes), true
	}
	if isTar(head) {
		return t.tar(ctx, in, r)
	}
	r = unwrap(r)
	// An error comes again when the text is read.
	head, _ = r.Peek(headBytes)
	switch {
	case host.IsRecording(head):
		return t.recording(ctx, in, r)
	case isArchiveText(head):
		return t.txtar(ctx, in, r)
	}
	if isBinary(head) {
		p := problem{why: "binary data"}
		if launch.IsManifest(in.name, string(head)) {
			p.unread = facts.UnreadBroken
		}
		in.list.pass(in.name, p)
		return nil
	}
	name := t.unique(in.name)
	t.options.Progress(name)
	if err = t.Read(ctx, name, r); err != nil {
		t.brokenOff(err)
	}
	_, cancelled := t.ended(ctx)
	return cancelled
}

// recording reads the machine that a recording describes. There can be one.
func (t *intake) recording(ctx context.Context, in text, r io.Reader) error {
	named := t.explicit && in.depth == 0
	if t.base != nil {
		why := "a second recording, in addition to " + t.baseName + ": examine it separately"
		if named {
			return fmt.Errorf("%s: %s", in.name, why)
		}
		in.list.pass(in.name, problem{why, facts.UnreadForm})
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(r, host.MaxSnapshot+1))
	if err != nil {
		return t.unreadable(ctx, in.list, in.name, err)
	}
	h, f, err := host.OpenRecording(in.name, bytes.NewReader(raw))
	switch {
	case err != nil && named:
		return err
	case err != nil:
		return t.unreadable(ctx, in.list, in.name, err)
	}
	if f == nil {
		f, _ = checks.Gather(ctx, h, t.options.Gather)
	}
	t.base, t.baseName = f, in.name
	return nil
}

// brokenOff notes why the text that was read last was not read to its end.
func (t *intake) brokenOff(err error) {
	p, told := t.problemOf(err), t.Sink.TextUnderWay()
	if told.Problem, told.Unread = p.why, p.unread; told.Bytes > 0 {
		told.Problem = "not read beyond its first " + parse.Size(told.Bytes) + ": " + p.why
	}
}
