package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"slices"
	"sync"
)

// maxRecorded bounds the content that a recorder keeps, so that a snapshot stays within what Parse reads.
const maxRecorded = 24 << 20

// Recorder is a Source that passes every operation to another Source, and keeps what that returned.
type Recorder struct {
	src Source

	mu   sync.Mutex
	seen Memory
	size int64
}

// NewRecorder returns a recorder of the operations on src.
func NewRecorder(src Source) *Recorder { return &Recorder{src: src, seen: Memory{partial: true}} }

// keep notes the outcome of an operation. The first one counts, but a success replaces a failure.
func (r *Recorder) keep(op operation, name string, value any, err error) {
	if errors.Is(err, ErrNotRecorded) {
		return
	}
	if inPath, ok := errors.AsType[*fs.PathError](err); ok {
		err = inPath.Err // The operation and the path are known.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.seen.node(name)
	switch {
	case err == nil && (n.outcomes[op] == nil || n.err(op) != nil):
		n.set(op, value)
	case n.outcomes[op] == nil:
		n.fail(op, err)
	}
}

// ReadFile returns at most limit bytes of a file.
func (r *Recorder) ReadFile(name string, limit int64) ([]byte, error) {
	limit = min(limit, math.MaxInt64-1)
	data, err := r.src.ReadFile(name, limit+1) // One more tells whether the file goes on.
	more := int64(len(data)) > limit
	if more {
		data = data[:limit:limit]
	}
	if err == nil {
		r.keepFile(name, data, more)
		return data, nil
	}
	if errors.Is(err, ErrNotRecorded) {
		// A recording must not hold more than was requested.
		if data, err := r.src.ReadFile(name, limit); err == nil {
			r.keepFile(name, data, true)
			return data, nil
		}
	}
	r.keep(read, name, nil, err)
	return nil, err
}

// keepFile keeps a file's content; of several reads, the longest.
func (r *Recorder) keepFile(name string, data []byte, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.seen.node(name)
	before, known := valueOf[content](n, read)
	grows := int64(len(data) - len(before.data))
	switch {
	case known && grows <= 0:
	case r.size+grows <= maxRecorded:
		r.size += grows
		n.set(read, content{bytes.Clone(data), more})
	case n.outcomes[read] == nil:
		n.fail(read, ErrNotRecorded)
	}
}

// ReadDir returns the names in a folder, sorted.
func (r *Recorder) ReadDir(name string) ([]string, error) {
	names, err := r.src.ReadDir(name)
	r.keep(list, name, slices.Clone(names), err)
	return names, err
}

// ReadLink returns where a symbolic link points.
func (r *Recorder) ReadLink(name string) (string, error) {
	target, err := r.src.ReadLink(name)
	r.keep(link, name, target, err)
	return target, err
}

// Stat describes a file, links followed.
func (r *Recorder) Stat(name string) (FileInfo, error) {
	info, err := r.src.Stat(name)
	r.keep(stat, name, info, err)
	return info, err
}

// Ask answers a question.
func (r *Recorder) Ask(ctx context.Context, question string, by Answerer) (json.RawMessage, error) {
	raw, err := r.src.Ask(ctx, question, by)
	if errors.Is(err, ErrNotRecorded) || ctx.Err() != nil {
		return raw, err // An asker that had to go says nothing about the machine.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.seen.answers[question]; old == nil || old.err != nil {
		r.seen.setAnswer(question, raw, err)
	}
	return raw, err
}

// Recorded is true when the source that is recorded is a recording itself.
func (r *Recorder) Recorded() bool { return r.src.Recorded() }
