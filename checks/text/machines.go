package text

import (
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

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/checks/host/rootfs"
)

// machines are the machines of which copies of /sys or /proc are among what is read, in the
// order in which they were found.
type machines struct {
	all    []*machineTree
	budget rootfs.Budget
	// more is set where there are more than maxMachines, of which nothing is kept.
	more bool
	// passed is set once a file was passed over of which no check reads anything.
	passed bool
}

// Bounds of what is said of machines.
const (
	maxMachines    = 16
	maxMachineName = 200
)

// machineTree is a machine, or what is read of it.
type machineTree struct {
	files *rootfs.Machine
	// of is the folder or archive in which it lies, and root the folder there.
	of, root string
	archived bool
	// full is set once a bound was reached.
	full bool
}

// name is the name of a machine for a person.
func (m *machineTree) name() string {
	name := filepath.Join(m.of, m.root)
	if m.archived && m.root != "" {
		name = strings.TrimSuffix(m.of, ".tar") + ":" + m.root
	}
	return escape.Printable(name, maxMachineName)
}

// ErrSeveral is returned for input that holds several machines: only one can be examined.
var ErrSeveral = errors.New("more than one machine is in it")

// copied tells whether a file is part of a copy of /sys or /proc, and where it is on that machine.
// m is nil if no check reads it.
func (t *intake) copied(of, name string, archived bool) (m *machineTree, at string, is bool) {
	root, at, is := rootfs.Split(name)
	if !is || rootfs.IsText(at) {
		return nil, "", false
	}
	i := slices.IndexFunc(t.machines.all, func(m *machineTree) bool { return m.of == of && m.root == root })
	switch {
	case i >= 0:
		m = t.machines.all[i]
	case !rootfs.Keeps(at):
	case len(t.machines.all) == maxMachines:
		t.machines.more = true
	default:
		m = &machineTree{files: rootfs.New(&t.machines.budget), of: of, root: root, archived: archived}
		t.machines.all = append(t.machines.all, m)
	}
	if !rootfs.Keeps(at) {
		t.machines.passed = true
		return nil, at, true
	}
	return m, at, true
}

// cut notes that an archive ends before its time, and with it the machines in it.
func (t *intake) cut(archive string) {
	for _, m := range t.machines.all {
		if m.of == archive {
			m.files.Cut()
		}
	}
}

// tarEnd counts the zeros at the end of an archive.
type tarEnd struct {
	from  io.Reader
	zeros int
}

func (e *tarEnd) Read(p []byte) (int, error) {
	n, err := e.from.Read(p)
	rest := bytes.TrimRight(p[:n], "\x00")
	if len(rest) > 0 {
		e.zeros = 0
	}
	e.zeros += n - len(rest)
	return n, err
}

// tarEnded notes that an archive lacks the zeros that end it (POSIX.1-1988, ustar): of a tree, more
// may have been cut off.
func (t *intake) tarEnded(in text, end *tarEnd) {
	const block = 512
	if end.zeros < block && slices.ContainsFunc(t.machines.all, func(m *machineTree) bool { return m.of == in.name }) {
		t.cut(in.name)
		in.list.pass(in.name, problem{"it has no end, so a part of it may be missing", facts.UnreadError})
	}
}

// added notes what became of a file of a machine.
func (t *intake) added(m *machineTree, err error, list *listing) {
	switch {
	case errors.Is(err, rootfs.ErrTooLarge) && !m.full:
		m.files.Cut()
		m.full = true
		list.pass(m.name(), problem{"not read to its end: " + err.Error(), facts.UnreadCount})
	case errors.Is(err, ErrMaxBytes):
		m.files.Cut()
	}
}

// member is what a folder or an archive holds.
type member struct {
	// name is where it lies there, and shown how it is called.
	name, shown string
	mode        fs.FileMode
	// problem is why it is not read as a text.
	problem problem
	// depth counts the archives around it, and counted is set where what is read of it is counted already.
	depth   int
	counted bool
	// content is that of a file of a machine, or the target of a link.
	content func() (io.ReadCloser, error)
	// text reads it as a text, or as an archive.
	text func() error
}

// take reads a member of a folder or an archive, or lists it with the reason why it is not read.
func (t *intake) take(ctx context.Context, of string, m member, list *listing) error {
	ended, err := t.ended(ctx)
	tree, at, copied := t.copied(of, m.name, m.depth > 0)
	switch {
	case err != nil:
		return err
	case copied:
		t.keep(tree, at, m, ended, list)
	case m.problem.why != "":
		list.pass(m.shown, m.problem)
	case m.mode.IsDir():
	case ended:
		list.pass(m.shown, t.problemOf(t.stopped))
	case m.depth > maxDepth:
		list.pass(m.shown, tooDeep)
	default:
		return m.text()
	}
	return nil
}

// keep adds a member to the machine of which it is a part.
func (t *intake) keep(m *machineTree, at string, of member, ended bool, list *listing) {
	switch {
	case m == nil || m.full:
		return
	case ended:
		m.files.Cut()
		m.full = true
		list.pass(m.name(), t.problemOf(t.stopped))
		return
	case of.mode.IsDir():
		t.added(m, m.files.AddDir(at), list)
		return
	}
	from, err := of.content()
	if err != nil {
		t.added(m, m.files.AddUnread(at, err), list)
		return
	}
	defer from.Close() //nolint:errcheck // It was only read.
	content := io.Reader(from)
	if !of.counted {
		content = &counter{from: from, intake: t}
	}
	switch {
	case of.mode.IsRegular():
		err = m.files.AddFile(at, content)
	case of.mode&fs.ModeSymlink != 0:
		var target []byte
		if target, err = io.ReadAll(io.LimitReader(content, rootfs.MaxTarget+1)); err == nil {
			err = m.files.AddLink(at, string(target))
		}
	}
	t.added(m, err, list)
}

// contentOf is the content of a file of a folder that is part of a machine, or the target of a link.
func (t *intake) contentOf(ctx context.Context, f found) (io.ReadCloser, error) {
	content, err := files.Within(ctx, t.options.Silence, func() ([]byte, error) {
		switch {
		case f.mode&fs.ModeSymlink != 0:
			target, err := t.options.Files.ReadLink(f.path)
			return []byte(target), err
		case f.mode.IsRegular():
			return t.readCopied(f.path)
		}
		return nil, errNotRegular
	})
	return io.NopCloser(bytes.NewReader(content)), err
}

var errNotRegular = errors.New("not a regular file")

// readCopied reads a file of a folder.
func (t *intake) readCopied(name string) ([]byte, error) {
	f, err := t.options.Files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // It was only read.
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, errNotRegular)
	}
	return io.ReadAll(io.LimitReader(f, rootfs.MaxFile+1))
}

// machine returns the facts of the machine of which files were among what was read; nil if there was none.
func (t *intake) machine(ctx context.Context) (*facts.Facts, error) {
	all := t.machines.outermost()
	switch {
	case len(all) == 0:
		return nil, nil
	case len(all) > 1:
		var names []string
		for _, m := range all {
			names = append(names, m.name())
		}
		if t.machines.more {
			names = append(names, "and others")
		}
		return nil, fmt.Errorf("%w: %s", ErrSeveral, strings.Join(names, ", "))
	case t.base != nil:
		t.beyond.pass(all[0].name(), problem{"a second machine, in addition to " + t.baseName + ": examine it separately", facts.UnreadForm})
		return nil, nil
	}
	if ctx.Err() != nil { // The deadline, within which the rest was read.
		ctx = context.WithoutCancel(ctx)
	}
	t.baseName = all[0].name()
	t.options.Progress(t.baseName)
	f, _ := checks.Gather(ctx, all[0].files.Host(), t.options.Gather)
	return f, nil
}

// outermost are the machines that do not lie in a folder of another, as the root folders of containers do.
func (m *machines) outermost() []*machineTree {
	return slices.DeleteFunc(slices.Clone(m.all), func(inner *machineTree) bool {
		return slices.ContainsFunc(m.all, func(outer *machineTree) bool {
			return outer != inner && outer.of == inner.of && (outer.root == "" || strings.HasPrefix(inner.root, outer.root+"/"))
		})
	})
}
