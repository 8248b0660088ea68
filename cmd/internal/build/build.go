// Package build says what the program was built from.
package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"runtime/debug"
	"strings"
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
	digest, err := digestOf(rules.Files, data.Files, message.Files, remedies.Files)
	if err != nil {
		panic(err) // The files are part of the program.
	}
	return digest
})

// digestOf is the digest of all files but Rego tests, by name and content.
func digestOf(all ...fs.FS) (Digest, error) {
	sum := sha256.New()
	for i, files := range all {
		err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.rego") {
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
