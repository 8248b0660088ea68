package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
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
	return escapeJSON(b.Bytes()), nil
}

// escapeJSON escapes the characters of encoded JSON that do not print. Such
// characters stand in strings alone; outside of them JSON is ASCII.
func escapeJSON(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		switch {
		case r == '\n' || strconv.IsPrint(r):
			out = append(out, raw[i:i+n]...)
		case r > 0xffff:
			hi, lo := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += n
	}
	return out
}
