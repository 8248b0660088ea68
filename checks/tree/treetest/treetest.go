// Package treetest writes recorded machines as what people send of them: a folder or an archive
// with copies of /sys and /proc.
package treetest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/internal/machine"
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

// Split takes from a recording what files of /sys, /proc and /etc/os-release can express. rest is
// the recording with the same content.
func Split(t *testing.T, recording []byte) (entries []Entry, rest []byte) {
	t.Helper()
	archive := txtar.Parse(recording)
	if !bytes.Contains(archive.Comment, []byte("\nunlisted: not-recorded\n")) { // One written by hand.
		head, more, _ := bytes.Cut(archive.Comment, []byte("\n"))
		archive.Comment = slices.Concat(head, []byte("\nunlisted: not-recorded\n"), more)
	}
	kept := []txtar.File{}
	for _, f := range archive.Files {
		name, attributes, _ := strings.Cut(f.Name, " ")
		if !strings.HasPrefix(name, "sys/") && !strings.HasPrefix(name, "proc/") && name != "etc/os-release" || strings.Contains(attributes, "!") {
			continue
		}
		if strings.HasPrefix(name, "proc/") && attributes == "" && !strings.HasSuffix(name, "/") && len(f.Data) == 0 {
			continue // In an archive it may as well be one that could not be read.
		}
		e := Entry{Path: name, Data: f.Data}
		switch target, isLink := strings.CutPrefix(attributes, "-> "); {
		case isLink:
			e = Entry{Path: name, Link: target}
		case strings.HasPrefix(attributes, "stat "):
			if !strings.HasPrefix(attributes, "stat d") {
				continue
			}
			e = Entry{Path: name, Dir: true}
		case strings.HasSuffix(name, "/"):
			e = Entry{Path: strings.TrimSuffix(name, "/"), Dir: true}
			for line := range strings.Lines(string(f.Data)) {
				entries = append(entries, Entry{Path: name + strings.TrimSpace(line), Dir: true})
			}
		case attributes == "hex":
			e.Data = unhex(t, f.Data)
		case attributes == "no-newline":
			e.Data = bytes.TrimSuffix(f.Data, []byte("\n"))
		case attributes != "":
			t.Fatalf("a new form of entry: %s", f.Name)
		}
		entries, kept = append(entries, e), append(kept, f)
	}
	return inPlace(t, entries), txtar.Format(&txtar.Archive{Comment: archive.Comment, Files: append(kept, txtar.File{Name: "!end"})})
}

func unhex(t *testing.T, text []byte) []byte {
	t.Helper()
	var data []byte
	for word := range strings.FieldsSeq(string(text)) {
		digits, times, folded := strings.Cut(word, "*")
		part, err := hex.DecodeString(digits)
		n := 1
		if folded && err == nil {
			n, err = strconv.Atoi(times)
		}
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, bytes.Repeat(part, n)...)
	}
	return data
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
		folder, err := machine.Follow("/"+path.Dir(e.Path), func(at string, _ []string) (string, bool, error) { return links[at], links[at] != "", nil })
		if err != nil {
			t.Fatal(err)
		}
		e.Path = strings.TrimPrefix(path.Join(folder, path.Base(e.Path)), "/")
		if before, ok := known[e.Path]; !ok || before.Dir {
			known[e.Path] = e
		}
	}
	var all []Entry
	for _, e := range known {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// Folder writes the entries below a folder.
func Folder(t *testing.T, root string, entries []Entry) {
	t.Helper()
	for _, e := range entries {
		at := filepath.Join(root, e.Path)
		err := os.MkdirAll(filepath.Dir(at), 0o700)
		switch {
		case err != nil:
		case e.Dir:
			err = os.MkdirAll(at, 0o700)
		case e.Link != "":
			err = os.Symlink(e.Link, at)
		default:
			err = os.WriteFile(at, e.Data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
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
		if err := w.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Gzip compresses what it is given.
func Gzip(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
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
		data := e.Data
		switch {
		case e.Dir:
			head.Name += "/"
		case e.Link != "":
			head.SetMode(fs.ModeSymlink | 0o777)
			data = []byte(e.Link)
		}
		member, err := w.CreateHeader(head)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := member.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
