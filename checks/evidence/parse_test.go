package evidence

import (
	"bytes"
	"context"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// Parse reads one text that is held in memory. It is what tests use.
func Parse(name, text string) *facts.Facts {
	r := newReading()
	r.text(name, []byte(text))
	return r.finish()
}

// text reads one text from memory.
func (r *reading) text(name string, data []byte) {
	r.read(context.Background(), name, bytes.NewReader(data)) //nolint:errcheck // Memory gives no error.
}
