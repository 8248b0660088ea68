package compare

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
)

// ErrNewer is returned for a report that only a newer gpudoctor understands.
var ErrNewer = errors.New("a newer gpudoctor wrote it")

// reportHead is how a report in JSON begins: its first field is the schema.
var reportHead = lazy.New(`^\s*\{\s*"schema"\s*:\s*"gpudoctor\.report/`)

// IsReport reports whether a file that begins so is a report in JSON.
func IsReport(head []byte) bool { return reportHead.Get().Match(head) }

// ReadReport decodes a report in JSON. Fields that it does not know are ignored: new optional
// ones may come at any time.
func ReadReport(name string, data []byte) (*report.Document, error) {
	d := &report.Document{}
	err := json.Unmarshal(data, d)
	_, isJSON := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case (err == nil || isJSON) && d.Schema != report.Schema:
		return nil, fmt.Errorf("read %s: %w: its schema is %q, and this one reads %q", name, ErrNewer, d.Schema, report.Schema)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return d, nil
}
