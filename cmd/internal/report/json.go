package report

import (
	"bytes"
	"fmt"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// writeJSON writes the document as it is, indented.
func writeJSON(b *bytes.Buffer, d *Document, _ Style) {
	raw, err := lines.JSON(d)
	if err != nil {
		// Every field of a document can be encoded; the values of evidence
		// and params were decoded from JSON.
		panic(fmt.Sprintf("encode report: %v", err))
	}
	b.Write(raw)
}
