package main

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
)

// standardOutput remembers that it could not be written to: some of what writes
// to it, such as the help, does not tell.
type standardOutput struct {
	io.Writer
	err error
}

// stdoutError is a write to standard output that failed. It is reported once, at
// the end.
type stdoutError struct{ error }

func (e stdoutError) Unwrap() error { return e.error }

func (s *standardOutput) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, stdoutError{s.err} // What follows a gap is of no use.
	}
	n, err := s.Writer.Write(p)
	if err != nil {
		s.err = err
		return n, stdoutError{err}
	}
	return n, nil
}

// failure is why standard output could not be written to. A reader that has gone
// has seen what it asked for.
func (s *standardOutput) failure() error {
	switch {
	case s.err == nil, errors.Is(s.err, syscall.EPIPE), errors.Is(s.err, io.ErrClosedPipe):
		return nil
	case errors.Is(s.err, syscall.EBADF):
		return complaint.Hinted(errors.New("write standard output: it is closed"), "redirect it to a file; check -o FILE writes a report to one")
	}
	return complaint.Hinted(fmt.Errorf("write standard output: %s", complaint.Reason(s.err, "file")), "what was written to it is incomplete")
}

// toStdout writes to standard output; see standardOutput for errors of writing.
func toStdout(stdout io.Writer, write func(io.Writer) error) error {
	err := write(stdout)
	if _, ok := errors.AsType[stdoutError](err); ok {
		return nil
	}
	return err
}

// plain is the writer below: for its properties, and for remarks.
func plain(stdout io.Writer) io.Writer {
	if s, ok := stdout.(*standardOutput); ok {
		return s.Writer
	}
	return stdout
}
