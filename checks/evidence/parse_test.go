package evidence

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
)

// Parse reads one text that is held in memory. It is what tests use.
func Parse(name, text string) *facts.Facts {
	r := registry.newReading()
	readText(r, name, text)
	return r.finish()
}

// readText reads one text from memory.
func readText(r *reading, name, text string) {
	r.read(context.Background(), name, strings.NewReader(text)) //nolint:errcheck // Memory gives no error.
}

// everyText is each text of fixtures/texts, and one of all examples of messages.
func everyText(tb testing.TB) map[string]string {
	tb.Helper()
	all := map[string]string{}
	paths, err := filepath.Glob("../../fixtures/texts/*.txtar")
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no texts: %v", err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		for _, f := range txtar.Parse(raw).Files {
			all[filepath.Base(path)+":"+f.Name] = string(f.Data)
		}
	}
	var b strings.Builder
	for _, s := range message.Statements() {
		for _, example := range s.Examples {
			b.WriteString(strings.ReplaceAll(example, "\n", " ") + "\n")
		}
	}
	all["messages"] = b.String()
	return all
}

func indented(tb testing.TB, f *facts.Facts) string {
	tb.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", " ")
	if err := e.Encode(f); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// difference is the first line in which two texts differ.
func difference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return fmt.Sprintf("line %d: %q, want %q", i+1, as[i], bs[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(as), len(bs))
}
