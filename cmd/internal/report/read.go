package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// ErrNewer is returned for a report that only a newer gpudoctor understands.
var ErrNewer = errors.New("a newer gpudoctor wrote it")

// reportHead is how a report in JSON begins: its first field is the schema.
var reportHead = lazy.New(`^\s*\{\s*"schema"\s*:\s*"gpudoctor\.report/`)

// IsReport reports whether a file that begins so is a report in JSON.
func IsReport(head []byte) bool { return reportHead.Match(head) }

// Read decodes a report in JSON. Fields that it does not know are ignored: new optional
// ones may come at any time.
func Read(name string, data []byte) (*Document, error) {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if head.Schema != Schema {
		return nil, fmt.Errorf("read %s: %w: its schema is %q, and this one reads %q", name, ErrNewer, head.Schema, Schema)
	}
	d := &Document{}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(d); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return d, nil
}

// Facts are what the report was made of; nil where it was read from a file.
func (d *Document) Facts() *facts.Facts { return d.facts }

// Inline escapes a text for a line of Markdown.
func Inline(s string) string { return inline(s) }
