package files

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/zstd"
)

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
