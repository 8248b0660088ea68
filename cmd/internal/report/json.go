package report

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/gpudoctor/gpudoctor/checks/escape"
)

// writeJSON writes the document as it is, indented.
func writeJSON(b *bytes.Buffer, d *Document, _ Style) {
	raw, err := Marshal(d)
	if err != nil {
		// Every field of a document can be encoded; the values of evidence
		// and params were decoded from JSON.
		panic(fmt.Sprintf("encode report: %v", err))
	}
	b.Write(raw)
}

// Marshal encodes a value as indented JSON that is safe to show on a
// terminal: every character that does not print is escaped, which changes
// nothing for a program that decodes it.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return escape.JSON(b.Bytes()), nil
}
