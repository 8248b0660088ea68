// Package stdio writes to standard output, and remembers whether that failed, and writes files that are never left half-written
// where that can be helped.
package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
)

// Output is standard output. It remembers that it could not be written to: some of what
// writes to it, such as the help, does not tell.
type Output struct {
	io.Writer
	err error
}

// writeError is a write to standard output that failed. It is reported once, at the end.
type writeError struct{ error }

func (e writeError) Unwrap() error { return e.error }

func (o *Output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, writeError{o.err} // What follows a gap is of no use.
	}
	n, err := o.Writer.Write(p)
	if err != nil {
		o.err = err
		return n, writeError{err}
	}
	return n, nil
}

// Failure is why standard output could not be written to. A reader that has gone has seen what it asked for.
func (o *Output) Failure() error {
	if o.err == nil || errors.Is(o.err, syscall.EPIPE) || errors.Is(o.err, io.ErrClosedPipe) {
		return nil
	}
	return complaint.Hinted(fmt.Errorf("write standard output: %s", complaint.Reason(o.err, "file")), "what was written to it is incomplete")
}

// Write writes to standard output. If that fails, Failure says so; Write returns all other errors.
func Write(stdout io.Writer, write func(io.Writer) error) error {
	err := write(stdout)
	if _, ok := errors.AsType[writeError](err); ok {
		return nil
	}
	return err
}

// WriteText does so with a text.
func WriteText(stdout io.Writer, text string) error {
	return Write(stdout, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// Plain is the writer below: for its properties, and for remarks.
func Plain(stdout io.Writer) io.Writer {
	if o, ok := stdout.(*Output); ok {
		return o.Writer
	}
	return stdout
}

// IsFile reports whether standard output is a file on a disk, which is kept and may be sent on.
func IsFile(stdout io.Writer) bool {
	f, ok := Plain(stdout).(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}
