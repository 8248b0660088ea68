package imagetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Server is a registry on this machine.
type Server struct {
	tb testing.TB
	// Host is its host and port.
	Host string
}

// repository is where images are pushed, and path how they are named.
const (
	repository = "/v2/org/app"
	path       = "/org/app"
)

// Serve starts a registry, whose requests pass through wrap if it is not nil.
func Serve(tb testing.TB, wrap func(http.Handler) http.Handler) Server {
	tb.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	if wrap != nil {
		handler = wrap(handler)
	}
	server := httptest.NewServer(handler)
	tb.Cleanup(server.Close)
	return Server{tb, strings.TrimPrefix(server.URL, "http://")}
}

// Push puts an image into the registry, and returns its reference.
func (s Server) Push(img v1.Image, tag string) string {
	s.tb.Helper()
	layers, err := img.Layers()
	must(s.tb, err)
	config, err := partial.ConfigLayer(img)
	must(s.tb, err)
	for _, l := range append(layers, config) {
		digest, err := l.Digest()
		must(s.tb, err)
		r, err := l.Compressed()
		must(s.tb, err)
		raw, err := io.ReadAll(r)
		must(s.tb, err)
		s.send(http.MethodPost, "/blobs/uploads/?digest="+digest.String(), "application/octet-stream", raw)
	}
	media, err := img.MediaType()
	must(s.tb, err)
	raw, err := img.RawManifest()
	must(s.tb, err)
	return s.PushManifest(raw, media, tag)
}

// PushManifest puts a manifest or an index into the registry, and returns its reference.
func (s Server) PushManifest(raw []byte, media types.MediaType, tag string) string {
	s.tb.Helper()
	s.send(http.MethodPut, "/manifests/"+tag, string(media), raw)
	return s.Host + path + ":" + tag
}

// PushIndex puts images for several platforms into the registry under one tag, and returns its
// reference.
func (s Server) PushIndex(tag string, platforms []v1.Platform, images []v1.Image) string {
	s.tb.Helper()
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for i, img := range images {
		s.Push(img, fmt.Sprint(tag, i))
		d, err := partial.Descriptor(img)
		must(s.tb, err)
		d.Platform = &platforms[i]
		index.Manifests = append(index.Manifests, *d)
	}
	raw, err := json.Marshal(index)
	must(s.tb, err)
	return s.PushManifest(raw, types.OCIImageIndex, tag)
}

func (s Server) send(method, at, media string, raw []byte) {
	s.tb.Helper()
	ask, err := http.NewRequestWithContext(s.tb.Context(), method, "http://"+s.Host+repository+at, bytes.NewReader(raw))
	must(s.tb, err)
	ask.Header.Set("Content-Type", media)
	got, err := http.DefaultClient.Do(ask)
	must(s.tb, err)
	if got.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s", method, at, got.Status)
	}
	_ = got.Body.Close() // Its status is known.
	must(s.tb, err)
}

// Build makes the image in memory.
func (i Image) Build(tb testing.TB) v1.Image {
	tb.Helper()
	return i.build(tb, types.OCILayer)
}
