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
	// Name is what --format takes.
	Name string
	// Extension is the end of a file's name that stands for it, if any; without the dot it is another name of the format.
	Extension string
	// CI is true for a format that a CI system or a monitor reads.
	CI bool

	write func(b *bytes.Buffer, d *Document, s Style)
}

var formats = []Format{
	{Name: "text", Extension: ".txt", write: writeText},
	{Name: "json", Extension: ".json", write: writeJSON},
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
	// Width is the number of columns; 0 means 100.
	Width int
	// Color adds terminal colours.
	Color bool
	// ASCII keeps to characters that every terminal has.
	ASCII bool
	// Verbose adds the evidence, the transfers and what was not judged.
	Verbose bool
	// Example names a recorded machine to point to where there is no GPU.
	Example string
	// Quiet leaves only the findings that make the exit code 1.
	Quiet bool
}

// FormatNames are the names of all formats, the default first.
func FormatNames() []string {
	return lines.Map(formats, func(f Format) string { return f.Name })
}

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
	ext := strings.ToLower(filepath.Ext(file))
	if ext == "" {
		return Format{}, false
	}
	return FormatNamed(ext[1:])
}

func (f Format) Write(w io.Writer, d *Document, s Style) error {
	var b bytes.Buffer
	f.write(&b, d, s)
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func writeJSON(b *bytes.Buffer, d *Document, _ Style) {
	Encode(b, lines.Filled(d))
}

// Encode writes a value as JSON.
func Encode(b *bytes.Buffer, v any) {
	raw, err := lines.JSON(v)
	if err != nil {
		panic(fmt.Sprintf("encode a report: %v", err)) // Every field can be encoded; values of evidence and params were decoded from JSON.
	}
	b.Write(raw)
}
