package text

import (
	"bufio"
	"bytes"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// unwrap removes what is around a text or its characters: UTF-16, a byte order mark, leading zero bytes. Of
// UTF-16 without a byte order mark, a reading drops the zero bytes.
func unwrap(r *bufio.Reader) *bufio.Reader {
	// What cannot be read is an error when the text is read.
	head, _ := r.Peek(headBytes)
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return bufio.NewReaderSize(transform.NewReader(r, unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder()), peekBytes)
	}
	skipZeros(r)
	if head, _ = r.Peek(len(byteOrderMark)); bytes.Equal(head, byteOrderMark) {
		_, _ = r.Discard(len(byteOrderMark)) // It was looked at.
	}
	return r
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
	return control > rest/50 || rest == 0 || !isUTF8(head)
}

// isUTF8 reports whether the beginning of a file is UTF-8; its last character may be cut off.
func isUTF8(head []byte) bool {
	for range utf8.UTFMax {
		if utf8.Valid(head) {
			return true
		}
		head = head[:len(head)-1]
	}
	return false
}
