package image_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/image"
	"github.com/gpudoctor/gpudoctor/checks/image/imagetest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// BenchmarkOpen reads an image of four layers, half of which can be compressed, in each form.
func BenchmarkOpen(b *testing.B) {
	const half = 16 << 20
	img := imagetest.Image{}
	random, from := make([]byte, half), rand.NewChaCha8([32]byte{})
	for i := range 4 {
		_, _ = from.Read(random) // It never fails.
		data := imagetest.File{Name: fmt.Sprint("usr/share/", i), Content: string(random) + strings.Repeat("\x00", half)}
		img.Layers = append(img.Layers, imagetest.Layer{Files: append(small.Layers[0].Files, data)})
	}
	for _, form := range []string{imagetest.Docker, imagetest.Docker + ".gz", imagetest.Layout, imagetest.Tar} {
		at := written(b, img, form)
		b.Run(form, func(b *testing.B) {
			b.SetBytes(int64(len(img.Layers)) * 2 * half)
			b.ReportAllocs()
			for b.Loop() {
				expect.Value(image.Open(b.Context(), at, true, usualOptions))(b)
			}
		})
	}
}
