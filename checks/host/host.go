// Package host gives access to the machine under examination: its files and the questions that no file answers. A live machine,
// a recorded one and one made up by a test are all Sources. It also reads and writes snapshots and facts files.
package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// Host is the machine under examination. Everything outside the process is read through it. Paths are absolute.
type Host struct {
	src Source
}

// Live returns the machine that this process runs on.
func Live() *Host { return &Host{src: newLive()} }

// New returns a host that answers from src.
func New(src Source) *Host { return &Host{src: src} }

// ParseSnapshot returns the host that a snapshot records. Errors name the place in the file.
func ParseSnapshot(name string, data []byte) (*Host, error) {
	m, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	return New(m), nil
}

// Record returns a host that answers as h does, and the recording of everything that it is asked.
func (h *Host) Record() (*Host, *Recorder) {
	r := NewRecorder(h.src)
	return New(r), r
}

// Recorded is true when the host is a recording of another machine, or of another time.
func (h *Host) Recorded() bool { return h.src.Recorded() }

// Read returns a file's content, at most MaxFile bytes of it.
func (h *Host) Read(name string) ([]byte, error) { return h.src.ReadFile(name, MaxFile) }

// ReadPart returns at most limit bytes of a file.
func (h *Host) ReadPart(name string, limit int64) ([]byte, error) { return h.src.ReadFile(name, limit) }

// Text returns a small file's content without the blanks around it.
func (h *Host) Text(name string) (string, error) {
	b, err := h.Read(name)
	return string(bytes.TrimSpace(b)), err
}

// Int returns the number that a small file holds, in any base that its prefix names.
func (h *Host) Int(name string) (int64, error) {
	s, err := h.Text(name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: not a number: %.40q", name, s)
	}
	return n, nil
}

// Dir returns the names in a folder, sorted.
func (h *Host) Dir(name string) ([]string, error) { return h.src.ReadDir(name) }

// Exists reports whether a file exists. It is an error if that cannot be determined.
func (h *Host) Exists(name string) (bool, error) {
	_, err := h.src.Stat(name)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, err
}

// Stat describes a file, symbolic links followed.
func (h *Host) Stat(name string) (FileInfo, error) { return h.src.Stat(name) }

// Link returns where a symbolic link points, as it is written.
func (h *Host) Link(name string) (string, error) { return h.src.ReadLink(name) }

// Layer returns the layer of an image that a file comes from; nil if that is not known. The path has no symbolic links.
func (h *Host) Layer(name string) *facts.ImageLayer {
	if layered, ok := h.src.(interface {
		Layer(name string) *facts.ImageLayer
	}); ok {
		return layered.Layer(name)
	}
	return nil
}

// Real returns the path of a name after every symbolic link in it is resolved.
func (h *Host) Real(name string) (string, error) {
	at, err := Follow(path.Clean(name), func(next string, _ []string) (string, bool, error) {
		target, err := h.src.ReadLink(next)
		if errors.Is(err, fs.ErrNotExist) {
			return "", false, err
		}
		return target, err == nil, nil // Without a target it is no link, or one that cannot be read.
	})
	if errors.Is(err, ErrTooManyLinks) {
		err = &fs.PathError{Op: "resolve", Path: name, Err: err}
	}
	return at, err
}

// Ask puts a question that no file answers (see AskEnviron) and decodes the answer.
func (h *Host) Ask(ctx context.Context, question string, answer any) error {
	return h.AskBy(ctx, question, nil, answer)
}

// AskBy puts a question that by answers on a live machine.
func (h *Host) AskBy(ctx context.Context, question string, by Answerer, answer any) error {
	raw, err := h.src.Ask(ctx, question, by)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return fmt.Errorf("answer to %q: %w", question, err)
	}
	return nil
}

// Value is the value of a name in lines "Name: value" or "name value", as in /proc and /sys; empty if it is not there.
func Value(text, name string) string {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if value := strings.TrimLeft(rest, ": \t"); ok && value != rest {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// KiB is a size such as "1056411988 kB" in bytes; 0 if it is not one, or more than any machine has.
func KiB(value string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	if err != nil || n < 0 || n > 1<<50 {
		return 0
	}
	return n << 10
}
