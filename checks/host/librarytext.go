package host

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

const (
	maxLibrary  = 1 << 30     // NCCL 2.28 has 0.4 GB.
	libraryTime = time.Second // A cold file is given up, not waited for.
	libraryPart = 1 << 20     // Read at a time.
	textLength  = len("NCCL version ") + 32
)

// versionText is what NCCL and RCCL hold (VERSION_STRING, NCCL src/init.cc), and the plugin for libfabric (PACKAGE_STRING, aws-
// ofi-nccl src/nccl_ofi_net.c).
var (
	versionText = lazy.New(`[NR]CCL version [0-9]{1,3}(?:\.[0-9]{1,5}){1,3}(?:\+(?:cuda|hip)[0-9]{1,2}\.[0-9]{1,2})?|aws-ofi-nccl [0-9]{1,3}(?:\.[0-9]{1,5}){1,3}`)
	fixedTexts  = [][]byte{[]byte("CCL version "), []byte("aws-ofi-nccl ")}
)

func libraryText(name string) (string, error) {
	f, err := open(name, regular)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // It was only read.
	return findText(io.LimitReader(f, maxLibrary), time.Now().Add(libraryTime))
}

// findText searches part by part, until a time.
func findText(r io.Reader, until time.Time) (string, error) {
	var found TextFinder
	part := make([]byte, libraryPart)
	for time.Now().Before(until) {
		n, err := io.ReadFull(r, part)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return "", err
		}
		_, _ = found.Write(part[:n]) // It never fails.
		if last || found.text != "" {
			return found.Text(), nil
		}
	}
	return "", ErrSlow
}

// TextFinder searches what is written to it for the text in which a library states its version.
type TextFinder struct {
	end  []byte // The end of what was written: between two calls at most textLength bytes.
	text string
}

func (t *TextFinder) Write(part []byte) (int, error) {
	if t.text == "" {
		t.end = append(t.end, part...)
		t.search(false)
		t.end = t.end[:copy(t.end, t.end[max(0, len(t.end)-textLength):])]
	}
	return len(part), nil
}

// Text returns the first text, or an empty string, when all parts were written.
func (t *TextFinder) Text() string {
	t.search(true)
	return t.text
}

// search looks for the pattern only behind a fixed part of it, which is ten times as fast. A text that may go on is left.
func (t *TextFinder) search(last bool) {
	for _, fixed := range fixedTexts {
		for rest := t.end; t.text == ""; {
			i := bytes.Index(rest, fixed)
			if i < 0 {
				break
			}
			if m := versionText.Get().Find(rest[max(0, i-1):min(len(rest), i+textLength)]); m != nil && (last || i+textLength <= len(rest)) {
				t.text = string(m)
			}
			rest = rest[i+1:]
		}
	}
}
