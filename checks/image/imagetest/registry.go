package imagetest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// Server is a registry on this machine.
type Server struct {
	tb testing.TB
	// Host is its host and port.
	Host string
	// inner is that of the same registry, whose requests nothing changes.
	inner string
}

// Serve starts a registry, whose requests pass through wrap if it is not nil.
func Serve(tb testing.TB, wrap func(http.Handler) http.Handler) Server {
	tb.Helper()
	start := func(handler http.Handler) string {
		server := httptest.NewServer(handler)
		tb.Cleanup(server.Close)
		return strings.TrimPrefix(server.URL, "http://")
	}
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	inner := start(handler)
	if wrap == nil {
		return Server{tb, inner, inner}
	}
	return Server{tb, start(wrap(handler)), inner}
}

// Push puts an image, an index with its images, or a manifest alone into the registry, and
// returns its reference.
func (s Server) Push(what remote.Taggable, tag string) string {
	s.tb.Helper()
	path := "/org/app:" + tag
	ref := expect.Value(name.ParseReference(s.inner + path))(s.tb)
	var err error
	switch what := what.(type) {
	case v1.Image:
		err = remote.Write(ref, what)
	case v1.ImageIndex:
		err = remote.WriteIndex(ref, what)
	default:
		err = remote.Put(ref, what)
	}
	expect.NoError(s.tb, err)
	return s.Host + path
}

// Index is an index of images for several platforms.
func Index(platforms []v1.Platform, images []v1.Image) v1.ImageIndex {
	index := v1.ImageIndex(empty.Index)
	for i, img := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &platforms[i]}})
	}
	return index
}
