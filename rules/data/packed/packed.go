// Package packed reads the files that are part of the program in packed form, which keeps the
// program small: what tests make of the rules and tables (make update).
package packed

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
)

// Open opens an archive that is part of the program.
func Open(archive string) fs.FS {
	r, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		panic(fmt.Sprintf("read a packed file: %v", err)) // A test holds that it can be read.
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
