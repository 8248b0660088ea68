package report

import (
	"bytes"
	"fmt"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// writeJSON writes the document as it is, indented.
func writeJSON(b *bytes.Buffer, d *Document, _ Style) {
	Encode(b, d)
}

// Encode writes a value as JSON.
func Encode(b *bytes.Buffer, v any) {
	raw, err := lines.JSON(v)
	if err != nil {
		// Every field of a document can be encoded; the values of evidence
		// and params were decoded from JSON.
		panic(fmt.Sprintf("encode a report: %v", err))
	}
	b.Write(raw)
}
