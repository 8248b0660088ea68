package text

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// unwrap removes what is around a text or its characters: UTF-16, Docker's frames, leading
// zero bytes. It returns nil if there is nothing to remove. Of UTF-16 without a byte order mark, a reading
// drops the zero bytes.
func unwrap(r *bufio.Reader) io.Reader {
	// What cannot be read is an error when the text is read.
	head, _ := r.Peek(headBytes)
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return transform.NewReader(r, unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder())
	}
	if isFramed(head) {
		return &unframer{from: r}
	}
	skipZeros(r)
	if head, _ = r.Peek(len(byteOrderMark)); bytes.Equal(head, byteOrderMark) {
		_, _ = r.Discard(len(byteOrderMark)) // It was looked at.
		return r
	}
	return nil
}

// byteOrderMark begins texts in UTF-8 that Windows tools write.
var byteOrderMark = []byte("\ufeff")

// skipZeros goes over the zero bytes at the beginning of a log that was truncated
// while its writer kept its place (logrotate, copytruncate).
func skipZeros(r *bufio.Reader) {
	for {
		head, _ := r.Peek(headBytes)
		if n, err := r.Discard(len(head) - len(bytes.TrimLeft(head, "\x00"))); n == 0 || err != nil {
			return
		}
	}
}

// Docker's raw stream puts eight bytes before each piece: 1 for standard output or
// 2 for standard error, three zero bytes, and the length (Docker Engine API, "Stream format").
const (
	frameHead = 8
	// maxFrame is the largest piece that is believed: containerd and Docker cut
	// lines at 16 KiB.
	maxFrame = 1 << 20
)

// frame reads the head of a piece.
func frame(head []byte) (length int, ok bool) {
	if len(head) < frameHead || head[0] != 1 && head[0] != 2 || head[1] != 0 || head[2] != 0 || head[3] != 0 {
		return 0, false
	}
	length = int(binary.BigEndian.Uint32(head[4:]))
	return length, length > 0 && length <= maxFrame
}

// isFramed reports whether a text begins with pieces of Docker's raw stream.
func isFramed(head []byte) bool {
	for pieces := 0; ; pieces++ {
		length, ok := frame(head)
		switch {
		case !ok:
			return false
		case len(head) < frameHead+length+frameHead: // The head of the next one is not in sight.
			return pieces > 0 || !isBinary(head[frameHead:])
		}
		if isBinary(head[frameHead : frameHead+length]) {
			return false
		}
		head = head[frameHead+length:]
	}
}

// unframer gives what Docker's pieces hold. What is not a piece is given as it is.
type unframer struct {
	from   *bufio.Reader
	left   int
	broken bool
}

func (u *unframer) Read(p []byte) (int, error) {
	for u.left == 0 && !u.broken {
		head, err := u.from.Peek(frameHead)
		length, ok := frame(head)
		switch {
		case len(head) < frameHead && errors.Is(err, io.EOF) && len(head) > 0:
			return 0, io.ErrUnexpectedEOF
		case len(head) < frameHead:
			return 0, err
		case !ok:
			u.broken = true
		default:
			u.left = length
			_, _ = u.from.Discard(frameHead) // It was looked at.
		}
	}
	if u.broken {
		return u.from.Read(p)
	}
	n, err := u.from.Read(p[:min(len(p), u.left)])
	if u.left -= n; u.left > 0 && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// isBinary reports whether the beginning of a file is not a text: it holds control
// characters, or zero bytes between what is no UTF-8.
func isBinary(head []byte) bool {
	control, zeros := 0, 0
	for _, b := range head {
		switch {
		case b == 0:
			zeros++
		case b == 0x7f || b < ' ' && b != '\n' && b != '\r' && b != '\t' && b != 0x1b && b != '\f' && b != '\b':
			control++
		}
	}
	rest := len(head) - zeros
	if zeros == 0 {
		return control > rest/10
	}
	return control > rest/50 || rest == 0 || !utf8.Valid(wholeRunes(head))
}

// wholeRunes leaves out a character that is cut off at the end.
func wholeRunes(b []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax-1, len(b)); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}
