package lines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/gpudoctor/gpudoctor/checks/escape"
)

// JSON encodes a value as indented JSON that is safe to show on a
// terminal: every character that does not print is escaped, which changes
// nothing for a program that decodes it.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return escape.JSON(b.Bytes()), nil
}

// WriteJSON writes a value as JSON.
func WriteJSON(w io.Writer, v any) error {
	raw, err := JSON(v)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = w.Write(raw)
	return err
}
