// Package files reads files that may block forever: a pipe that nobody writes to, a network share whose server is gone. Each
// operation runs in a goroutine of its own, which is given up when the context ends or nothing comes for too long. It also
// reads zstd (RFC 8878).
package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// System is a file system; OS is that of this machine.
type System interface {
	// Stat describes a file, symbolic links followed.
	Stat(name string) (fs.FileInfo, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// ReadDir lists a folder by name. With an error come the names that were read before it.
	ReadDir(name string) ([]fs.DirEntry, error)
	// ReadLink returns where a symbolic link points.
	ReadLink(name string) (string, error)
}

// File is an open file.
type File interface {
	io.ReadCloser
	io.ReaderAt
	Stat() (fs.FileInfo, error)
}

// OS is the file system of this machine.
type OS struct{}

// Stat describes a file, symbolic links followed.
func (OS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// Open opens a file for reading.
func (OS) Open(name string) (File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err // A nil *os.File is no nil File.
	}
	return f, nil
}

// ReadLink returns where a symbolic link points.
func (OS) ReadLink(name string) (string, error) { return os.Readlink(name) }

// maxNames bounds the names that are read of one folder.
const maxNames = 200_000

// ReadDir lists a folder by name, up to maxNames.
func (OS) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // It was only read.
	entries, err := f.ReadDir(maxNames)
	if errors.Is(err, io.EOF) { // It is empty.
		err = nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// ErrSilent is returned for a file that did not answer in time.
var ErrSilent = errors.New("no answer")

// Within runs an operation until the context ends, or until silence has passed, with ErrSilent. A silence of 0 means no limit.
func Within[T any](ctx context.Context, silence time.Duration, operation func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	if silence > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, silence, fmt.Errorf("%w within %s", ErrSilent, silence))
		defer stop()
	}
	done := make(chan answer, 1)
	go func() {
		value, err := operation()
		done <- answer{value, err}
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

const blockBytes = 256 << 10

// Reader reads from a file that may block forever. A read after an error returns the same error.
type Reader struct {
	ctx     context.Context
	silence time.Duration
	from    io.Reader
	close   func() error
	buffer  []byte // Belongs to the last read, which may have been given up.
	rest    []byte // What was read and not yet returned.
	err     error
}

// NewReader returns a Reader. closeFrom is the Close of from, where it should be closed.
func NewReader(ctx context.Context, from io.Reader, silence time.Duration, closeFrom func() error) *Reader {
	return &Reader{ctx: ctx, silence: silence, from: from, close: closeFrom, buffer: make([]byte, blockBytes)}
}

// Read reads from the current block, or waits for the next one.
func (r *Reader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 && r.err == nil {
		var n int
		n, r.err = Within(r.ctx, r.silence, func() (int, error) { return io.ReadAtLeast(r.from, r.buffer, 1) })
		r.rest = r.buffer[:n]
	}
	if len(r.rest) == 0 {
		return 0, r.err
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close closes the file. It does not wait for a read in progress.
func (r *Reader) Close() {
	if r.close != nil {
		go r.close() //nolint:errcheck // It was only read.
	}
}

// ReaderAt reads parts of a file that may block forever.
type ReaderAt struct {
	ctx     context.Context
	silence time.Duration
	from    io.ReaderAt
}

// NewReaderAt returns a ReaderAt.
func NewReaderAt(ctx context.Context, from io.ReaderAt, silence time.Duration) *ReaderAt {
	return &ReaderAt{ctx: ctx, silence: silence, from: from}
}

// ReadAt reads a part into a buffer of its own: the read may go on after it was given up.
func (r *ReaderAt) ReadAt(p []byte, offset int64) (int, error) {
	buffer := make([]byte, len(p))
	n, err := Within(r.ctx, r.silence, func() (int, error) { return r.from.ReadAt(buffer, offset) })
	return copy(p, buffer[:n]), err
}

// maxZstdWindow bounds the memory of a decoder: larger windows need --long or --ultra.
const maxZstdWindow = 64 << 20

// IsZstd reports whether a stream begins with a frame of zstd, or one to skip (RFC 8878, 3.1).
func IsZstd(head []byte) bool {
	return bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")) || len(head) > 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:4], []byte("\x2a\x4d\x18"))
}

// NewZstdReader returns a reader of what a stream holds, which decodes ahead in goroutines of its own.
func NewZstdReader(r io.Reader, opts ...zstd.DOption) (*zstd.Decoder, error) {
	return zstd.NewReader(r, append(opts, zstd.WithDecoderMaxMemory(maxZstdWindow), zstd.WithDecoderMaxWindow(maxZstdWindow))...)
}

// NewFrugalZstdReader returns one that decodes as it is read, in little memory.
func NewFrugalZstdReader(r io.Reader) (*zstd.Decoder, error) {
	return NewZstdReader(r, zstd.WithDecoderLowmem(true), zstd.WithDecoderConcurrency(1))
}
