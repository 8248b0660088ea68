package image_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/image"
	"github.com/gpudoctor/gpudoctor/checks/image/imagetest"
	"github.com/gpudoctor/gpudoctor/checks/image/registry"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// openRemote reads an image in a registry that may send nothing for some time: a minute is as good
// as for ever, however busy the machine is.
func openRemote(t *testing.T, name string, silence time.Duration, o image.Options) (*image.Image, error) {
	t.Helper()
	return image.OpenRemote(t.Context(), expect.Value(registry.Parse(name))(t), registry.Options{Silence: silence}, o)
}

// answers changes what a registry sends for addresses that contain a word.
func answers(word string, answer http.HandlerFunc) func(http.Handler) http.Handler {
	return func(usual http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, word) {
				answer(w, r)
				return
			}
			usual.ServeHTTP(w, r)
		})
	}
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, `{"errors": [{"code": "X", "message": "told\nby \u001b[31mthe registry"}]}`) // Or nobody reads it.
	}
}

// endless sends without end.
func endless(media string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", media)
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}
}

// silent sends so much, and then nothing.
func silent(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if n > 0 {
			_, _ = w.Write(make([]byte, n))
			w.(http.Flusher).Flush() //nolint:forcetypeassert // A server's has it.
		}
		<-r.Context().Done()
	}
}

// TestRemoteHostile checks what is said of a registry that does not give an image, or not the
// one that was asked for. Nothing of it is taken for an image.
func TestRemoteHostile(t *testing.T) {
	built := small.Build(t)
	layers := expect.Value(built.Layers())(t)
	first := expect.Value(layers[0].Digest())(t)
	config := expect.Value(built.ConfigName())(t)
	layer := expect.Value(io.ReadAll(expect.Value(layers[0].Compressed())(t)))(t)
	sends := func(raw []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(raw) } // Or nobody reads it.
	}
	flipped := bytes.Clone(layer)
	flipped[len(flipped)-1] ^= 1 // In the length that gzip notes.
	manifest, blob, about := "/manifests/", "/blobs/"+first.String(), "/blobs/"+config.String()
	denied := &registry.DeniedError{}
	for name, tt := range map[string]struct {
		word   string
		answer http.HandlerFunc
		is     error
		want   string
	}{
		"401":                   {manifest, status(401), denied, "401 Unauthorized (told"},
		"401 and a strange one": {"/v2/", status(401, "Www-Authenticate", `Bearer realm="ftp://x"`), registry.ErrAnswer, `scheme "ftp" not allowed`},
		"an endless greeting":   {"/v2/", endless(""), registry.ErrAnswer, "more than 4 MiB"},
		"403":                   {manifest, status(403), denied, "403 Forbidden"},
		"404":                   {manifest, status(404), registry.ErrNotFound, "does not have it"},
		"429":                   {manifest, status(429), registry.ErrBusy, "429"},
		"500":                   {manifest, status(500), registry.ErrAnswer, "500 Internal Server Error"},
		"no media type":         {manifest, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "") }, nil, "broken manifest"},
		"a page": {manifest, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
		}, nil, "broken manifest"},
		"silence":                  {manifest, silent(0), registry.ErrSilent, "sends nothing for 1s"},
		"silence in a manifest":    {manifest, silent(10), registry.ErrSilent, "sends nothing for 1s"},
		"silence in a layer":       {blob, silent(10), registry.ErrSilent, "sends nothing for 1s"},
		"an endless manifest":      {manifest, endless("application/json"), registry.ErrAnswer, "more than 4 MiB"},
		"an endless configuration": {about, endless(""), image.ErrDamaged, "it does not have"},
		"an endless layer":         {blob, endless(""), nil, "layer 1"},
		"403 for a layer":          {blob, status(403), denied, "layer 1"},
		"another configuration":    {about, sends([]byte(`{"os": "linux"}`)), nil, "error verifying sha256"},
		"another layer":            {blob, sends(checktest.Gzip(tarOf(t, imagetest.File{Name: "usr/bin/true", Content: "x"}))), nil, "error verifying sha256"},
		"a layer and more":         {blob, sends(append(bytes.Clone(layer), 0)), nil, "layer 1"},
		"a changed layer":          {blob, sends(flipped), nil, "layer 1"},
		"half a layer":             {blob, sends(layer[:len(layer)/2]), nil, "error verifying sha256"},
		"an aborted layer": {blob, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(layer)))
			_, _ = w.Write(layer[:100])
		}, nil, "unexpected EOF"},
		"a large head": {manifest, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, registry.ErrAnswer, "exceeded"},
		"no HTTP": {manifest, func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack() //nolint:forcetypeassert // A server's has it.
			if err == nil {
				_, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.6\r\n")
				_ = c.Close()
			}
		}, registry.ErrAnswer, "malformed HTTP"},
		"a closed connection": {manifest, func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack() //nolint:forcetypeassert // A server's has it.
			if err == nil {
				_ = c.Close()
			}
		}, registry.ErrConnect, "EOF"},
		"schema 1": {manifest, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.v1+json")
			_, _ = io.WriteString(w, `{"schemaVersion": 1}`)
		}, nil, "schema 1"},
		"a signature": {manifest, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			_, _ = io.WriteString(w, `{"schemaVersion": 2, "config": {"mediaType": "application/vnd.dev.cosign.simplesigning.v1+json"}}`)
		}, image.ErrNotImage, "media type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ref := imagetest.Serve(t, answers(tt.word, tt.answer)).Push(built, "1")
			silence := time.Minute
			if errors.Is(tt.is, registry.ErrSilent) {
				silence = time.Second
			}
			_, err := openRemote(t, ref, silence, usualOptions)
			expect.Must(t, err != nil, "it was read")
			expect.That(t, (tt.is == nil || errors.Is(err, tt.is)) && strings.Contains(err.Error(), tt.want), "got %v, want %s, %v", err, tt.want, tt.is)
			expect.That(t, !strings.ContainsAny(err.Error(), "\n\x1b") && len(err.Error()) <= 500, "not a line: %q", err)
		})
	}
}

// TestRemoteDigest checks that an image that is named by its digest is that one.
func TestRemoteDigest(t *testing.T) {
	built := small.Build(t)
	raw := expect.Value(built.RawManifest())(t)
	changed := imagetest.Serve(t, answers("/manifests/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
		_, _ = w.Write(append(raw, ' ')) // Or nobody reads it.
	}))
	for server, want := range map[imagetest.Server]error{imagetest.Serve(t, nil): nil, changed: registry.ErrAnswer} {
		server.Push(built, "1")
		_, err := openRemote(t, server.Host+"/org/app@"+digest(raw), time.Minute, usualOptions)
		expect.That(t, errors.Is(err, want), "got %v, want %v", err, want)
	}
}

// TestRemoteEnds checks that a reading from a registry ends with its context, and leaves nothing running.
func TestRemoteEnds(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{"silence": silent(10), "no end": endless("application/json")} {
		ref := imagetest.Serve(t, answers("/blobs/", answer)).Push(small.Build(t), "1")
		before := runtime.NumGoroutine()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		expect.Fails(image.OpenRemote(ctx, expect.Value(registry.Parse(ref))(t), registry.Options{Silence: time.Minute}, usualOptions))(t, nil, "%s: it was read", name)
		cancel()
		for range 100 {
			if runtime.NumGoroutine() <= before {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		n := runtime.NumGoroutine()
		expect.That(t, n <= before, "%s: %d goroutines, %d before", name, n, before)
	}
}
