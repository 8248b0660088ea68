package patch

import (
	"io/fs"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/files"
)

// Overlay is this machine's file system, in which one file has another text.
type Overlay struct {
	files.OS
	// Name is the file's name as it is asked for, Text what is in it.
	Name, Text string
}

// Open opens a file.
func (o Overlay) Open(name string) (files.File, error) {
	if name != o.Name {
		return o.OS.Open(name)
	}
	info, err := o.Stat(name)
	if err != nil {
		return nil, err
	}
	return overlaid{info, strings.NewReader(o.Text)}, nil
}

// overlaid is a file with another text.
type overlaid struct {
	fs.FileInfo
	*strings.Reader
}

// Size is that of the other text.
func (o overlaid) Size() int64 { return o.Reader.Size() }

// Stat describes the file.
func (o overlaid) Stat() (fs.FileInfo, error) { return o, nil }

// Close does nothing.
func (overlaid) Close() error { return nil }
