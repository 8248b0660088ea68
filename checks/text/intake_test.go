package text_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/text/encoding/unicode"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// known is a line that the catalogue knows.
const known = "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"

func tarred(tb testing.TB, members ...string) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		expect.NoError(tb, w.WriteHeader(&tar.Header{Name: members[i], Size: int64(len(members[i+1])), Mode: 0o600, Typeflag: tar.TypeReg}))
		io.WriteString(w, members[i+1]) //nolint:errcheck // A buffer.
	}
	w.Close() //nolint:errcheck // A buffer.
	return b.Bytes()
}

func zipped(tb testing.TB, members ...string) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		m := expect.Value(w.Create(members[i]))(tb)
		io.WriteString(m, members[i+1]) //nolint:errcheck // A buffer.
	}
	w.Close() //nolint:errcheck // A buffer.
	return b.Bytes()
}

// TestRead checks that a text is found in whatever it comes packed.
func TestRead(t *testing.T) {
	for _, tt := range []struct {
		name string
		data []byte
		want []string // The texts in which the line was found.
	}{
		{"plain.log", []byte(known), []string{"plain.log"}},
		{"colour.log", []byte("\x1b[31m" + strings.TrimSuffix(known, "\n") + "\x1b[0m\n"), []string{"colour.log"}},
		{"bug-report.log.gz", checktest.Gzip([]byte(known)), []string{"bug-report.log"}},
		{"bundle.tar.gz", checktest.Gzip(tarred(t, "a.log", known, "b.log", "nothing\n")), []string{"bundle:a.log"}},
		{"bundle.zip", zipped(t, "a.log", known, "in/b.log", known), []string{"bundle.zip:a.log", "bundle.zip:in/b.log"}},
		{"outside.zip", zipped(t, "../../etc/passwd", known), []string{"outside.zip:../../etc/passwd"}},
		{"nested.tar", tarred(t, "a.log.gz", string(checktest.Gzip([]byte(known)))), []string{"nested:a.log"}},
		{"zip-in.tar", tarred(t, "a.zip", string(zipped(t, "b.log", known))), []string{"zip-in:a.zip:b.log"}},
		{"case.txtar", []byte("a comment\n-- nccl.log --\n" + known + "-- b.txt --\nnothing\n"), []string{"case.txtar:nccl.log"}},
		{"no-mark.log", []byte(strings.TrimPrefix(encoded(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM))(known), "\xff\xfe")), []string{"no-mark.log"}},
		{"name-says-nothing.jpg", []byte(known), []string{"name-says-nothing.jpg"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := written(t, t.TempDir(), tt.name, string(tt.data))
			for _, way := range []string{"file", "folder", "pipe"} {
				from, options := path, text.Options{}
				switch way {
				case "folder":
					from = filepath.Dir(path)
				case "pipe":
					from, options.Stdin = "-", bytes.NewReader(tt.data)
				}
				got, err := text.Read(t.Context(), []string{from}, options)
				expect.Must(t, err == nil, "%s: %v", way, err)
				var found []string
				for _, m := range got.Facts.Texts {
					if len(m.Kinds) > 0 {
						found = append(found, strings.TrimPrefix(m.Name, filepath.Dir(path)+"/"))
					}
				}
				switch way {
				case "pipe": // Its texts have no file's name.
					expect.Len(t, len(tt.want), found, "pipe: found in")
				case "file": // An archive that is all that was given needs no name.
					for i, want := range tt.want {
						_, member, _ := strings.Cut(want, ":")
						expect.That(t, found[i] == want || found[i] == member, "file: found in %q, want %q", found, tt.want)
					}
				default:
					expect.That(t, slices.Equal(found, tt.want), "%s: found in %q, want %q", way, found, tt.want)
				}
			}
		})
	}
}

// TestReadRefuses checks that what cannot be read is said so in one line.
func TestReadRefuses(t *testing.T) {
	bomb := checktest.Gzip(checktest.Gzip(checktest.Gzip(checktest.Gzip(checktest.Gzip([]byte(known))))))
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"empty":                     {nil, "empty"},
		"binary":                    {[]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00"), "binary data"},
		"prose":                     {[]byte("my GPUs do not talk to each other\n"), "nothing in it was recognized"},
		"broken xz":                 {[]byte("\xfd7zXZ\x00\x00\x04"), "broken xz"},
		"broken zstd":               {[]byte("\x28\xb5\x2f\xfd\x04\x58"), "unexpected EOF"},
		"broken gzip":               {[]byte("\x1f\x8b\x08\x00broken"), "unexpected EOF"},
		"broken zip":                {[]byte("PK\x03\x04broken"), "broken zip"},
		"compressed too many times": {bomb, "compressed too many times"},
		"control":                   {bytes.Repeat([]byte{1, 2, 3, 4}, 1000), "binary data"},
	} {
		_, err := text.Read(t.Context(), []string{written(t, t.TempDir(), "it", string(tt.data))}, text.Options{})
		expect.That(t, err != nil && strings.Contains(err.Error(), tt.want) && !strings.Contains(err.Error(), "\n"), "%s: got %v, want %q in one line", name, err, tt.want)
	}
	expect.Fails(text.Read(t.Context(), []string{t.TempDir()}, text.Options{}))(t, "no files in it", "an empty folder")
}

// TestReadFolder checks that what is no text in a folder is listed and passed over: a pipe would wait for ever.
func TestReadFolder(t *testing.T) {
	dir := t.TempDir()
	written(t, dir, "a.log", known)
	written(t, dir, "core", "\x7fELF\x00\x00")
	expect.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	expect.NoError(t, os.Symlink("/dev/zero", filepath.Join(dir, "zero")))
	expect.NoError(t, os.Mkdir(filepath.Join(dir, ".git"), 0o700))
	written(t, dir, ".git/config", known)
	got := expect.Value(text.Read(t.Context(), []string{dir}, text.Options{}))(t)
	problems := map[string]string{}
	for _, text := range got.Facts.Texts {
		problems[text.Name] = text.Problem
	}
	want := map[string]string{"a.log": "", "core": "binary data", "fifo": "not a regular file", "zero": "not a regular file"}
	expect.That(t, fmt.Sprint(problems) == fmt.Sprint(want), "got %v, want %v", problems, want)
}

// TestReadFolders checks that the files of several folders are known by their paths, so that
// two of the same name are distinct and a person finds them.
func TestReadFolders(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"one/job.log", "two/job.log", "two/more/job.log", "job.log"} {
		expect.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		expect.NoError(t, os.WriteFile(name, []byte(known), 0o600))
	}
	for want, from := range map[string][]string{
		"one/job.log two/job.log two/more/job.log": {"one", "two/"},
		"job.log one/job.log":                      {"job.log", "./one"},
		"job.log more/job.log":                     {"two"},
	} {
		got := expect.Value(text.Read(t.Context(), from, text.Options{}))(t)
		names := expect.Map(got.Facts.Texts, func(text facts.Text) string { return text.Name })
		expect.That(t, strings.Join(names, " ") == want, "%v: %v, want %s", from, names, want)
	}
}

// endless gives the same bytes for ever, and counts them.
type endless struct {
	line []byte
	at   int
	left int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) && e.left > 0 {
		c := copy(p[n:], e.line[e.at:])
		e.at = (e.at + c) % len(e.line)
		n += c
		e.left -= int64(c)
	}
	return n, nil
}

// TestLongLine checks that a line without an end is cut, takes little memory, and that the lines after it are read.
func TestLongLine(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := io.MultiReader(strings.NewReader("first\n"), &endless{line: []byte("no end "), left: 256 << 20}, strings.NewReader("\n"+known))
	got := expect.Value(text.Read(t.Context(), []string{"-"}, text.Options{Stdin: r}))(t)
	runtime.ReadMemStats(&after)
	m := got.Facts.Logs.Messages
	expect.That(t, len(m) == 1 && m[0].Line == 3, "got %+v", m)
	grown := after.Sys - before.Sys
	expect.That(t, after.Sys <= before.Sys || grown <= 100<<20, "took %d MiB", grown>>20)
}

// TestReadStops checks that an endless pipe is given up when it is asked to be.
func TestReadStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &endless{line: []byte("y\n"), left: 1 << 62}
	go cancel()
	expect.Fails(text.Read(ctx, []string{"-"}, text.Options{Stdin: r}))(t, context.Canceled, "it")
}

// TestRecordingAmongTexts checks that a machine's own facts stay, and that what a log tells of a job is added.
func TestRecordingAmongTexts(t *testing.T) {
	dir := filepath.Dir(written(t, t.TempDir(), "job.log", known))
	written(t, dir, "facts.json", `{"schema": "gpudoctor.facts/v1", "host": {"kernel": "6.8"}}`)
	got := expect.Value(text.Read(t.Context(), []string{dir}, text.Options{}))(t)
	expect.That(t, got.Recording == "facts.json" && got.Facts.Host != nil && got.Facts.Host.Kernel == "6.8" && got.Facts.Logs != nil && len(got.Facts.Texts) == 1, "got %+v", got)
}

func TestJoinEnv(t *testing.T) {
	v := func(name, value string) facts.Variable {
		return facts.Variable{Name: name, Value: value, Effective: true}
	}
	got := text.Join(&facts.Facts{Env: &facts.EnvFacts{Variables: []facts.Variable{v("NCCL_DEBUG", "INFO")}}},
		&facts.Facts{Env: &facts.EnvFacts{Variables: []facts.Variable{v("NCCL_DEBUG", "WARN"), v("NCCL_ALGO", "Tree")}}})
	list := expect.Map(got.Env.Variables, func(v facts.Variable) string { return fmt.Sprintf("%s=%s %t", v.Name, v.Value, v.Effective) })
	expect.NoDiff(t, []string{"NCCL_ALGO=Tree true", "NCCL_DEBUG=INFO true", "NCCL_DEBUG=WARN false"}, list, "variables")
}

// TestOverwrittenLine checks that what a program says is heard where a progress bar took its place on the screen.
func TestOverwrittenLine(t *testing.T) {
	said := strings.TrimSuffix(known, "\n")
	for _, text := range []string{
		"first\n" + said + "\r" + progress + "\nlast\n",
		"first\n" + strings.Repeat(progress, 2000) + said + "\r" + strings.Repeat(progress, 2000) + "\nlast\n",
	} {
		f := texttest.Parse("a.log", text)
		expect.That(t, f.Logs != nil && len(f.Logs.Messages) == 1 && f.Logs.Messages[0].Line == 2, "got %+v", f.Logs)
	}
}

// TestCutLines checks, for lines around the bound and in all forms of their ends, that
// a line of which a part was not read is reported, with how much, and no other.
func TestCutLines(t *testing.T) {
	for _, over := range []int{-1, 0, 1, 1000, parse.ChunkBytes, 2*parse.ChunkBytes + 7} {
		for _, end := range []string{"\n", "\r\n", "\r", ""} {
			for _, count := range []int{1, 3} {
				if end == "" && count > 1 {
					continue
				}
				text := strings.Repeat(strings.Repeat("x", parse.MaxLine+over)+end, count) + strings.Repeat(known, min(len(end), 1))
				got := texttest.Parse("a.log", text).Texts[0]
				want := ""
				if over > 0 {
					want = fmt.Sprintf("%d of its lines are longer than 64 KiB: %s of them were not read", count, parse.Size(int64(count*over)))
				}
				expect.That(t, got.Problem == want && (got.Unread == facts.UnreadLines) == (over > 0), "%d bytes more, end %q, %d times: %q, want %q", over, end, count, got.Problem, want)
				expect.That(t, got.Bytes == int64(len(text)), "%d bytes more, end %q: %d bytes, want %d", over, end, got.Bytes, len(text))
			}
		}
	}
}

// TestTextAfterRecording checks that what follows the end of a recording is the same wherever the recording comes from:
// blank lines are nothing, and anything else is one line that names the place.
func TestTextAfterRecording(t *testing.T) {
	const recording = "gpudoctor.snapshot/v1\nrecorded by gpudoctor 1\nunlisted: not-recorded\n-- proc/cmdline --\nquiet\n-- !end --\n"
	for trailer, wrong := range map[string]bool{"": false, "\n": false, "\r\n \n": false, "x": true, "\n--\n": true, "-- etc/hostname --\nother\n": true, recording: true} {
		content := recording + trailer
		for _, in := range []struct {
			what  string
			path  func(dir string) string
			place string
		}{
			{"file", func(dir string) string { return written(t, dir, "a.txtar", content) }, "a.txtar"},
			{"folder", func(dir string) string { written(t, dir, "a.txtar", content); return dir }, "a.txtar"},
			{"standard input", func(string) string { return "-" }, "standard input"},
			{"zip", func(dir string) string { return written(t, dir, "a.zip", string(zipped(t, "a.txtar", content))) }, "a.txtar"},
			{"tar", func(dir string) string { return written(t, dir, "a.tar", string(tarred(t, "a.txtar", content))) }, "a.txtar"},
			{"gzip", func(dir string) string { return written(t, dir, "a.txtar.gz", string(checktest.Gzip([]byte(content)))) }, "a.txtar"},
		} {
			result, err := text.Read(t.Context(), []string{in.path(t.TempDir())}, text.Options{Stdin: strings.NewReader(content)})
			switch want := in.place + ":6: text after the end of the recording"; {
			case !wrong && (err != nil || result.Facts == nil || result.Facts.Host == nil):
				t.Errorf("%s, %q: %v", in.what, trailer, err)
			case wrong && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")):
				t.Errorf("%s, %q: got %v, want %q", in.what, trailer, err, want)
			}
		}
	}
}

func written(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	expect.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
