package remedies_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]struct {
		bytes    int64
		quantity string
	}{
		"16g": {16 << 30, "16Gi"}, "512m": {512 << 20, "512Mi"}, "64k": {64 << 10, "64Ki"}, "7b": {7, "7b"}, "7": {7, "7"}, "16G": {16 << 30, "16G"},
		"": {-1, ""}, "g": {-1, "Gi"}, "x": {-1, "x"},
	} {
		n, ok := remedies.SizeBytes(text)
		if !ok {
			n = -1
		}
		quantity := remedies.SizeQuantity(text)
		expect.That(t, n == want.bytes && quantity == want.quantity, "%q: got %d and %q, want %+v", text, n, quantity, want)
	}
}
