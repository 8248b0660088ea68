package evidence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks"
)

// Read examines files and folders, and returns the facts that their texts
// tell.
func Read(paths ...string) (*checks.Facts, error) {
	r := newReading()
	for _, path := range paths {
		err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			raw, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			shown, err := filepath.Rel(path, name)
			if err != nil || shown == "." {
				shown = name
			}
			r.text(shown, raw)
			return nil
		})
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("%s: no such file", path)
			}
			return nil, err
		}
	}
	if len(r.sink.Facts.Texts) == 0 {
		return nil, fmt.Errorf("%s: no file in it", strings.Join(paths, ", "))
	}
	return r.finish(), nil
}
