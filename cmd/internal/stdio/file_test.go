//go:build linux

package stdio

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// Content before and after a write. The old one is longer, so that a rest of it would show.
var (
	oldContent = []byte(strings.Repeat("old content\n", 1000))
	newContent = []byte(strings.Repeat("new\n", 500))
)

// target is what -o may name, in a folder of its own.
type target struct {
	name string
	// mode is that of a file r, 0 if there is none, and uid and gid whose it is.
	mode     fs.FileMode
	uid, gid int
	// links are symbolic ones, by their names: in folders that are made, too.
	links []string
	// write is the name to write to, r if empty. It is in the current folder where there is no other.
	write   string
	here    bool
	mount   bool // The file is bound to another.
	full    bool // The file system is full.
	limited bool // No file may be large.
	// inPlace is true where a new file could be told from the old one, which has to be written over then.
	inPlace bool
	// want is why it cannot be written; late is true where only writing tells.
	want error
	late bool
}

// regular are targets that hold content, or get it.
var regular = []target{
	{name: "new"},
	{name: "in the current folder", here: true},
	{name: "existing", mode: 0o644},
	{name: "executable", mode: 0o755},
	{name: "read-only", mode: 0o400},
	{name: "of another user", mode: 0o600, uid: 1234},
	{name: "of another group", mode: 0o600, gid: 1234},
	{name: "link", mode: 0o640, links: []string{"l -> r"}, write: "l"},
	{name: "link to a link of another folder", mode: 0o640, links: []string{"sub/l -> ../r", "l -> sub/l"}, write: "l"},
	{name: "link that leads nowhere", links: []string{"l -> r"}, write: "l"},
	// From a/b, ../l is a/l, however one came there.
	{name: "link that leads nowhere through a linked folder", links: []string{"a/b/l -> ../l", "folder -> a/b", "a/l -> ../r"}, write: "folder/l"},
	{name: "bind mount", mode: 0o644, mount: true, inPlace: true},
}

var refused = []target{
	{name: "folder", write: ".", want: ErrFolder},
	{name: "link to a folder", links: []string{"l -> ."}, write: "l", want: ErrFolder},
	{name: "no folder", write: "no/r", want: fs.ErrNotExist},
	{name: "below a file", mode: 0o600, write: "r/r", want: unix.ENOTDIR},
	{name: "loop", links: []string{"l -> l"}, write: "l", want: unix.ELOOP},
	{name: "link into no folder", links: []string{"l -> no/r"}, write: "l", want: fs.ErrNotExist, late: true},
	{name: "name too long", write: strings.Repeat("x", 256), want: unix.ENAMETOOLONG},
	{name: "full file system", full: true, want: unix.ENOSPC, late: true},
	{name: "existing on a full file system", mode: 0o600, full: true, want: unix.ENOSPC, late: true},
	{name: "existing beyond the limit", mode: 0o600, limited: true, want: unix.EFBIG, late: true},
}

// make makes a target in a folder and returns the name to write to. It skips the test where this machine does not allow it.
func (to target) make(t *testing.T, dir string) string {
	t.Helper()
	if os.Geteuid() != 0 && (to.mode == 0o400 || to.uid+to.gid > 0 || to.mount || to.full) {
		t.Skip("needs root")
	}
	file := filepath.Join(dir, "r")
	if to.full {
		allowed(t, unix.Mount("none", dir, "tmpfs", 0, "size=24k"))
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	}
	if to.mode != 0 {
		expect.NoError(t, os.WriteFile(file, oldContent, 0o600))
		expect.NoError(t, os.Chmod(file, to.mode))
	}
	if to.uid+to.gid > 0 {
		expect.NoError(t, os.Chown(file, to.uid, to.gid))
	}
	for _, l := range to.links {
		name, leads, _ := strings.Cut(l, " -> ")
		expect.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		expect.NoError(t, os.Symlink(leads, filepath.Join(dir, name)))
	}
	switch {
	case to.mount:
		source := filepath.Join(t.TempDir(), "source")
		expect.NoError(t, os.WriteFile(source, oldContent, 0o600))
		allowed(t, unix.Mount(source, file, "", unix.MS_BIND, ""))
		t.Cleanup(func() { _ = unix.Unmount(file, unix.MNT_DETACH) })
	case to.full:
		err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 24<<10), 0o600)
		expect.Must(t, errors.Is(err, unix.ENOSPC) || to.mode == 0, "the file system is not full: %v", err)
	case to.limited:
		limit(t)
	}
	name := cmp.Or(to.write, "r")
	if to.here {
		t.Chdir(dir)
		return name
	}
	return filepath.Join(dir, name)
}

// allowed skips the test where the machine does not allow or know something.
func allowed(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTSUP) {
		t.Skip("not allowed here:", err)
	}
	expect.NoError(t, err)
}

// listing is each name below a folder with what must not change about it.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	expect.NoError(t, filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var s unix.Stat_t
		if err := unix.Lstat(name, &s); err != nil {
			return err
		}
		all[strings.TrimPrefix(name, dir)] = fmt.Sprintf("%#o %d:%d %d links", s.Mode, s.Uid, s.Gid, s.Nlink)
		return nil
	}))
	return all
}

// TestWrite checks for every target that the content is that which was written, and that its mode, its owner and
// what stands around it have not changed.
func TestWrite(t *testing.T) {
	for _, perm := range []fs.FileMode{Shared, Private} {
		for _, to := range regular {
			t.Run(fmt.Sprintf("%s, %#o", to.name, perm), func(t *testing.T) {
				dir := t.TempDir()
				before := unix.Umask(0o027)
				t.Cleanup(func() { unix.Umask(before) })
				name := to.make(t, dir)
				listed := listing(t, dir)
				old, statErr := os.Stat(name)

				expect.NoError(t, CheckFile(name))
				expect.NoDiff(t, listed, listing(t, dir), "Check has changed something")
				expect.NoError(t, WriteFile(t.Context(), name, newContent, perm))
				got, err := os.ReadFile(name)
				expect.That(t, err == nil && bytes.Equal(got, newContent), "it holds %.40q, %v", got, err)
				after := listing(t, dir)
				info := expect.Value(os.Stat(name))(t)
				if statErr == nil {
					expect.NoDiff(t, listed, after, "what was there")
					expect.Equal(t, to.inPlace, os.SameFile(info, old), "it is the same file")
					return
				}
				expect.Equal(t, perm&^0o027, info.Mode(), "mode")
				expect.That(t, len(after) == len(listed)+1, "these files were there and are there:\n%v\n%v", listed, after)
			})
		}
	}
}

// TestDevices checks that what is no file is written to as it is.
func TestDevices(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	expect.NoError(t, unix.Mkfifo(fifo, 0o600))
	read := make(chan []byte)
	go func() {
		time.Sleep(50 * time.Millisecond) // The reader comes after the writer.
		b, _ := os.ReadFile(fifo)
		read <- b
	}()
	large := bytes.Repeat(newContent, 100) // More than a pipe holds.
	expect.NoError(t, CheckFile(fifo))
	expect.NoError(t, WriteFile(t.Context(), fifo, large, Shared))
	got := <-read
	expect.That(t, bytes.Equal(got, large), "the reader of the FIFO got %d bytes, want %d", len(got), len(large))
	for name, want := range map[string]error{"/dev/null": nil, "/dev/full": unix.ENOSPC} {
		link := filepath.Join(dir, filepath.Base(name))
		expect.NoError(t, os.Symlink(name, link))
		for _, name := range []string{name, link} {
			expect.NoError(t, CheckFile(name))
			expect.ErrorIs(t, want, WriteFile(t.Context(), name, newContent, Shared), "%s", name)
			info, err := os.Stat(name)
			expect.That(t, err == nil && info.Mode()&fs.ModeCharDevice != 0, "%s is %v now, %v", name, info, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	time.AfterFunc(50*time.Millisecond, func() { cancel(stop) })
	expect.ErrorIs(t, stop, WriteFile(ctx, fifo, newContent, Shared), "a FIFO that nobody reads")
	r := expect.Value(os.OpenFile(fifo, os.O_RDWR, 0))(t) // A reader that does not read.
	defer r.Close()                                       //nolint:errcheck // It was only read.
	ctx, cancel = context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(stop) })
	err := WriteFile(ctx, fifo, large, Shared)
	expect.That(t, err != nil && strings.HasSuffix(err.Error(), "the file may be incomplete"), "a FIFO whose reader does not read: %v", err)
}

// least is the smallest limit: the log of package testing has to fit in.
const least = 1 << 20

// limit bounds the size of the files that this process may write, and ignores the signal that then comes.
func limit(t *testing.T) {
	t.Helper()
	signal.Ignore(unix.SIGXFSZ)
	var before unix.Rlimit
	expect.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &before))
	expect.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: least, Max: before.Max}))
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_FSIZE, &before) })
}

// TestRefused checks that a target that cannot be written stays as it is, and that the error names it.
func TestRefused(t *testing.T) {
	big := bytes.Repeat(newContent, least/len(newContent)+1) // More than the limit, and than the full file system has.
	for _, to := range refused {
		t.Run(to.name, func(t *testing.T) {
			dir := t.TempDir()
			name := to.make(t, dir)
			listed := listing(t, dir)
			content, _ := os.ReadFile(name) // Not every target can be read.
			err := CheckFile(name)
			expect.That(t, to.late && err == nil || !to.late && errors.Is(err, to.want), "Check: %v, want %v, late %t", err, to.want, to.late)
			err = WriteFile(t.Context(), name, big, Private)
			expect.Must(t, errors.Is(err, to.want) && !strings.Contains(err.Error(), "incomplete"), "Write: %v, want %v and nothing incomplete", err, to.want)
			expect.That(t, strings.HasPrefix(err.Error(), "write "+name+": ") && !strings.Contains(err.Error(), ".gpudoctor-"), "Write: %v", err)
			expect.NoDiff(t, listed, listing(t, dir), "what was there")
			got, _ := os.ReadFile(name)
			expect.That(t, bytes.Equal(got, content), "it holds %.40q, want %.40q", got, content)
		})
	}
}

// TestAbandon checks that an exit waits for the file that is being written, that none is begun afterwards, and that
// what a hanging file system left unfinished is removed.
func TestAbandon(t *testing.T) {
	dir := t.TempDir()
	name, draft := target{mode: 0o600}.make(t, dir), filepath.Join(dir, "draft")
	expect.NoError(t, os.WriteFile(draft, newContent, 0o600))
	temporary.Store(&draft)
	writing.Lock()
	Abandon(time.Millisecond)
	expect.Len(t, 2, listing(t, dir), "it left")
	time.AfterFunc(50*time.Millisecond, writing.Unlock)
	Abandon(time.Minute)
	written := make(chan error)
	go func() { written <- WriteFile(t.Context(), name, newContent, Shared) }()
	select {
	case err := <-written:
		t.Errorf("a file was written afterwards: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	writing.Unlock()
	expect.NoError(t, <-written)
}

// TestSame checks that two names are the same where a write to one is a write to the other, for every pair of names.
func TestSame(t *testing.T) {
	t.Chdir(t.TempDir())
	expect.NoError(t, errors.Join(os.Mkdir("sub", 0o755), os.Symlink("sub", "linked"), os.WriteFile("a", nil, 0o600), os.Link("a", "hard"), os.Symlink("a", "soft")))
	groups := [][]string{
		{"a", "./a", "sub/../a", "hard", "soft", "linked/../a"},
		{"sub/new", "linked/new", "sub//new"},
		{"new", "./new"},
		{"sub"},
		{"none/new"},
	}
	for i, as := range groups {
		for j, bs := range groups {
			for _, a := range as {
				for _, b := range bs {
					expect.Equal(t, i == j && a != "none/new", SameFile(a, b), "%s and %s are the same", a, b)
				}
			}
		}
	}
	expect.That(t, !SameFile("/dev/null", "/dev/null"), "/dev/null can be written to once only")
}
