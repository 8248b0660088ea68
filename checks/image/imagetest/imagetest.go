// Package imagetest makes container images for tests, in every form that gpudoctor reads. go-containerregistry writes
// layouts and archives, so that the reader is tested against what others write.
package imagetest

import (
	"archive/tar"
	"bytes"
	"cmp"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// Image is an image to make.
type Image struct {
	Layers []Layer
	Env    []string
	User   string
	// Architecture is its processor, amd64 if it is empty.
	Architecture string
}

// Layer is a layer of it.
type Layer struct {
	Command string
	Files   []File
}

// File is a file, or, with a Target, a symbolic link.
type File struct {
	Name, Content, Target string
	// Hard makes Target that of a hard link.
	Hard bool
	// Size makes it larger than its content, with zeros.
	Size int64
}

// The forms.
const (
	Folder  = "root-folder"
	Docker  = "docker-archive"
	Layout  = "oci-layout"
	Archive = "oci-archive"
)

// Registry is the form of an image that is no file: Write returns its reference.
const Registry = "registry"

// Forms are all that are files or folders.
var Forms = []string{Folder, Docker, Layout, Archive}

// Write makes an image in a new folder or in a registry, and returns where it is.
func Write(tb testing.TB, img Image, form string) string {
	tb.Helper()
	at := filepath.Join(tb.TempDir(), "image")
	archive := at + ".tar"
	switch form {
	case Registry:
		return Serve(tb, nil).Push(img.Build(tb), "1.2")
	case Folder:
		expect.NoError(tb, os.Mkdir(at, 0o755))
		runTar(tb, img.flat(tb), "-x", "--no-same-owner", "-C", at, "-f", "-")
		return at
	case Docker:
		ref := expect.Value(name.NewTag("example.com/image:latest"))(tb)
		expect.NoError(tb, tarball.WriteToFile(archive, ref, img.build(tb, types.DockerLayer)))
	case Layout, Archive:
		path := expect.Value(layout.Write(at, empty.Index))(tb)
		expect.NoError(tb, path.AppendImage(img.Build(tb)))
		if form == Layout {
			return at
		}
		runTar(tb, nil, "-c", "-C", at, "-f", archive, ".")
	default:
		tb.Fatalf("no form %q", form)
	}
	return archive
}

// Build makes the image in memory.
func (i Image) Build(tb testing.TB) v1.Image {
	tb.Helper()
	return i.build(tb, types.OCILayer)
}

func (i Image) build(tb testing.TB, media types.MediaType) v1.Image {
	tb.Helper()
	img := expect.Value(mutate.ConfigFile(mutate.MediaType(empty.Image, types.OCIManifestSchema1), &v1.ConfigFile{
		OS: "linux", Architecture: cmp.Or(i.Architecture, "amd64"), Config: v1.Config{Env: i.Env, User: i.User},
	}))(tb)
	for _, l := range i.Layers {
		raw := l.Tar(tb)
		layer := expect.Value(tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }, tarball.WithMediaType(media)))(tb)
		img = expect.Value(mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: l.Command}}))(tb)
	}
	return img
}

// Tar is the layer as an archive.
func (l Layer) Tar(tb testing.TB) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range l.Files {
		f.write(tb, w)
	}
	expect.NoError(tb, w.Close())
	return b.Bytes()
}

func (f File) write(tb testing.TB, w *tar.Writer) {
	tb.Helper()
	content := f.Content + strings.Repeat("\x00", max(0, int(f.Size)-len(f.Content)))
	h := &tar.Header{Name: f.Name, Mode: 0o755, Typeflag: tar.TypeReg, Linkname: f.Target}
	switch {
	case f.Hard:
		h.Typeflag = tar.TypeLink
	case f.Target != "":
		h.Typeflag = tar.TypeSymlink
	default:
		h.Size = int64(len(content))
	}
	expect.NoError(tb, w.WriteHeader(h))
	expect.Value(io.WriteString(w, content[:h.Size]))(tb)
}

// flat is a root folder as an archive: what the layers leave, and the variables as enroot writes them.
func (i Image) flat(tb testing.TB) io.ReadCloser {
	tb.Helper()
	enroot := Layer{Files: []File{{Name: "etc/rc", Content: "exec \"$@\"\n"}, {Name: "etc/environment", Content: strings.Join(i.Env, "\n") + "\n"}}}
	i.Layers = append(slices.Clone(i.Layers), enroot)
	return mutate.Extract(i.Build(tb))
}

func runTar(tb testing.TB, input io.Reader, args ...string) {
	tb.Helper()
	c := exec.CommandContext(tb.Context(), "tar", args...)
	c.Stdin = input
	out, err := c.CombinedOutput()
	if err != nil {
		tb.Fatalf("tar %v: %v: %s", args, err, out)
	}
}

// WriteIndex makes an OCI layout of images for several platforms, in an index of its own if it is nested, and returns where it is.
func WriteIndex(tb testing.TB, platforms []v1.Platform, images []v1.Image, nested bool) string {
	tb.Helper()
	index := Index(platforms, images)
	if nested {
		index = mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index})
	}
	at := filepath.Join(tb.TempDir(), "image")
	expect.Value(layout.Write(at, index))(tb)
	return at
}

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

// Push puts an image, an index with its images, or a manifest alone into the registry, and returns its reference.
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
