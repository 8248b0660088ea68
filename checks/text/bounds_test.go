package text_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// fault is what goes wrong with one file.
type fault struct {
	// operation is "stat", "open", "fstat", "read" or "readdir".
	operation, name string
	// at is how many bytes can be read before it.
	at int
	// hangs is true where the operation never ends; else it is an error.
	hangs bool
}

var errFault = errors.New("input/output error")

// tree is a file system in memory with a fault.
type tree struct {
	fstest.MapFS
	fault fault
	// end lets what hangs go on, at the end of the test.
	end chan struct{}
}

func newTree(t *testing.T, all map[string]string, f fault) *tree {
	t.Helper()
	s := &tree{MapFS: fstest.MapFS{}, fault: f, end: make(chan struct{})}
	for name, data := range all {
		s.MapFS[name] = &fstest.MapFile{Data: []byte(data), Mode: 0o600}
	}
	t.Cleanup(func() { close(s.end) })
	return s
}

func (s *tree) do(operation, name string, at int) error {
	if f := s.fault; f.operation != operation || f.name != name || at < f.at {
		return nil
	}
	if s.fault.hangs {
		<-s.end
	}
	return &fs.PathError{Op: operation, Path: name, Err: errFault}
}

func (s *tree) Stat(name string) (fs.FileInfo, error) {
	if err := s.do("stat", name, 0); err != nil {
		return nil, err
	}
	return s.MapFS.Stat(name)
}

func (s *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := s.do("readdir", name, 0); err != nil {
		return nil, err
	}
	return s.MapFS.ReadDir(name)
}

func (s *tree) Open(name string) (files.File, error) {
	if err := s.do("open", name, 0); err != nil {
		return nil, err
	}
	f, err := s.MapFS.Open(name)
	if err != nil {
		return nil, err
	}
	return &treeFile{f.(files.File), s, name, 0}, nil
}

// treeFile is a file that can be read up to its fault.
type treeFile struct {
	files.File

	tree *tree
	name string
	at   int
}

func (f *treeFile) Stat() (fs.FileInfo, error) {
	if err := f.tree.do("fstat", f.name, 0); err != nil {
		return nil, err
	}
	return f.File.Stat()
}

func (f *treeFile) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, int64(f.at))
	f.at += n
	return n, err
}

func (f *treeFile) ReadAt(p []byte, at int64) (int, error) {
	if x := f.tree.fault; x.operation == "read" && x.name == f.name {
		if int(at) >= x.at {
			return 0, f.tree.do("read", f.name, int(at))
		}
		p = p[:min(len(p), x.at-int(at))]
	}
	n, err := f.File.ReadAt(p, at)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// kindsOf gives what was recognised, by text.
func kindsOf(f *facts.Facts) map[string]bool {
	all := map[string]bool{}
	for _, text := range f.Texts {
		all[text.Name] = len(text.Kinds) > 0
	}
	return all
}

// TestReadFaults checks, for each operation that can fail or never end, at each place of a file, for each form of the
// file, alone, beside others and in a folder: the others are read, and the one is named as not read. Alone, it is an
// error of one line.
func TestReadFaults(t *testing.T) {
	forms := map[string]string{
		"plain": known + known, "gzip": string(checktest.Gzip([]byte(known))), "tar": string(tarred(t, "in.log", known)),
		"tar.gz": string(checktest.Gzip(tarred(t, "in.log", known))), "zip": string(zipped(t, "in.log", known)),
	}
	type run struct {
		what  string
		form  string
		fault fault
		paths []string
	}
	var all []run
	for form, data := range forms {
		faults := []fault{{operation: "open"}, {operation: "fstat"}, {operation: "read"}, {operation: "read", at: 2}, {operation: "read", at: len(data) / 2}}
		if form == "plain" {
			faults = append(faults, fault{operation: "stat"}, fault{operation: "readdir", name: "d/sub"}, fault{operation: "read", at: len(data)})
		}
		for _, f := range faults {
			f.name = "d/sub/b"
			for _, f.hangs = range []bool{false, true} {
				for what, paths := range map[string][]string{"alone": {"d/sub/b"}, "beside others": {"d/a", "d/sub/b", "d/c"}, "in a folder": {"d"}} {
					if f.operation == "readdir" {
						f.name = "d/sub"
					}
					if (f.operation == "stat") == (what == "in a folder") && f.operation != "read" && f.operation != "open" && f.operation != "fstat" {
						continue // A folder tells what its files are, and a file is not listed.
					}
					if f.operation == "readdir" && what != "in a folder" {
						continue
					}
					all = append(all, run{what, form, f, paths})
				}
			}
		}
	}
	for _, r := range all {
		synctest.Test(t, func(t *testing.T) { // What hangs takes no time.
			system := newTree(t, map[string]string{"d/a": known, "d/sub/b": forms[r.form], "d/c": known}, r.fault)
			got, err := text.Read(t.Context(), r.paths, text.Options{Files: system, Silence: 10 * time.Second})
			name := fmt.Sprintf("%s, %s, %+v", r.what, r.form, r.fault)
			expect.Must(t, got.Facts != nil, "%s: no facts: %v", name, err)
			kinds := kindsOf(got.Facts)
			if r.what == "alone" {
				expect.That(t, len(kinds) != 1 || kinds["d/sub/b"] || kinds["in.log"] || err != nil && !strings.Contains(err.Error(), "\n"), "%s: the error is %v", name, err)
			} else if err != nil || !kinds["d/a"] && !kinds["a"] || !kinds["d/c"] && !kinds["c"] {
				t.Errorf("%s: %v; recognised: %v", name, err, kinds)
			}
			named := slices.ContainsFunc(got.Facts.Texts, func(text facts.Text) bool {
				return (strings.Contains(text.Name, "sub") || r.what == "alone") && text.Unread == facts.UnreadError && text.Problem != ""
			})
			expect.That(t, named, "%s: it is not named as not read: %+v", name, got.Facts.Texts)
		})
	}
	t.Logf("%d faults", len(all))
}

// TestReadDamaged checks that an archive that is cut off, or of which a byte is
// another one, tells all that it told, or is named as not read.
func TestReadDamaged(t *testing.T) {
	heard := func(f *facts.Facts) (n int) {
		if f != nil && f.Logs != nil {
			for _, m := range f.Logs.Messages {
				n += m.Count
			}
		}
		return n
	}
	packed := zipped(t, "a.log", known, "b.log", known)
	directory := bytes.Index(packed, []byte("PK\x01\x02")) // In it, and in the heads, names and modes can be anything.
	for form, data := range map[string][]byte{
		"gzip": checktest.Gzip([]byte(known + known)), "tar.gz": checktest.Gzip(tarred(t, "a.log", known, "b.log", known)), "zip": packed,
	} {
		try := expect.EachNth(4)
		for at := range data {
			if at%2 > 0 || at < 4 || !try() {
				continue // Less than its mark is not known to be an archive.
			}
			flipped := slices.Clone(data)
			flipped[at] ^= 0x10
			damaged := map[string][]byte{"cut off": data[:at], "changed": flipped}
			if form == "zip" && (at >= directory || at < 64) {
				delete(damaged, "changed") // Names and times may be others.
			}
			for how, bad := range damaged {
				system := newTree(t, map[string]string{"d/bad": string(bad), "d/good": known}, fault{})
				got, err := text.Read(t.Context(), []string{"d"}, text.Options{Files: system})
				expect.Must(t, err == nil, "%s %s at %d: %v", form, how, at, err)
				expect.That(t, kindsOf(got.Facts)["good"], "%s %s at %d: the other file is not read", form, how, at)
				named := slices.ContainsFunc(got.Facts.Texts, func(t facts.Text) bool { return t.Problem != "" })
				expect.That(t, named || heard(got.Facts) == 3, "%s %s at %d: %d lines are heard, and nothing is said", form, how, at, heard(got.Facts))
			}
		}
	}
}

// TestMaxBytes checks, for each limit: no more is read, what was read is reported, and
// a limit that leaves anything out is named, and only that.
func TestMaxBytes(t *testing.T) {
	const lines = 4
	line := func(i int) string { return strings.Replace(known, "ERROR", fmt.Sprintf("ERROR %d", i), 1) }
	var content strings.Builder
	for i := range lines {
		content.WriteString(line(i))
	}
	two := func(f func(testing.TB, ...string) []byte) string {
		return string(f(t, "a.log", content.String(), "b.log", content.String()))
	}
	for form, all := range map[string]map[string]string{
		"files": {"d/a.log": content.String(), "d/b.log": content.String()},
		"gzip":  {"d/a.gz": string(checktest.Gzip([]byte(content.String()))), "d/b.gz": string(checktest.Gzip([]byte(content.String())))},
		"tar":   {"d/x.tar": two(func(_ testing.TB, m ...string) []byte { return tarred(t, m...) })},
		"zip":   {"d/x.zip": two(func(_ testing.TB, m ...string) []byte { return zipped(t, m...) })},
		"txtar": {"d/x.txtar": "-- a.log --\n" + content.String() + "-- b.log --\n" + content.String()},
	} {
		whole := int64(2 * content.Len())
		switch form {
		case "tar", "txtar":
			whole = int64(len(all["d/x."+form]))
		}
		for limit := int64(1); limit <= whole+1; limit += max(1, min(37, whole-limit)) {
			got, _ := text.Read(t.Context(), []string{"d"}, text.Options{Files: newTree(t, all, fault{}), MaxBytes: limit})
			expect.Must(t, got.Facts != nil, "%s, %d of %d: no facts", form, limit, whole)
			read, heard, named := int64(0), 0, false
			for _, content := range got.Facts.Texts {
				read += content.Bytes
				named = named || content.Unread == facts.UnreadSize
			}
			if got.Facts.Logs != nil {
				heard = got.Facts.Logs.Messages[0].Count
			}
			expect.That(t, read <= limit, "%s, %d of %d: %d were read", form, limit, whole, read)
			expect.Equal(t, limit < whole, named, "%s, %d of %d: named as cut", form, limit, whole)
			expect.That(t, heard >= (int(read)/len(line(0))-1) && (limit < whole || heard == 2*lines), "%s, %d of %d: %d lines are heard", form, limit, whole, heard)
		}
	}
}

// atWill is a context whose deadline is reached when it is asked to be.
type atWill struct {
	context.Context
	done chan struct{}
}

func (c atWill) Done() <-chan struct{} { return c.done }

func (c atWill) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// stalls gives a text and then nothing more, without an end. It says so first.
type stalls struct {
	text    io.Reader
	stalled func()
	end     <-chan struct{}
}

func (s *stalls) Read(p []byte) (int, error) {
	if n, _ := s.text.Read(p); n > 0 {
		return n, nil
	}
	s.stalled()
	<-s.end
	return 0, io.EOF
}

// TestReadDeadline checks that what was read before the deadline is reported, and what
// was not is named: of a pipe that never ends, in whatever it comes packed.
func TestReadDeadline(t *testing.T) {
	tarball := tarred(t, "a.log", known, "b.log", known)
	for name, tt := range map[string]struct {
		data  string
		heard bool
	}{
		"nothing":   {"", false},
		"a text":    {known, true},
		"a member":  {string(tarball[:1024+2]), true},
		"one and a": {string(tarball[:1024+512+2]), true},
		"gzip":      {string(checktest.Gzip([]byte(known))[:20]), false},
		"zip":       {string(zipped(t, "a.log", known)[:20]), false},
	} {
		ctx := atWill{t.Context(), make(chan struct{})}
		end := make(chan struct{})
		t.Cleanup(func() { close(end) })
		pipe := &stalls{strings.NewReader(tt.data), sync.OnceFunc(func() { close(ctx.done) }), end}
		got, err := text.Read(ctx, []string{"-"}, text.Options{Stdin: pipe})
		expect.Must(t, got.Facts != nil && len(got.Facts.Texts) != 0, "%s: no texts: %v", name, err)
		expect.That(t, slices.ContainsFunc(got.Facts.Texts, func(t facts.Text) bool { return t.Unread == facts.UnreadTime && t.Problem != "" }), "%s: not named: %+v", name, got.Facts.Texts)
		expect.That(t, tt.heard || errors.Is(err, text.ErrDeadline), "%s: the error is %v", name, err)
	}
}

// TestReadCancelled checks that a pipe to which nobody writes does not keep a context waiting that is cancelled.
func TestReadCancelled(t *testing.T) {
	why := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	end := make(chan struct{})
	defer close(end)
	pipe := &stalls{strings.NewReader(known), func() { cancel(why) }, end}
	expect.Fails(text.Read(ctx, []string{"-"}, text.Options{Stdin: pipe}))(t, why, "it")
}

// TestMembersLeftOut checks that each member of an archive that is not read is
// listed with the reason: the first ones by name, all of them by number.
func TestMembersLeftOut(t *testing.T) {
	var inTar bytes.Buffer
	w := tar.NewWriter(&inTar)
	add := func(name string, flag byte, body string) {
		h := &tar.Header{Name: name, Typeflag: flag, Mode: 0o600, Size: int64(len(body))}
		if flag == tar.TypeLink || flag == tar.TypeSymlink {
			h.Linkname = "/etc/passwd"
		}
		expect.NoError(t, w.WriteHeader(h))
		io.WriteString(w, body) //nolint:errcheck // A buffer.
	}
	add("folder/", tar.TypeDir, "")
	add("first.log", tar.TypeReg, known)
	add("link", tar.TypeSymlink, "")
	add("hard", tar.TypeLink, "")
	add("fifo", tar.TypeFifo, "")
	add("null", tar.TypeChar, "")
	add("sda", tar.TypeBlock, "")
	add("/absolute.log", tar.TypeReg, known)
	add("../../up.log", tar.TypeReg, known)
	for i := range 40 {
		add(fmt.Sprintf("link%d", i), tar.TypeSymlink, "")
	}
	add("again.log", tar.TypeReg, known)
	add("again.log", tar.TypeReg, known)
	w.Close() //nolint:errcheck // A buffer.

	var inZip bytes.Buffer
	z := zip.NewWriter(&inZip)
	zipAdd := func(h *zip.FileHeader, mode fs.FileMode) {
		h.SetMode(mode)
		m := expect.Value(z.CreateRaw(h))(t)
		io.WriteString(m, known) //nolint:errcheck // A buffer.
	}
	size := uint64(len(known))
	zipAdd(&zip.FileHeader{Name: "link", CompressedSize64: size, UncompressedSize64: size}, fs.ModeSymlink|0o777)
	zipAdd(&zip.FileHeader{Name: "fifo", CompressedSize64: size, UncompressedSize64: size}, fs.ModeNamedPipe|0o600)
	zipAdd(&zip.FileHeader{Name: "secret", Flags: 1, CompressedSize64: size, UncompressedSize64: size}, 0o600)
	zipAdd(&zip.FileHeader{Name: "lzma", Method: 14, CompressedSize64: size, UncompressedSize64: size}, 0o600)
	zipAdd(&zip.FileHeader{Name: "crc", CRC32: 1, CompressedSize64: size, UncompressedSize64: size}, 0o600)
	last := expect.Value(z.Create("last.log"))(t)
	io.WriteString(last, known) //nolint:errcheck // A buffer.
	z.Close()                   //nolint:errcheck // A buffer.

	for name, tt := range map[string]struct {
		data []byte
		want map[string]string
		more int
	}{
		"tar": {inTar.Bytes(), map[string]string{
			"first.log": "", "/absolute.log": "", "../../up.log": "", "again.log": "", "again.log (2)": "",
			"link": "a symbolic link", "hard": "a hard link", "fifo": "not a regular file", "null": "not a regular file", "sda": "not a regular file",
			"link0": "a symbolic link", "link14": "a symbolic link", "and 25 more in x": "a symbolic link",
		}, 25},
		"zip": {inZip.Bytes(), map[string]string{"link": "a symbolic link", "fifo": "not a regular file", "secret": "encrypted", "lzma": "method 14", "crc": "checksum", "last.log": ""}, 0},
	} {
		got, err := text.Read(t.Context(), []string{"x"}, text.Options{Files: newTree(t, map[string]string{"x": string(tt.data)}, fault{})})
		expect.Must(t, err == nil, "%s: %v", name, err)
		more := 0
		problems := map[string]string{}
		for _, text := range got.Facts.Texts {
			problems[text.Name] = text.Problem
			more += text.More
		}
		for member, want := range tt.want {
			said, listed := problems[member]
			expect.That(t, listed && (said == "") == (want == "") && strings.Contains(said, want), "%s: %s: %q, want %q", name, member, said, want)
		}
		expect.That(t, more == tt.more, "%s: %d more, want %d: %v", name, more, tt.more, problems)
	}
}
