//go:build linux

package outfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// Content before and after a write. The old one is longer, so that a rest of it
// would show.
var (
	oldContent = []byte(strings.Repeat("old content\n", 1000))
	newContent = []byte(strings.Repeat("new\n", 500))
)

// target is what -o may name. make makes it in a folder and returns the name to
// write to; it skips the test where this machine does not allow it.
type target struct {
	name string
	make func(t *testing.T, dir string) string
	// inPlace is true where a new file could be told from the old one, which has
	// to be written over then. replaced is true where it could not be.
	inPlace, replaced bool
}

// regular are targets that hold content, or get it.
var regular = []target{
	{name: "new", make: func(_ *testing.T, dir string) string { return filepath.Join(dir, "r") }},
	{name: "in the current folder", make: func(t *testing.T, dir string) string {
		t.Helper()
		t.Chdir(dir)
		return "r"
	}},
	{name: "existing", make: existing(0o644), replaced: true},
	{name: "existing, in the current folder", make: func(t *testing.T, dir string) string {
		t.Helper()
		t.Chdir(dir)
		existing(0o644)(t, dir)
		return "r"
	}, replaced: true},
	{name: "for the owner alone", make: existing(0o600), replaced: true},
	{name: "for everyone", make: existing(0o666), replaced: true},
	{name: "executable", make: existing(0o755), replaced: true},
	{name: "read-only", make: func(t *testing.T, dir string) string {
		t.Helper()
		needsRoot(t)
		return existing(0o400)(t, dir)
	}, replaced: true},
	{name: "of another user", make: owned(1234, 0), replaced: true},
	{name: "of another group", make: owned(0, 1234), replaced: true},
	{name: "link", make: func(t *testing.T, dir string) string {
		t.Helper()
		existing(0o640)(t, dir)
		return link(t, dir, "r", "link")
	}, replaced: true},
	{name: "link to a link of another folder", make: func(t *testing.T, dir string) string {
		t.Helper()
		do(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
		existing(0o640)(t, dir)
		link(t, dir, "../r", "sub/second")
		return link(t, dir, "sub/second", "first")
	}, replaced: true},
	{name: "link that leads nowhere", make: func(t *testing.T, dir string) string {
		t.Helper()
		return link(t, dir, "r", "link")
	}},
	{name: "link that leads nowhere by its full name", make: func(t *testing.T, dir string) string {
		t.Helper()
		return link(t, dir, filepath.Join(dir, "r"), "link")
	}},
	{name: "link that leads nowhere through a linked folder", make: func(t *testing.T, dir string) string {
		t.Helper()
		do(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
		link(t, dir, "a/b", "folder")
		link(t, dir, "../second", "a/b/link") // From a/b it is a/second, however one came there.
		link(t, dir, "../r", "a/second")
		return filepath.Join(dir, "folder", "link")
	}},
	{name: "hard link", make: func(t *testing.T, dir string) string {
		t.Helper()
		name := existing(0o644)(t, dir)
		do(t, os.Link(name, filepath.Join(dir, "other")))
		return name
	}, inPlace: true},
	{name: "bind mount", make: func(t *testing.T, dir string) string {
		t.Helper()
		needsRoot(t)
		name := existing(0o644)(t, dir)
		source := filepath.Join(t.TempDir(), "source")
		do(t, os.WriteFile(source, oldContent, 0o600))
		allowed(t, unix.Mount(source, name, "", unix.MS_BIND, ""))
		t.Cleanup(func() { _ = unix.Unmount(name, unix.MNT_DETACH) })
		return name
	}, inPlace: true},
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// allowed skips the test where the machine does not allow or know something.
func allowed(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTSUP) {
		t.Skip("not allowed here:", err)
	}
	do(t, err)
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

func existing(mode fs.FileMode) func(*testing.T, string) string {
	return func(t *testing.T, dir string) string {
		t.Helper()
		name := filepath.Join(dir, "r")
		do(t, os.WriteFile(name, oldContent, 0o600))
		do(t, os.Chmod(name, mode))
		return name
	}
}

func owned(uid, gid int) func(*testing.T, string) string {
	return func(t *testing.T, dir string) string {
		t.Helper()
		needsRoot(t)
		name := existing(0o600)(t, dir)
		do(t, os.Chown(name, uid, gid))
		return name
	}
}

func link(t *testing.T, dir, to, name string) string {
	t.Helper()
	name = filepath.Join(dir, name)
	do(t, os.Symlink(to, name))
	return name
}

// umask sets the umask of the test.
func umask(t *testing.T, mask int) {
	t.Helper()
	before := unix.Umask(mask)
	t.Cleanup(func() { unix.Umask(before) })
}

// listing is each name below a folder with what must not change about it.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	do(t, filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var s unix.Stat_t
		if err := unix.Lstat(name, &s); err != nil {
			return err
		}
		line := fmt.Sprintf("%#o %d:%d %d links", s.Mode, s.Uid, s.Gid, s.Nlink)
		all[strings.TrimPrefix(name, dir)] = line
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
				umask(t, 0o027)
				name := to.make(t, dir)
				before := listing(t, dir)
				old, statErr := os.Stat(name)

				do(t, Check(name))
				if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
					t.Errorf("Check has changed something (-before +after):\n%s", diff)
				}
				do(t, Write(t.Context(), name, newContent, perm))
				if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, newContent) {
					t.Errorf("it holds %.40q, %v", got, err)
				}
				after := listing(t, dir)
				info, err := os.Stat(name)
				do(t, err)
				if statErr == nil {
					if diff := cmp.Diff(before, after); diff != "" {
						t.Errorf("(-before +after):\n%s", diff)
					}
					if same := os.SameFile(info, old); to.inPlace && !same || to.replaced && same {
						t.Errorf("the same file: %t; must be in place: %t, must be replaced: %t", same, to.inPlace, to.replaced)
					}
					return
				}
				if want := perm &^ 0o027; info.Mode() != want {
					t.Errorf("mode %s, want %s", info.Mode(), want)
				}
				expect.That(t, len(after) == len(before)+1, "these files were there and are there:\n%v\n%v", before, after)
			})
		}
	}
}

// TestDevices checks that what is no file is written to as it is.
func TestDevices(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	do(t, unix.Mkfifo(fifo, 0o600))
	read := make(chan []byte)
	go func() {
		time.Sleep(50 * time.Millisecond) // The reader comes after the writer.
		b, _ := os.ReadFile(fifo)
		read <- b
	}()
	large := bytes.Repeat(newContent, 100) // More than a pipe holds.
	do(t, Check(fifo))
	do(t, Write(t.Context(), fifo, large, Shared))
	if got := <-read; !bytes.Equal(got, large) {
		t.Errorf("the reader of the FIFO got %d bytes, want %d", len(got), len(large))
	}
	for name, want := range map[string]error{"/dev/null": nil, "/dev/full": unix.ENOSPC} {
		link := link(t, dir, name, filepath.Base(name))
		for _, name := range []string{name, link} {
			do(t, Check(name))
			expect.ErrorIs(t, want, Write(t.Context(), name, newContent, Shared), "%s", name)
			if info, err := os.Stat(name); err != nil || info.Mode()&fs.ModeCharDevice == 0 {
				t.Errorf("%s is %v now, %v", name, info, err)
			}
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	time.AfterFunc(50*time.Millisecond, func() { cancel(stop) })
	expect.ErrorIs(t, stop, Write(ctx, fifo, newContent, Shared), "a FIFO that nobody reads")
	r, err := os.OpenFile(fifo, os.O_RDWR, 0) // A reader that does not read.
	do(t, err)
	defer r.Close() //nolint:errcheck // It was only read.
	ctx, cancel = context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(stop) })
	err = Write(ctx, fifo, large, Shared)
	if failed, ok := errors.AsType[*Error](err); !ok || !failed.Incomplete {
		t.Errorf("a FIFO whose reader does not read: %v", err)
	}
}

// refused are targets that cannot be written, and why.
var refused = []struct {
	name string
	make func(t *testing.T, dir string) string
	want error
	// late is true where only writing tells.
	late bool
}{
	{name: "folder", make: func(_ *testing.T, dir string) string { return dir }, want: ErrFolder},
	{name: "link to a folder", make: func(t *testing.T, dir string) string {
		t.Helper()
		return link(t, dir, ".", "l")
	}, want: ErrFolder},
	{name: "no folder", make: func(_ *testing.T, dir string) string { return filepath.Join(dir, "no", "r") }, want: fs.ErrNotExist},
	{name: "below a file", make: func(t *testing.T, dir string) string {
		t.Helper()
		return existing(0o600)(t, dir) + "/r"
	}, want: unix.ENOTDIR},
	{name: "loop", make: func(t *testing.T, dir string) string {
		t.Helper()
		return link(t, dir, "l", "l")
	}, want: unix.ELOOP},
	{name: "link into no folder", make: func(t *testing.T, dir string) string {
		t.Helper()
		return link(t, dir, "no/r", "l")
	}, want: fs.ErrNotExist, late: true},
	{name: "name too long", make: func(_ *testing.T, dir string) string {
		return filepath.Join(dir, strings.Repeat("x", 256))
	}, want: unix.ENAMETOOLONG},
	{name: "immutable", make: func(t *testing.T, dir string) string {
		t.Helper()
		needsRoot(t)
		name := existing(0o600)(t, dir)
		f, err := os.Open(name)
		do(t, err)
		set := func(flags int) error { return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags) }
		allowed(t, set(unix.STATX_ATTR_IMMUTABLE)) // The same bit as FS_IMMUTABLE_FL.
		t.Cleanup(func() { _ = errors.Join(set(0), f.Close()) })
		return name
	}, want: fs.ErrPermission},
	{name: "full file system", make: func(t *testing.T, dir string) string {
		t.Helper()
		return full(t, dir, "", 0)
	}, want: unix.ENOSPC, late: true},
	{name: "existing on a full file system", make: func(t *testing.T, dir string) string {
		t.Helper()
		return full(t, dir, "r", 0)
	}, want: unix.ENOSPC, late: true},
	{name: "new beyond the limit", make: func(t *testing.T, dir string) string {
		t.Helper()
		limit(t, least)
		return filepath.Join(dir, "r")
	}, want: unix.EFBIG, late: true},
	{name: "existing beyond the limit", make: func(t *testing.T, dir string) string {
		t.Helper()
		name := existing(0o600)(t, dir)
		limit(t, least)
		return name
	}, want: unix.EFBIG, late: true},
}

// full mounts a file system of 16 KiB that is full, with a small file on it if it
// has a name.
func full(t *testing.T, dir, file string, uid int) string {
	t.Helper()
	needsRoot(t)
	allowed(t, unix.Mount("none", dir, "tmpfs", 0, "size=16k"))
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	if file != "" {
		do(t, os.WriteFile(filepath.Join(dir, file), []byte("old"), 0o600))
		do(t, os.Chown(filepath.Join(dir, file), uid, 0))
	}
	if err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 16<<10), 0o600); !errors.Is(err, unix.ENOSPC) && file != "" {
		t.Fatalf("the file system is not full: %v", err)
	}
	return filepath.Join(dir, "r")
}

// least is the smallest limit: the log of package testing has to fit in.
const least = 1 << 20

// limit bounds the size of the files that this process may write, and ignores the signal that then comes.
func limit(t *testing.T, size uint64) {
	t.Helper()
	signal.Ignore(unix.SIGXFSZ)
	var before unix.Rlimit
	do(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &before))
	do(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: before.Max}))
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_FSIZE, &before) })
}

// TestRefused checks that a target that cannot be written stays as it is, and that the error names it.
func TestRefused(t *testing.T) {
	big := bytes.Repeat(newContent, least/len(newContent)+1) // More than the limit, and than the full file system has.
	for _, to := range refused {
		t.Run(to.name, func(t *testing.T) {
			dir := t.TempDir()
			name := to.make(t, dir)
			before := listing(t, dir)
			content, _ := os.ReadFile(name) // Not every target can be read.
			if err := Check(name); !to.late && !errors.Is(err, to.want) || to.late && err != nil {
				t.Errorf("Check: %v, want %v, late %t", err, to.want, to.late)
			}
			err := Write(t.Context(), name, big, Private)
			failed, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, to.want) || failed.Incomplete {
				t.Errorf("Write: %v, want %v and nothing incomplete", err, to.want)
			} else if !strings.HasPrefix(err.Error(), "write "+name+": ") || strings.Contains(err.Error(), ".gpudoctor-") {
				t.Errorf("Write: %v", err)
			}
			if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
			if got, _ := os.ReadFile(name); !bytes.Equal(got, content) {
				t.Errorf("it holds %.40q, want %.40q", got, content)
			}
		})
	}
}

// TestIncomplete checks that the error says so where writing over a file fails.
func TestIncomplete(t *testing.T) {
	name := existing(0o600)(t, t.TempDir())
	do(t, os.Link(name, name+"2"))
	limit(t, least)
	err := Write(t.Context(), name, bytes.Repeat(newContent, least/len(newContent)+1), Shared)
	failed, ok := errors.AsType[*Error](err)
	if !ok || !failed.Incomplete || !strings.HasSuffix(err.Error(), "file too large; the file is incomplete") {
		t.Errorf("%v, want the file incomplete", err)
	}
}

// TestAbandon checks that an exit waits for the file that is being written, that none is begun afterwards, and that
// what a hanging file system left unfinished is removed.
func TestAbandon(t *testing.T) {
	dir := t.TempDir()
	name, draft := existing(0o600)(t, dir), filepath.Join(dir, "draft")
	do(t, os.WriteFile(draft, newContent, 0o600))
	temporary.Store(&draft)
	writing.Lock()
	Abandon(time.Millisecond)
	expect.Len(t, 2, listing(t, dir), "it left")
	time.AfterFunc(50*time.Millisecond, writing.Unlock)
	Abandon(time.Minute)
	written := make(chan error)
	go func() { written <- Write(t.Context(), name, newContent, Shared) }()
	select {
	case err := <-written:
		t.Errorf("a file was written afterwards: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	writing.Unlock()
	do(t, <-written)
}

// TestPlaces checks that two names are the same place where a write to one is a
// write to the other, for every pair of names.
func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	do(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	link(t, dir, "sub", "linked")
	do(t, os.WriteFile(filepath.Join(dir, "a"), nil, 0o600))
	do(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "hard")))
	link(t, dir, "a", "soft")
	groups := [][]string{
		{"a", "./a", "sub/../a", "hard", "soft", "linked/../a"},
		{"sub/new", "linked/new", "sub//new"},
		{"new", "./new"},
		{"sub"},
	}
	t.Chdir(dir)
	for i, as := range groups {
		for j, bs := range groups {
			for _, a := range as {
				for _, b := range bs {
					p, err := Find(a)
					do(t, err)
					q, err := Find(b)
					do(t, err)
					if p.Same(q) != (i == j) {
						t.Errorf("%s and %s are the same place: %t, want %t", a, b, p.Same(q), i == j)
					}
				}
			}
		}
	}
	null, err := Find("/dev/null")
	do(t, err)
	expect.That(t, !null.Same(null), "/dev/null can be written to once only")
	f, err := os.Open("a")
	do(t, err)
	defer f.Close() //nolint:errcheck // It was only read.
	p, err := PlaceOf(f)
	do(t, err)
	if q, err := Find("hard"); err != nil || !p.Same(q) {
		t.Errorf("an open file is another than that of its name: %v", err)
	}
	expect.Value(io.ReadAll(f))(t)
}
