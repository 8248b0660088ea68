package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestExtract checks that what people read is taken, each on its line, and nothing else.
func TestExtract(t *testing.T) {
	tree := fstest.MapFS{
		"a/a.go": {Data: []byte("// Package a says one.\npackage a\n\nimport \"import/path\"\n\n" +
			"/* two\nthree */\ntype t struct {\n\tf int `json:\"tag\"`\n}\n\nconst s = \"four 4\\nfive\" + `six 6\nseven` + \"name\"\n")},
		"a/a_test.go":         {Data: []byte("// Package a is left out.\npackage a\n")},
		"b.rego":              {Data: []byte("# METADATA\n# title: One\npackage b\n\n# two\nr contains sprintf(\"three %s\", [input.name]) if {\n\tinput.four == \"five 5\"\n}\n")},
		"b_test.rego":         {Data: []byte("package b_test\n")},
		"c.yaml":              {Data: []byte("# one\nkey: two\nexamples: [three]\ntext: |\n  four\n  five\nlist:\n  - six\n")},
		"d.md":                {Data: []byte("One `code` two\n```\nthree\n```\nfour\n")},
		"testdata/e.md":       {Data: []byte("left out")},
		".git/f.md":           {Data: []byte("left out")},
		"fixtures/texts/g.md": {Data: []byte("left out")},
		"h.json":              {Data: []byte(`"left out"`)},
	}
	want := map[string][]string{
		"a/a.go.txt": {"Package a says one.", "", "", "", "", "two", "three */", "", "", "", "", "four 4 five | six 6", "seven"},
		"b.rego.txt": {"METADATA", "title: One", "", "", "two", "three %s", "five 5"},
		"c.yaml.txt": {"one", "two", "", "", "four", "five", "", "six"},
		"d.md.txt":   {"One code two", "", "", "", "four"},
	}
	folder := t.TempDir()
	expect.Equal(t, len(want), expect.Value(extract(tree, folder))(t), "it")
	for name, lines := range want {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
			continue
		}
		expect.Equal(t, strings.Join(lines, "\n")+"\n", string(got), "%s", name)
	}
}

// TestExtractNames checks that a file which cannot be read is named.
func TestExtractNames(t *testing.T) {
	for name, text := range map[string]string{"a.go": "pack", "b.rego": "pack", "c.yaml": "a: [b"} {
		_, err := extract(fstest.MapFS{name: {Data: []byte(text)}}, t.TempDir())
		expect.That(t, err != nil && strings.Contains(err.Error(), "read "+name+": "), "%s: got %v", name, err)
	}
}
