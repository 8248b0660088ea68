package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
)

// What --policy takes, for hints.
const takesPolicy = "--policy takes a folder with rules (*.rego) or remedies (*.yaml)"

// checkPolicy refuses what is no folder of rules or remedies: a policy that is left out unnoticed would let
// things pass.
func checkPolicy(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return complaint.Hinted(fmt.Errorf("--policy %s: %s", dir, complaint.Reason(err, "folder")), takesPolicy)
	case !info.IsDir():
		return complaint.Hinted(fmt.Errorf("--policy %s: not a folder", dir), takesPolicy)
	}
	found, err := holdsPolicy(os.DirFS(dir))
	switch {
	case err != nil:
		place := dir
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			place = filepath.Join(dir, filepath.FromSlash(at.Path))
		}
		return complaint.Hinted(fmt.Errorf("--policy %s: %s", place, complaint.Reason(err, "file")), "gpudoctor reads the whole folder", takesPolicy)
	case !found:
		return complaint.Hinted(fmt.Errorf("--policy %s: the folder contains no rules or remedies", dir), takesPolicy)
	}
	return nil
}

// holdsPolicy reports whether a folder holds a rule or a remedy. What is hidden
// and tests of rules are no part of a policy (rules.ReadPolicy).
func holdsPolicy(fsys fs.FS) (bool, error) {
	found := false
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch ext := path.Ext(name); {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir():
		case ext == ".yaml", ext == ".rego" && !strings.HasSuffix(name, "_test.rego"):
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found, err
}
