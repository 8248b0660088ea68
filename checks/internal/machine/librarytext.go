package machine

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Bounds of the search in a library.
const (
	maxLibrary  = 1 << 30     // NCCL 2.28 has 0.4 GB.
	libraryTime = time.Second // A cold file is given up, not waited for.
	libraryPart = 1 << 20     // Read at a time.
	textLength  = len("NCCL version ") + 32
)

// versionText is what NCCL and RCCL hold: "NCCL version 2.28.9+cuda13.0"
// (VERSION_STRING, NCCL src/init.cc).
var versionText = lazy.New(`[NR]CCL version [0-9]{1,3}(?:\.[0-9]{1,5}){1,3}`)

// libraryText returns the text in a library that states its version.
func libraryText(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // It was only read.
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, errNotRegular)
	}
	return findText(io.LimitReader(f, maxLibrary), time.Now().Add(libraryTime))
}

var errNotRegular = errors.New("not a regular file")

// findText searches part by part; the end of one stands before the next, so
// that a text that lies across both is found.
func findText(r io.Reader, until time.Time) (string, error) {
	buf := make([]byte, textLength+libraryPart)
	kept := 0
	for time.Now().Before(until) {
		n, err := io.ReadFull(r, buf[kept:kept+libraryPart])
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return "", err
		}
		seen := buf[:kept+n]
		// The pattern is searched for only where its fixed part occurs: that is
		// ten times as fast.
		for rest := seen; ; {
			i := bytes.Index(rest, []byte("CCL version "))
			if i < 0 {
				break
			}
			if m := versionText.Find(rest[max(0, i-1):min(len(rest), i+textLength)]); m != nil && (last || i+textLength <= len(rest)) {
				return string(m), nil
			}
			rest = rest[i+1:]
		}
		if last {
			return "", nil
		}
		kept = copy(buf, seen[max(0, len(seen)-textLength):])
	}
	return "", ErrSlow
}
