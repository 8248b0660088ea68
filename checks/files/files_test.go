package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

var errBroken = errors.New("broken")

// TestReader checks that what is read is what is there, in whatever pieces it comes, up to an error, which stays.
func TestReader(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 3*blockBytes/16+1)
	for name, from := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "with the end": iotest.DataErrReader,
	} {
		for _, last := range []error{io.EOF, errBroken} {
			closed := make(chan bool, 1)
			r := NewReader(t.Context(), from(io.MultiReader(bytes.NewReader(data), iotest.ErrReader(last))), 0, func() error {
				closed <- true
				return nil
			})
			var got bytes.Buffer
			_, err := io.Copy(&got, r)
			ended := errors.Is(last, io.EOF)
			expect.That(t, (!ended || err == nil) && (ended || errors.Is(err, last)), "%s: got %v, want %v", name, err, last)
			expect.That(t, bytes.Equal(got.Bytes(), data), "%s: got %d bytes that differ", name, got.Len())
			_, again := r.Read(make([]byte, 1))
			expect.That(t, errors.Is(again, last), "%s: then %v, want %v", name, again, last)
			r.Close()
			<-closed
		}
	}
}

// TestReaderAt checks that any part of a file is what is there, with the error that ends it.
func TestReaderAt(t *testing.T) {
	data := []byte("0123456789")
	r := NewReaderAt(t.Context(), bytes.NewReader(data), 0)
	for at := range len(data) + 2 {
		for n := range len(data) + 2 {
			p := make([]byte, n)
			read, err := r.ReadAt(p, int64(at))
			want := max(0, min(n, len(data)-at))
			expect.That(t, read == want && bytes.Equal(p[:read], data[min(at, len(data)):][:want]), "%d from %d: got %d, want %d", n, at, read, want)
			expect.That(t, read == n || errors.Is(err, io.EOF), "%d from %d: %v", n, at, err)
		}
	}
	expect.Fails(r.ReadAt(nil, -1))(t, nil, "a place before the beginning is taken")
}

// never is a file that never answers.
type never struct{ end chan struct{} }

func (n never) Read([]byte) (int, error) {
	<-n.end
	return 0, io.EOF
}

func (n never) ReadAt([]byte, int64) (int, error) { return n.Read(nil) }

// TestNoAnswer checks, for each operation, that a file that never answers is given up
// when the context ends, with its cause, and when it was silent for too long.
func TestNoAnswer(t *testing.T) {
	file := never{make(chan struct{})}
	defer close(file.end)
	why := errors.New("stopped")
	for name, operation := range map[string]func(context.Context, time.Duration) error{
		"within": func(ctx context.Context, silence time.Duration) error {
			_, err := Within(ctx, silence, func() (int, error) { return file.Read(nil) })
			return err
		},
		"read": func(ctx context.Context, silence time.Duration) error {
			r := NewReader(ctx, file, silence, nil)
			defer r.Close()
			_, err := r.Read(make([]byte, 1))
			return err
		},
		"read at": func(ctx context.Context, silence time.Duration) error {
			_, err := NewReaderAt(ctx, file, silence).ReadAt(make([]byte, 1), 0)
			return err
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		expect.ErrorIs(t, ErrSilent, operation(ctx, time.Millisecond), "%s: silent", name)
		time.AfterFunc(time.Millisecond, func() { cancel(why) })
		expect.ErrorIs(t, why, operation(ctx, 0), "%s: cancelled", name)
		expect.ErrorIs(t, why, operation(ctx, 0), "%s: cancelled before", name)
	}
}
