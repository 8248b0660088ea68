package host

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"syscall"
)

// failure is an error as a recording keeps it: its text, and which of the tested errors it is.
type failure struct {
	text string
	is   error
}

func (f *failure) Error() string { return f.text }

func (f *failure) Is(target error) bool { return f.is != nil && errors.Is(f.is, target) }

// errNotExist is fs.ErrNotExist in the words of Linux, so that a recording gives the same report.
var errNotExist = &failure{text: "no such file or directory", is: fs.ErrNotExist}

// class is a kind of failure that checks distinguish.
type class struct {
	// word stands for it in a snapshot.
	word string
	// err is what errors.Is finds.
	err error
	// text is the usual one, as Linux words it.
	text string
}

// The classes, in the order in which they are tried.
var classes = []class{
	{"not-exist", fs.ErrNotExist, errNotExist.text},
	{"permission", fs.ErrPermission, "permission denied"},
	{"slow", ErrSlow, ErrSlow.Error()},
	{"not-recorded", ErrNotRecorded, ErrNotRecorded.Error()},
	{"unsupported", errors.ErrUnsupported, errors.ErrUnsupported.Error()},
	{"not-link", fs.ErrInvalid, fs.ErrInvalid.Error()},
	{"error", nil, ""},
}

// classify returns the word for an error's class, and its text where that is not the usual one.
func classify(err error) (word, text string) {
	if errors.Is(err, syscall.EINVAL) {
		err = &failure{text: err.Error(), is: fs.ErrInvalid} // The standard library does not take the one for the other.
	}
	i := slices.IndexFunc(classes, func(c class) bool { return c.err == nil || errors.Is(err, c.err) })
	if s := err.Error(); s != classes[i].text {
		text = s
	}
	return classes[i].word, text
}

// declassify turns what classify returned into an error again; nil if there is no such class.
func declassify(word, text string) error {
	i := slices.IndexFunc(classes, func(c class) bool { return c.word == word })
	if i < 0 {
		return nil
	}
	c := classes[i]
	return &failure{text: cmp.Or(text, c.text, "failed"), is: c.err}
}
