// Package complaint words what is wrong for the person who called the program, with hints on what to do about it.
package complaint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Error is an error with hints on what to do about it.
type Error struct {
	Err   error
	Hints []string
}

func (e Error) Error() string { return e.Err.Error() }

func (e Error) Unwrap() error { return e.Err }

// Hinted adds hints to an error.
func Hinted(err error, hints ...string) error { return Error{err, hints} }

// Write writes an error on one line and its hints on a line each.
func Write(w io.Writer, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "gpudoctor: %s\n", lines.Printable(err.Error(), false))
	var h Error
	for errors.As(err, &h) {
		for _, hint := range h.Hints {
			fmt.Fprintf(&b, "hint: %s\n", lines.Printable(hint, false))
		}
		err = h.Err
	}
	// If standard error is closed, the error cannot be reported.
	_, _ = io.WriteString(w, b.String())
}

// UnknownName says that there is no such command, flag or id, and which one may have been meant.
func UnknownName(kind, name string, known []string, hints ...string) error {
	return Hinted(fmt.Errorf("unknown %s %s", kind, Quote(name)), Nearest(name, known, hints...)...)
}

// Nearest puts the hint which of the known names may have been meant before other hints.
func Nearest(name string, known []string, hints ...string) []string {
	if near := rules.Nearest(name, known); near != "" {
		return append([]string{"did you mean " + near + "?"}, hints...)
	}
	return hints
}

// Quote shows a word of the command line as it is, or in quotes where it would be misread.
func Quote(word string) string {
	if q := strconv.Quote(word); word == "" || strings.ContainsAny(word, " \t") || q != `"`+word+`"` {
		return q
	}
	return word
}

// Reason says why something cannot be read, without the name of a system call. The kind is "file" or "folder".
func Reason(err error, kind string) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no such " + kind
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	}
	return Bare(err).Error()
}

// Bare is an error without the name of a system call and of a file.
func Bare(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}
