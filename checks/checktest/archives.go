package checktest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// Entry is a file, a link or a folder.
type Entry struct {
	// Path is relative to the root.
	Path string
	Data []byte
	// Link is the target of a link.
	Link string
	Dir  bool
}

// SplitRecording takes from a recording what files of /sys, /proc and /etc/os-release can express. rest is
// the recording with the same content.
func SplitRecording(t *testing.T, recording []byte) (entries []Entry, rest []byte) {
	t.Helper()
	archive := txtar.Parse(recording)
	if !bytes.Contains(archive.Comment, []byte("\nunlisted: not-recorded\n")) { // One written by hand.
		head, more, _ := bytes.Cut(archive.Comment, []byte("\n"))
		archive.Comment = slices.Concat(head, []byte("\nunlisted: not-recorded\n"), more)
	}
	whole := expect.Value(host.Parse("recording", recording))(t)
	kept := []txtar.File{}
	for _, f := range archive.Files {
		name, attributes, _ := strings.Cut(f.Name, " ")
		if !strings.HasPrefix(name, "sys/") && !strings.HasPrefix(name, "proc/") && name != "etc/os-release" || strings.Contains(attributes, "!") {
			continue
		}
		if strings.HasPrefix(name, "proc/") && attributes == "" && !strings.HasSuffix(name, "/") && len(f.Data) == 0 {
			continue // In an archive it may as well be one that could not be read.
		}
		e := Entry{Path: strings.TrimSuffix(name, "/")}
		switch target, isLink := strings.CutPrefix(attributes, "-> "); {
		case isLink:
			e.Link = target
		case strings.HasPrefix(attributes, "stat "):
			if !strings.HasPrefix(attributes, "stat d") {
				continue
			}
			e.Dir = true
		case strings.HasSuffix(name, "/"):
			e.Dir = true
			for line := range strings.Lines(string(f.Data)) {
				entries = append(entries, Entry{Path: name + strings.TrimSpace(line), Dir: true})
			}
		default:
			e.Data = expect.Value(whole.ReadFile("/"+name, host.MaxFile))(t)
		}
		entries, kept = append(entries, e), append(kept, f)
	}
	return inPlace(t, entries), txtar.Format(&txtar.Archive{Comment: archive.Comment, Files: append(kept, txtar.File{Name: "!end"})})
}

// inPlace gives each entry its real path, and leaves out folders of which more is known.
func inPlace(t *testing.T, entries []Entry) []Entry {
	t.Helper()
	links := map[string]string{}
	for _, e := range entries {
		if e.Link != "" {
			links["/"+e.Path] = e.Link
		}
	}
	known := map[string]Entry{}
	for _, e := range entries {
		folder := expect.Value(host.Follow("/"+path.Dir(e.Path), func(at string, _ []string) (string, bool, error) { return links[at], links[at] != "", nil }))(t)
		e.Path = strings.TrimPrefix(path.Join(folder, path.Base(e.Path)), "/")
		if before, ok := known[e.Path]; !ok || before.Dir {
			known[e.Path] = e
		}
	}
	return slices.SortedFunc(maps.Values(known), func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
}

// WriteFolder writes the entries below a folder.
func WriteFolder(t *testing.T, root string, entries []Entry) {
	t.Helper()
	for _, e := range entries {
		at := filepath.Join(root, e.Path)
		expect.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
		switch {
		case e.Dir:
			expect.NoError(t, os.MkdirAll(at, 0o700))
		case e.Link != "":
			expect.NoError(t, os.Symlink(e.Link, at))
		default:
			expect.NoError(t, os.WriteFile(at, e.Data, 0o600))
		}
	}
}

// Tar returns the entries below a folder as an archive. As GNU tar does, it gives files of /sys
// the size of a page.
func Tar(t *testing.T, root string, entries []Entry) []byte {
	t.Helper()
	const page = 4096
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		head := &tar.Header{Name: path.Join(root, e.Path), Mode: 0o444, Size: int64(len(e.Data))}
		switch {
		case e.Dir:
			head.Typeflag, head.Name = tar.TypeDir, head.Name+"/"
		case e.Link != "":
			head.Typeflag, head.Linkname = tar.TypeSymlink, e.Link
		case strings.HasPrefix(e.Path, "sys/") && path.Base(e.Path) != "config":
			e.Data = append(slices.Clone(e.Data), make([]byte, page-len(e.Data))...)
			head.Size = page
		}
		expect.NoError(t, w.WriteHeader(head))
		expect.Value(w.Write(e.Data))(t)
	}
	expect.NoError(t, w.Close())
	return b.Bytes()
}

// Gzip compresses what it is given.
func Gzip(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	if err = errors.Join(err, w.Close()); err != nil {
		panic(err) // It writes to memory.
	}
	return b.Bytes()
}

// Zip returns the entries below a folder as an archive.
func Zip(t *testing.T, root string, entries []Entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		head := &zip.FileHeader{Name: path.Join(root, e.Path), Method: zip.Deflate}
		switch {
		case e.Dir:
			head.Name += "/"
		case e.Link != "":
			head.SetMode(fs.ModeSymlink | 0o777)
			e.Data = []byte(e.Link)
		}
		expect.Value(expect.Value(w.CreateHeader(head))(t).Write(e.Data))(t)
	}
	expect.NoError(t, w.Close())
	return b.Bytes()
}
