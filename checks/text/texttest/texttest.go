// Package texttest is what the tests of the packages under checks/text share.
package texttest

import (
	"context"
	_ "embed"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
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

// EveryText is each text of fixtures/texts, and one of all examples of messages.
func EveryText(tb testing.TB) map[string]string {
	tb.Helper()
	all := map[string]string{}
	paths := expect.Value(filepath.Glob(filepath.Join(expect.Root(tb), "fixtures/texts/*.txtar")))(tb)
	expect.Must(tb, len(paths) > 0, "no texts")
	for _, path := range paths {
		for _, f := range expect.Value(txtar.ParseFile(path))(tb).Files {
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
	return string(expect.Value(json.MarshalIndent(f, "", " "))(tb))
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
	expect.Must(t, f.PCI != nil, "no functions")
	d := facts.Find(f.PCI.Devices, func(d *facts.PCIDevice) bool { return d.Address == address })
	expect.Must(t, d != nil, "no function %s in %+v", address, f.PCI)
	return *d
}
