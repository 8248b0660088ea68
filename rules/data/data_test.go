package data

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/fixtures/golden"
)

// TestGoldenTables holds that each NAME.json in tables.zip is what NAME.yaml says, all of
// which the table's type knows. Run make update after a change of a table.
func TestGoldenTables(t *testing.T) {
	made := make(map[string][]byte, len(tables))
	for name, table := range tables {
		made[name+".json"] = compacted(t, name+".yaml", table.empty())
	}
	golden.Archive(t, "tables.zip", made)
}

// compacted is a table as JSON, read from its YAML file into an empty table.
func compacted(t *testing.T, file string, table any) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	raw, err := json.Marshal(document)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(table); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(table); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestFiles holds that each YAML file is a table.
func TestFiles(t *testing.T) {
	names, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], ".yaml")
	}
	if !slices.Equal(names, Names()) {
		t.Errorf("files of tables: %v, want %v", names, Names())
	}
	if Table("no-table") != nil {
		t.Error("there is a table called no-table")
	}
}

// checkSources holds that a row, or a table, says where it is from.
func checkSources(t *testing.T, of string, sources ...string) {
	t.Helper()
	if len(sources) == 0 {
		t.Errorf("%s: no source", of)
	}
	for _, source := range sources {
		if u, err := url.Parse(source); err != nil || u.Scheme != "https" || u.Host == "" {
			t.Errorf("%s: the source %q is no https address", of, source)
		}
	}
}
