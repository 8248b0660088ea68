package evidence

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks"
)

// The bounds of what is read.
const (
	// maxTotal bounds what is read in all, after unpacking: more than any log
	// that people send, and little enough for an endless pipe to end.
	maxTotal = 16 << 30
	// maxUnpacked bounds what one archive or compressed file gives. A gzip
	// stream can grow a thousandfold.
	maxUnpacked = 4 << 30
	// maxTexts bounds the texts.
	maxTexts = 4096
	// maxDepth bounds archives in archives.
	maxDepth = 3
	// maxInMemory bounds what has to be held in memory whole: a zip inside of
	// another archive or a pipe, and a txtar.
	maxInMemory = 64 << 20
	// headBytes is how much of a text is looked at to tell what it is.
	headBytes = 4 << 10
)

// Options says how texts are read.
type Options struct {
	// Stdin is what "-" stands for.
	Stdin io.Reader
	// Gather is how the facts of a recording among the texts are gathered.
	Gather checks.Options
	// Progress, if set, is told the name of each text as it begins.
	Progress func(name string)
}

// ErrNothing is returned where nothing in the texts was recognised. The facts
// list the texts all the same.
var ErrNothing = errors.New("nothing in it was recognised")

// intake opens files, folders and archives, and gives their texts to a
// reading.
type intake struct {
	*reading
	options Options
	// base are the facts of a recording among the texts, and baseName is that
	// recording.
	base     *checks.Facts
	baseName string
	// alone is the archive whose members are called by their own names, since
	// it is all that was given.
	alone string
	// explicit is set while a file is read that was named itself, not found
	// in a folder or an archive.
	explicit bool
	left     int64
}

// Result is what was read.
type Result struct {
	// Facts are what the texts tell.
	Facts *checks.Facts
	// Recording names the recording of a machine among the texts; empty where
	// there was none.
	Recording string
}

// Read examines files, folders, archives and standard input ("-"), and returns
// the facts that their texts tell. A recording of gpudoctor's own among them
// (a snapshot, or a facts file) tells of the machine, and the texts of what
// happened there.
func Read(ctx context.Context, paths []string, options Options) (Result, error) {
	if options.Progress == nil {
		options.Progress = func(string) {}
	}
	t := &intake{reading: newReading(), options: options, left: maxTotal}
	if len(paths) == 1 {
		t.alone = paths[0]
	}
	for _, path := range paths {
		if err := t.path(ctx, path); err != nil {
			return Result{}, err
		}
	}
	facts := t.finish()
	for i := range facts.Texts {
		if text := &facts.Texts[i]; len(text.Kinds) == 0 && text.Problem == "" && text.Bytes == 0 {
			text.Problem = "empty"
		}
	}
	switch {
	case len(facts.Texts) == 0 && t.base == nil:
		return Result{}, fmt.Errorf("%s: no file in it", strings.Join(paths, ", "))
	case t.base != nil:
		return Result{Join(t.base, facts), t.baseName}, nil
	case !slices.ContainsFunc(facts.Texts, func(t checks.Text) bool { return len(t.Kinds) > 0 }):
		return Result{Facts: facts}, fmt.Errorf("%s: %w", strings.Join(paths, ", "), nothing(facts.Texts))
	}
	return Result{Facts: facts}, nil
}

// nothing says why nothing was recognised.
func nothing(texts []checks.Text) error {
	if len(texts) == 1 && texts[0].Problem != "" {
		return fmt.Errorf("%w (%s)", ErrNothing, texts[0].Problem)
	}
	return ErrNothing
}

// path reads one argument.
func (t *intake) path(ctx context.Context, path string) error {
	if path == "-" {
		if t.options.Stdin == nil {
			return errors.New("standard input is not open")
		}
		return t.stream(ctx, "standard input", t.options.Stdin, 0)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such file", path)
	case err != nil:
		return err
	case !info.IsDir():
		t.explicit = true
		defer func() { t.explicit = false }()
		return t.file(ctx, path, path)
	}
	return filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
		shown, relErr := filepath.Rel(path, at)
		if relErr != nil {
			shown = at
		}
		switch {
		case err != nil && at == path:
			return err
		case err != nil:
			t.refuse(shown, err.Error())
		case d.IsDir() && at != path && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir // .git and the like.
		case d.IsDir():
		case !d.Type().IsRegular():
			t.refuse(shown, "not a regular file")
		case t.full():
			return fs.SkipAll
		default:
			return t.file(ctx, at, shown)
		}
		return nil
	})
}

// full reports whether no further text is taken.
func (t *intake) full() bool {
	texts := t.sink.Facts.Texts
	if len(texts) < maxTexts {
		return false
	}
	texts[len(texts)-1].Problem = fmt.Sprintf("more than %d texts: this one and those after it were not read", maxTexts)
	return true
}

// refused lists a text that is not read, and lets the reading go on.
func (t *intake) refused(name, why string) error {
	t.refuse(name, why)
	return nil
}

// refuse lists a text that is not read.
func (t *intake) refuse(name, why string) {
	if len(t.sink.Facts.Texts) < maxTexts {
		t.sink.Facts.Texts = append(t.sink.Facts.Texts, checks.Text{
			Name: checks.Printable(name, 200), Kinds: []checks.TextKind{}, Problem: checks.Printable(why, 200),
		})
	}
}

// file reads a file.
func (t *intake) file(ctx context.Context, path, shown string) error {
	f, err := os.Open(path)
	if err != nil {
		if shown == path {
			return err
		}
		return t.refused(shown, cause(err))
	}
	defer f.Close() //nolint:errcheck // It was only read.
	head := make([]byte, 4)
	if n, err := f.ReadAt(head, 0); err == nil && n == 4 && isZip(head) {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return t.zip(ctx, shown, f, info.Size(), 0)
		}
	}
	return t.stream(ctx, shown, f, 0)
}

// cause leaves the name out of an error of the file system.
func cause(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}

func isZip(head []byte) bool { return bytes.HasPrefix(head, []byte("PK\x03\x04")) }

// stream reads a text, or what is packed in it. What it is is told by its
// first bytes.
func (t *intake) stream(ctx context.Context, name string, from io.Reader, depth int) error {
	if t.full() {
		return nil
	}
	r := bufio.NewReaderSize(from, headBytes*16)
	head, err := r.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		if depth == 0 && len(head) == 0 {
			return fmt.Errorf("read %s: %w", name, err)
		}
		return t.refused(name, cause(err))
	}
	packed := func(unpacked io.Reader, suffixes ...string) error {
		if depth >= maxDepth {
			return t.refused(name, "packed too often")
		}
		inner := name
		for _, s := range suffixes {
			inner = strings.TrimSuffix(inner, s)
		}
		return t.stream(ctx, inner, bounded(unpacked, maxUnpacked), depth+1)
	}
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(r)
		if err != nil {
			return t.refused(name, "broken gzip: "+err.Error())
		}
		return packed(z, ".gz", ".tgz")
	case bytes.HasPrefix(head, []byte("BZh")) && len(head) > 9 && string(head[4:10]) == "1AY&SY":
		return packed(bzip2.NewReader(r), ".bz2")
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		t.refuse(name, "packed with xz, which is not read: unpack it first")
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		t.refuse(name, "packed with zstd, which is not read: unpack it first")
	case isZip(head):
		raw, whole, err := inMemory(r)
		if err != nil || !whole {
			return t.refused(name, fmt.Sprintf("a zip in a pipe or an archive is read up to %d MiB", maxInMemory>>20))
		}
		return t.zip(ctx, name, bytes.NewReader(raw), int64(len(raw)), depth)
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return t.tar(ctx, name, r, depth)
	case isRecording(head):
		return t.recording(ctx, name, r)
	case isArchiveText(head):
		return t.txtar(ctx, name, r)
	default:
		return t.plain(ctx, name, r, head)
	}
	return nil
}

// bounded reads at most n bytes; more is an error.
func bounded(r io.Reader, n int64) io.Reader { return &boundedReader{r, n} }

type boundedReader struct {
	from io.Reader
	left int64
}

// errTooLarge ends the reading of what unpacks without an end.
var errTooLarge = fmt.Errorf("it unpacks to more than %d GiB; the rest was not read", maxUnpacked>>30)

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

func inMemory(r io.Reader) (raw []byte, whole bool, err error) {
	raw, err = io.ReadAll(io.LimitReader(r, maxInMemory+1))
	return raw, len(raw) <= maxInMemory, err
}

// zip reads the members of a zip archive. Their names are shown and never
// used as paths.
func (t *intake) zip(ctx context.Context, name string, r io.ReaderAt, size int64, depth int) error {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return t.refused(name, "broken zip: "+err.Error())
	}
	left := int64(maxUnpacked)
	for _, member := range z.File {
		shown := t.member(name, member.Name)
		if member.FileInfo().IsDir() || t.full() {
			continue
		}
		if depth >= maxDepth || left <= 0 {
			t.refuse(shown, "packed too often, or too large")
			continue
		}
		f, err := member.Open()
		if err != nil {
			t.refuse(shown, err.Error())
			continue
		}
		counted := &boundedReader{f, left}
		err = t.stream(ctx, shown, counted, depth+1)
		left = counted.left
		f.Close() //nolint:errcheck // It was only read.
		if err != nil {
			return err
		}
	}
	return nil
}

// tar reads the members of a tar archive.
func (t *intake) tar(ctx context.Context, name string, r io.Reader, depth int) error {
	members := tar.NewReader(r)
	for {
		head, err := members.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return t.refused(name, "broken tar: "+err.Error())
		case head.Typeflag != tar.TypeReg:
			continue
		case t.full():
			return nil
		}
		if depth >= maxDepth {
			t.refuse(name+":"+head.Name, "packed too often")
			continue
		}
		if err := t.stream(ctx, t.member(strings.TrimSuffix(name, ".tar"), head.Name), members, depth+1); err != nil {
			return err
		}
	}
}

// member is the name of a member of an archive.
func (t *intake) member(archive, name string) string {
	if t.alone != "" && strings.HasPrefix(t.alone, archive) {
		return name
	}
	return archive + ":" + name
}

// isArchiveText reports whether a text is a txtar archive: its first line, or
// the first one after a comment, is the mark of a file.
func isArchiveText(head []byte) bool {
	files := txtar.Parse(head).Files
	return len(files) > 0 && !strings.ContainsAny(files[0].Name, " \t") && strings.ContainsAny(files[0].Name, "./")
}

func (t *intake) txtar(ctx context.Context, name string, r io.Reader) error {
	raw, whole, err := inMemory(r)
	if err != nil || !whole {
		return t.refused(name, fmt.Sprintf("a text archive is read up to %d MiB", maxInMemory>>20))
	}
	for _, f := range txtar.Parse(raw).Files {
		if t.full() {
			break
		}
		if err := t.stream(ctx, t.member(name, f.Name), bytes.NewReader(f.Data), maxDepth); err != nil {
			return err
		}
	}
	return nil
}

// isRecording reports whether a text is gpudoctor's own: a snapshot or a facts
// file.
func isRecording(head []byte) bool {
	return checks.IsRecording(bytes.TrimPrefix(head, []byte("\ufeff")))
}

// recording reads the machine that a recording tells of. There can be one.
func (t *intake) recording(ctx context.Context, name string, r io.Reader) error {
	switch {
	case t.base != nil && t.explicit:
		return fmt.Errorf("%s: a second recording beside %s: examine it by itself", name, t.baseName)
	case t.base != nil:
		return t.refused(name, "a second recording beside "+t.baseName+": examine it by itself")
	}
	host, facts, err := checks.Open(name, r)
	if err != nil {
		return err
	}
	if facts == nil {
		facts, _ = checks.Gather(ctx, host, t.options.Gather)
	}
	t.base, t.baseName = facts, name
	return nil
}

// plain reads a text that is not packed.
func (t *intake) plain(ctx context.Context, name string, r io.Reader, head []byte) error {
	name = checks.Printable(name, 200)
	if encoding := utf16Of(head); encoding != nil {
		r = transform.NewReader(r, encoding)
	} else if isBinary(head) {
		return t.refused(name, "binary data")
	}
	if t.left <= 0 {
		return t.refused(name, fmt.Sprintf("not read: more than %d GiB in all", maxTotal>>30))
	}
	t.options.Progress(name)
	limited := &io.LimitedReader{R: r, N: t.left}
	err := t.read(ctx, name, limited)
	t.left = limited.N
	text := t.textUnderWay()
	switch {
	case ctx.Err() != nil:
		return err
	case err != nil && text.Bytes == 0 && len(t.sink.Facts.Texts) == 1:
		return fmt.Errorf("read %s: %w", name, err)
	case err != nil:
		text.Problem = "not read to its end: " + cause(err)
	case limited.N <= 0:
		text.Problem = fmt.Sprintf("longer than %d GiB; the rest was not read", maxTotal>>30)
	}
	return nil
}

// utf16Of returns the decoder of a text that is UTF-16: by its mark, or because
// every second byte of its beginning is zero. nil is anything else.
func utf16Of(head []byte) transform.Transformer {
	order := unicode.LittleEndian
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		order = unicode.BigEndian
	default:
		sample := head[:min(len(head), 512)&^1]
		even, odd := 0, 0
		for i, b := range sample {
			switch {
			case b != 0:
			case i%2 == 0:
				even++
			default:
				odd++
			}
		}
		half := len(sample) / 2
		switch {
		case half < 4:
			return nil
		case odd > half*9/10 && even == 0:
		case even > half*9/10 && odd == 0:
			order = unicode.BigEndian
		default:
			return nil
		}
	}
	return unicode.UTF16(order, unicode.UseBOM).NewDecoder()
}

// isBinary reports whether the beginning of a file is no text: it holds zero
// bytes, or mostly control characters.
func isBinary(head []byte) bool {
	control := 0
	for _, b := range head {
		switch {
		case b == 0:
			return true
		case b < ' ' && b != '\n' && b != '\r' && b != '\t' && b != 0x1b && b != '\f' && b != '\b':
			control++
		}
	}
	return control > len(head)/10
}
