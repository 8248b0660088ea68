package text_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// BenchmarkRead reads logs of jobs. With -cpu 1 it is the speed of one core.
func BenchmarkRead(b *testing.B) {
	log := []byte(strings.Repeat(strings.Join(slices.Collect(maps.Values(texttest.EveryText(b))), ""), 16))
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		r := text.NewReading()
		expect.NoError(b, r.Read(b.Context(), "log", bytes.NewReader(log)))
		r.Finish()
	}
}
