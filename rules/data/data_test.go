package data

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestTables reads each table: its type knows all that it says.
func TestTables(t *testing.T) {
	for name, table := range tables {
		err := read(name, table.empty())
		expect.That(t, err == nil, "%s: %v", name, err)
	}
}

// TestFiles checks that each YAML file is a table.
func TestFiles(t *testing.T) {
	names := expect.Value(filepath.Glob("*.yaml"))(t)
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], ".yaml")
	}
	if !slices.Equal(names, Names()) {
		t.Errorf("files of tables: %v, want %v", names, Names())
	}
	expect.That(t, Table("no-table") == nil, "there is a table called no-table")
}

// checkSources checks that a row, or a table, says where it is from.
func checkSources(t *testing.T, of string, sources ...string) {
	t.Helper()
	expect.That(t, len(sources) > 0, "%s: no source", of)
	for _, source := range sources {
		u, err := url.Parse(source)
		expect.That(t, err == nil && u.Scheme == "https" && u.Host != "", "%s: the source %q is no https address", of, source)
	}
}
