package main

import (
	"io/fs"
	"regexp"
	"testing"
	"testing/fstest"

	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// TestDigest checks that the digest differs where a name, a text or the place of a file
// does, and is the same where nothing does.
func TestDigest(t *testing.T) {
	files := func(pairs ...string) fs.FS {
		all := fstest.MapFS{}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
		}
		return all
	}
	seen := map[report.Digest]int{}
	for i, all := range [][]fs.FS{
		{files("a", "1", "b", "2")},
		{files("a", "1", "b", "3")},
		{files("a", "1", "c", "2")},
		{files("a", "12", "b", "")},
		{files("a", "1"), files("b", "2")},
		{files("d/a", "1", "b", "2")},
		{},
	} {
		digest := expect.Value(filesDigest(all...))(t)
		first, known := seen[digest]
		expect.That(t, !known, "the files of %d have the digest of %d", i, first)
		again, _ := filesDigest(all...)
		expect.That(t, again == digest, "the files of %d have the digests %s and %s", i, digest, again)
		seen[digest] = i
	}
}

// TestRulesDigest checks that each kind of file is part of the digest of the program.
func TestRulesDigest(t *testing.T) {
	digest := rulesDigest()
	expect.That(t, regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(string(digest)), "the digest is %q", digest)
	for name, files := range map[string]fs.FS{"rules": rules.Files, "tables": data.Files, "messages": message.Files, "remedies": remedies.Files} {
		n := 0
		err := fs.WalkDir(files, ".", func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				n++
			}
			return err
		})
		expect.That(t, err == nil && n >= 5, "%s: %d files, %v", name, n, err)
	}
}
