// Package texttest is what the tests of the packages under checks/text share.
package texttest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// Parse reads one text that is held in memory, as every kind.
func Parse(name, content string) *facts.Facts {
	r := text.NewReading()
	Text(r, name, content)
	return r.Finish()
}

// Sections is Parse with an empty section for each of which the text says nothing.
func Sections(name, content string) *facts.Facts {
	f := Parse(name, content)
	for i, v := 0, reflect.ValueOf(f).Elem(); i < v.NumField(); i++ {
		if section := v.Field(i); section.Kind() == reflect.Pointer && section.IsNil() {
			section.Set(reflect.New(section.Type().Elem()))
		}
	}
	return f
}

// First is the first message of a text, an empty one where it holds none.
func First(name, content string) facts.Message {
	return append(Sections(name, content).Logs.Messages, facts.Message{})[0]
}

// Text reads one text from memory.
func Text(r *parse.Reading, name, content string) {
	r.Read(context.Background(), name, strings.NewReader(content)) //nolint:errcheck // Memory gives no error.
}

// Root is the path of the repository's root from the folder of the test that runs.
func Root(tb testing.TB) string {
	tb.Helper()
	root := "."
	for range 8 {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return root
		}
		root = filepath.Join("..", root)
	}
	tb.Fatal("no go.mod in any folder above")
	return ""
}

// EveryText is each text of fixtures/texts, and one of all examples of messages.
func EveryText(tb testing.TB) map[string]string {
	tb.Helper()
	all := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(Root(tb), "fixtures/texts/*.txtar"))
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

// Indented is the facts as JSON.
func Indented(tb testing.TB, f *facts.Facts) string {
	tb.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", " ")
	if err := e.Encode(f); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

//go:embed samples.txtar
var samples []byte

// Samples are the texts that several packages read.
var Samples = txtar.Parse(samples).Files

var (
	// LspciVerbose is a root port and a GPU below it, from lspci -vvv.
	LspciVerbose = string(Samples[0].Data)
	// NvsmiTableText is nvidia-smi's table.
	NvsmiTableText = string(Samples[1].Data)
	// NCCLTestsTable is the output of all_reduce_perf.
	NCCLTestsTable = string(Samples[2].Data)
)

// PCIDevice returns a PCI function of a text's facts.
func PCIDevice(t *testing.T, f *facts.Facts, address string) facts.PCIDevice {
	t.Helper()
	if f.PCI != nil {
		for _, d := range f.PCI.Devices {
			if d.Address == address {
				return d
			}
		}
	}
	t.Fatalf("no function %s in %+v", address, f.PCI)
	return facts.PCIDevice{}
}
