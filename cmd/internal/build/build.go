// Package build says what the program was built from.
package build

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"runtime/debug"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// Digest is the beginning of a SHA-256 sum, in hexadecimal digits.
type Digest string

// digestDigits is how many digits of the digest are shown: those of a commit.
const digestDigits = 12

// RulesDigest is the digest of what gpudoctor judges by: the built-in rules, their tables,
// the messages of programs and the remedies.
var RulesDigest = sync.OnceValue(func() Digest {
	digest, err := digestOf(rules.Files(), data.Files(), message.Files(), remedies.Files())
	if err != nil {
		panic(err) // The files are part of the program.
	}
	return digest
})

// digestOf is the digest of all files, by name and content. Of packed ones the archive has
// the checksums: unpacking them would take a quarter of the time of a start.
func digestOf(all ...fs.FS) (Digest, error) {
	sum := sha256.New()
	for i, files := range all {
		if archive, ok := files.(*zip.Reader); ok {
			for _, f := range archive.File {
				sum.Write(fmt.Appendf(nil, "%d %q %d %x\n", i, f.Name, f.UncompressedSize64, f.CRC32))
			}
			continue
		}
		err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(files, name)
			sum.Write(fmt.Appendf(nil, "%d %q %d\n", i, name, len(text))) // It never fails (hash.Hash).
			sum.Write(text)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return Digest(hex.EncodeToString(sum.Sum(nil))[:digestDigits]), nil
}

// Revision is the commit that the program was built from, if the toolchain
// noted it, else empty.
func Revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			commit = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + changed
}
