// Package packed reads the files that are part of the program in packed form, which keeps the
// program small: what tests make of the rules and tables (make update).
package packed

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Open opens a zip archive that is part of the program.
func Open(archive string) fs.FS {
	r, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	return must(r, err)
}

// OpenWhole opens a zip archive without compression that is compressed by zstd as a whole. What
// its files have in common is there once, so that it is smaller than one with compressed files; but all
// of it is unpacked at once.
func OpenWhole(archive []byte) fs.FS {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return must(nil, err)
	}
	defer d.Close()
	raw, err := d.DecodeAll(archive, nil)
	if err != nil {
		return must(nil, err)
	}
	r, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	return must(r, err)
}

// must returns an archive. A test holds that each can be read.
func must(r *zip.Reader, err error) fs.FS {
	if err != nil {
		panic(fmt.Sprintf("read a packed file: %v", err))
	}
	return r
}

// JSON reads a file of an archive into a value.
func JSON(archive fs.FS, name string, into any) error {
	raw, err := fs.ReadFile(archive, name)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}
