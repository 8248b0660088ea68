package checktest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// SplitRecording takes from a recorded machine what files of /sys, /proc and /etc/os-release can express, at their real
// paths. rest is the recording with the same content.
func SplitRecording(tb testing.TB, name string) (files fstest.MapFS, rest []byte) {
	tb.Helper()
	recording := expect.Value(fixtures.Example(name))(tb)
	archive := txtar.Parse(recording)
	if !bytes.Contains(archive.Comment, []byte("\nunlisted: not-recorded\n")) { // One written by hand.
		head, more, _ := bytes.Cut(archive.Comment, []byte("\n"))
		archive.Comment = slices.Concat(head, []byte("\nunlisted: not-recorded\n"), more)
	}
	whole := expect.Value(host.Parse("recording", recording))(tb)
	recorded, links, kept := fstest.MapFS{}, map[string]string{}, []txtar.File{}
	for _, f := range archive.Files {
		name, attributes, _ := strings.Cut(f.Name, " ")
		if !strings.HasPrefix(name, "sys/") && !strings.HasPrefix(name, "proc/") && name != "etc/os-release" || strings.Contains(attributes, "!") {
			continue
		}
		if strings.HasPrefix(name, "proc/") && attributes == "" && !strings.HasSuffix(name, "/") && len(f.Data) == 0 {
			continue // In an archive it may as well be one that could not be read.
		}
		file := &fstest.MapFile{}
		switch target, isLink := strings.CutPrefix(attributes, "-> "); {
		case isLink:
			file.Mode, file.Data, links["/"+name] = fs.ModeSymlink, []byte(target), target
		case strings.HasPrefix(attributes, "stat "):
			if !strings.HasPrefix(attributes, "stat d") {
				continue
			}
			file.Mode = fs.ModeDir
		case strings.HasSuffix(name, "/"):
			file.Mode = fs.ModeDir
			for line := range strings.Lines(string(f.Data)) {
				recorded[name+strings.TrimSpace(line)] = cmp.Or(recorded[name+strings.TrimSpace(line)], file)
			}
		default:
			file.Data = expect.Value(whole.ReadFile("/"+name, host.MaxFile))(tb)
		}
		recorded[strings.TrimSuffix(name, "/")], kept = file, append(kept, f)
	}
	files = fstest.MapFS{}
	for name, file := range recorded {
		folder := expect.Value(host.Follow("/"+path.Dir(name), func(at string, _ []string) (string, bool, error) { return links[at], links[at] != "", nil }))(tb)
		at := strings.TrimPrefix(path.Join(folder, path.Base(name)), "/")
		if before := files[at]; before == nil || before.Mode.IsDir() { // Of others, more is known.
			files[at] = file
		}
	}
	return files, txtar.Format(&txtar.Archive{Comment: archive.Comment, Files: append(kept, txtar.File{Name: "!end"})})
}

// Rebuilt is a machine with the files that SplitRecording takes from a recorded one, without those whose path contains
// one of some words. What it does not hold does not exist.
func Rebuilt(tb testing.TB, name string, without ...string) *host.Memory {
	tb.Helper()
	files, _ := SplitRecording(tb, name)
	m := &host.Memory{}
	for at, f := range files {
		switch {
		case slices.ContainsFunc(without, func(word string) bool { return strings.Contains(at, word) }):
		case f.Mode.IsDir():
			m.AddDir(at)
		case f.Mode != 0:
			m.AddLink(at, string(f.Data))
		default:
			m.AddFile(at, f.Data)
		}
	}
	return m
}

// Tar returns files below a folder as an archive. As GNU tar does, it gives files of /sys the size of a page.
func Tar(tb testing.TB, root string, files fstest.MapFS) []byte {
	tb.Helper()
	const page = 4096
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		data := files[name].Data
		head := &tar.Header{Name: path.Join(root, name), Mode: 0o444}
		switch mode := files[name].Mode; {
		case mode.IsDir():
			head.Typeflag, head.Name = tar.TypeDir, head.Name+"/"
		case mode != 0:
			head.Typeflag, head.Linkname, data = tar.TypeSymlink, string(data), nil
		case strings.HasPrefix(name, "sys/") && path.Base(name) != "config":
			data = append(slices.Clone(data), make([]byte, page-len(data))...)
		}
		head.Size = int64(len(data))
		expect.NoError(tb, w.WriteHeader(head))
		expect.Value(w.Write(data))(tb)
	}
	expect.NoError(tb, w.Close())
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

// Zip returns files below a folder as an archive.
func Zip(t *testing.T, root string, files fstest.MapFS) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, f := range files {
		head := &zip.FileHeader{Name: path.Join(root, name), Method: zip.Deflate}
		if head.SetMode(f.Mode | 0o777); f.Mode.IsDir() {
			head.Name += "/"
		}
		expect.Value(expect.Value(w.CreateHeader(head))(t).Write(f.Data))(t)
	}
	expect.NoError(t, w.Close())
	return b.Bytes()
}
