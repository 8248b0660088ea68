package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	kjson "sigs.k8s.io/json"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/internal/redact"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// ErrUnrecognized is returned for a file that is neither a snapshot nor a facts file.
var ErrUnrecognized = errors.New("neither a snapshot nor a facts file")

// OpenRecording reads a snapshot or a facts file, recognized by its content. A field of facts that is not known or stands twice
// is an error.
func OpenRecording(name string, r io.Reader) (*Host, *facts.Facts, error) {
	data, err := readBounded(name, r)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case isSnapshot(data):
		h, err := ParseSnapshot(name, data)
		return h, nil, err
	case bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")):
		f, err := parseFacts(name, data)
		return nil, f, err
	}
	return nil, nil, fmt.Errorf("%s: %w", name, ErrUnrecognized)
}

// IsRecording reports whether a file that begins so means to be a snapshot or a facts file.
func IsRecording(head []byte) bool { return isSnapshot(head) || factsHead.Get().Match(head) }

// factsHead is how a facts file begins: its first field is the schema.
var factsHead = lazy.New(`^\s*\{\s*"schema"\s*:\s*"gpudoctor\.facts/`)

// WriteFacts writes a facts file that is safe to show on a terminal.
func WriteFacts(w io.Writer, f *facts.Facts) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // It is read by people, not by browsers.
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(f); err != nil {
		return fmt.Errorf("write facts: %w", err)
	}
	if _, err := w.Write(escape.JSON(b.Bytes())); err != nil {
		return fmt.Errorf("write facts: %w", err)
	}
	return nil
}

// RedactFacts returns a copy in which names, serial numbers, UUIDs, addresses and secrets are replaced by stand-ins.
func RedactFacts(f *facts.Facts) *facts.Facts { return Redact(NewRedactor(), f) }

// Redact studies a value and returns a copy of it in which all strings are redacted.
func Redact[T any](r *Redactor, v T) T {
	r.Study(v)
	return redact.Value(r, v)
}

// Redactor replaces what identifies a machine, its network or its users by stand-ins, as in snapshots.
type Redactor = redact.Redactor

// NewRedactor returns a redactor that has seen nothing yet.
func NewRedactor() *Redactor { return redact.New() }

// NewSecretsRedactor returns a redactor that replaces secrets and nothing else.
func NewSecretsRedactor() *Redactor { return redact.NewSecrets() }

func readBounded(name string, r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxSnapshot+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case len(data) > MaxSnapshot:
		return nil, fmt.Errorf("read %s: larger than %d MiB", name, MaxSnapshot>>20)
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}

func parseFacts(name string, data []byte) (*facts.Facts, error) {
	f := &facts.Facts{}
	unfit, err := kjson.UnmarshalStrict(data, f)
	if is, offset := kjson.SyntaxErrorOffset(err); is {
		return nil, fmt.Errorf("%s:%d: %w", name, lineAt(data, offset-1), err)
	}
	if err := checkSchema(f.Schema); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil, fmt.Errorf("%s:%d: %s: got %s, want %s", name, lineAt(data, wrong.Offset-1), wrong.Field, wrong.Value, wrong.Type)
	}
	if err == nil && len(unfit) > 0 {
		err = unfit[0]
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

func lineAt(data []byte, offset int64) int {
	return bytes.Count(data[:min(max(offset, 0), int64(len(data)))], []byte("\n")) + 1
}

var factsFamily = lazy.New(`^gpudoctor\.facts/v[0-9]+$`)

func checkSchema(schema string) error {
	switch {
	case schema == "":
		return fmt.Errorf("not a facts file: it has no schema; want %q", facts.FactsSchema)
	case schema == facts.FactsSchema:
		return nil
	case factsFamily.MatchString(schema):
		return fmt.Errorf("%w: its schema is %q; this version reads %q", ErrNewer, schema, facts.FactsSchema)
	}
	return fmt.Errorf("not a facts file: its schema is %.80q; want %q", schema, facts.FactsSchema)
}
