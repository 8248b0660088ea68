// Package report writes what gpudoctor found: as text for a person, as JSON
// for a program, as Markdown for a ticket. The Document is the same for all.
package report

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// Format is a form in which a report can be written.
type Format struct {
	Name      string // What --format takes.
	Extension string // The end of a file's name that stands for it, if any; without the dot it is another name of the format.
	CI        bool   // A CI system or a monitor reads it.

	write func(b *bytes.Buffer, d *Document, s Style)
}

var formats = []Format{
	{Name: "text", Extension: ".txt", write: writeText},
	{Name: "json", Extension: ".json", write: func(b *bytes.Buffer, d *Document, _ Style) { Encode(b, d) }},
	{Name: "markdown", Extension: ".md", write: writeMarkdown},
	{Name: "html", Extension: ".html", write: writeHTML},
	{Name: "sarif", Extension: ".sarif", CI: true, write: forCI(writeSARIF)},
	{Name: "junit", Extension: ".xml", CI: true, write: forCI(writeJUnit)},
	{Name: "github", CI: true, write: forCI(writeGitHub)},
	{Name: "gitlab", CI: true, write: forCI(writeGitLab)},
	{Name: "prometheus", Extension: ".prom", CI: true, write: forCI(writePrometheus)},
}

// Style says how a report is laid out. Only the text format heeds all of it.
type Style struct {
	Width   int    // In columns; 0 means 100.
	Color   bool   // With colours of the terminal.
	ASCII   bool   // Only characters that every terminal has.
	Verbose bool   // With the evidence, the transfers and what was not judged.
	Example string // A recorded machine to point to where there is no GPU.
	Quiet   bool   // Only the findings that make the exit code 1.
}

// FormatNames are the names of all formats, the default first.
func FormatNames() []string { return lines.Map(formats, func(f Format) string { return f.Name }) }

// Extensions are the file name ends that stand for a format.
func Extensions() []string {
	return lines.NonEmpty(lines.Map(formats, func(f Format) string { return f.Extension })...)
}

// FormatNamed finds a format by its name, or its extension without the dot.
func FormatNamed(name string) (Format, bool) {
	for _, f := range formats {
		if f.Name == name || f.Extension == "."+name && name != "" {
			return f, true
		}
	}
	return Format{}, false
}

// FormatOf finds the format whose name or extension a file's name ends with.
func FormatOf(file string) (Format, bool) {
	_, ext, _ := strings.Cut(strings.ToLower(filepath.Ext(file)), ".")
	return FormatNamed(ext)
}

func (f Format) Write(w io.Writer, d *Document, s Style) error {
	var b bytes.Buffer
	f.write(&b, d, s)
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Encode writes a value as JSON, in which no list is null.
func Encode[T any](b *bytes.Buffer, v T) {
	if err := lines.WriteJSON(b, lines.Filled(v)); err != nil {
		panic(fmt.Sprintf("encode a report: %v", err)) // Every field can be encoded; values of evidence and params were decoded from JSON.
	}
}
