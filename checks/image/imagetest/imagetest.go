// Package imagetest makes container images for tests, in every form that gpudoctor reads.
// go-containerregistry writes layouts and archives, so that the reader is tested against
// what others write.
package imagetest

import (
	"archive/tar"
	"bytes"
	"cmp"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image is an image to make.
type Image struct {
	Layers []Layer
	Env    []string
	User   string
	Labels map[string]string
	// Architecture is its processor, amd64 if it is empty.
	Architecture string
	// Zstd compresses the layers of a layout with zstd instead of gzip.
	Zstd bool
}

// Layer is a layer of it.
type Layer struct {
	Command string
	Files   []File
}

// File is a file, or, with a Target, a symbolic link. A name that ends in / is a folder.
type File struct {
	Name, Content, Target string
	// Hard makes Target that of a hard link.
	Hard bool
	// Size makes it larger than its content, with zeros.
	Size int64
	// Type is the type of its member; 0 is that of a regular file.
	Type byte
}

// The forms.
const (
	Folder  = "root-folder"
	Tar     = "root-tar"
	Docker  = "docker-archive"
	Layout  = "oci-layout"
	Archive = "oci-archive"
)

// Registry is the form of an image that is no file: Write returns its reference.
const Registry = "registry"

// Forms are all that are files or folders.
var Forms = []string{Folder, Tar, Docker, Layout, Archive}

// Write makes an image in a new folder or in a registry, and returns where it is.
func Write(tb testing.TB, img Image, form string) string {
	tb.Helper()
	dir := tb.TempDir()
	at := filepath.Join(dir, "image")
	switch form {
	case Registry:
		return Serve(tb, nil).Push(img.Build(tb), "1.2")
	case Folder:
		must(tb, os.Mkdir(at, 0o755))
		runTar(tb, img.flat(tb), "-x", "--no-same-owner", "-C", at, "-f", "-")
	case Tar:
		raw, err := io.ReadAll(img.flat(tb))
		must(tb, err)
		must(tb, os.WriteFile(at+".tar", raw, 0o600))
		return at + ".tar"
	case Docker:
		ref, err := name.NewTag("example.com/image:latest")
		must(tb, err)
		must(tb, tarball.WriteToFile(at+".tar", ref, img.build(tb, types.DockerLayer)))
		return at + ".tar"
	case Layout, Archive:
		path, err := layout.Write(at, empty.Index)
		must(tb, err)
		must(tb, path.AppendImage(img.Build(tb)))
		if form == Archive {
			runTar(tb, nil, "-c", "-C", at, "-f", at+".tar", ".")
			return at + ".tar"
		}
	default:
		tb.Fatalf("no form %q", form)
	}
	return at
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Build makes the image in memory.
func (i Image) Build(tb testing.TB) v1.Image {
	tb.Helper()
	return i.build(tb, types.OCILayer)
}

func (i Image) build(tb testing.TB, media types.MediaType) v1.Image {
	tb.Helper()
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	options := []tarball.LayerOption{tarball.WithMediaType(media)}
	if i.Zstd && media == types.OCILayer {
		options = []tarball.LayerOption{tarball.WithMediaType(types.OCILayerZStd), tarball.WithCompression(compression.ZStd)}
	}
	for _, l := range i.Layers {
		raw := l.Tar(tb)
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }, options...)
		must(tb, err)
		img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: l.Command}})
		must(tb, err)
	}
	config, err := img.ConfigFile()
	must(tb, err)
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", cmp.Or(i.Architecture, "amd64")
	config.Config = v1.Config{Env: i.Env, User: i.User, Labels: i.Labels}
	img, err = mutate.ConfigFile(img, config)
	must(tb, err)
	return img
}

// Tar is the layer as an archive.
func (l Layer) Tar(tb testing.TB) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range l.Files {
		must(tb, f.write(w))
	}
	must(tb, w.Close())
	return b.Bytes()
}

func (f File) write(w *tar.Writer) error {
	h := &tar.Header{Name: f.Name, Mode: 0o755, Typeflag: cmp.Or(f.Type, tar.TypeReg), Linkname: f.Target}
	content := f.content()
	switch {
	case strings.HasSuffix(f.Name, "/"):
		h.Typeflag = tar.TypeDir
	case f.Hard:
		h.Typeflag = tar.TypeLink
	case f.Target != "":
		h.Typeflag = tar.TypeSymlink
	case f.Type == 0:
		h.Size = int64(len(content))
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.WriteString(w, content[:h.Size])
	return err
}

func (f File) content() string {
	if n := int(f.Size) - len(f.Content); n > 0 {
		return f.Content + strings.Repeat("\x00", n)
	}
	return f.Content
}

// flat is a root folder as an archive: what the layers leave, and the variables as enroot
// writes them.
func (i Image) flat(tb testing.TB) io.ReadCloser {
	tb.Helper()
	enroot := Layer{Files: []File{{Name: "etc/rc", Content: "exec \"$@\"\n"}, {Name: "etc/environment", Content: strings.Join(i.Env, "\n") + "\n"}}}
	i.Layers = append(slices.Clone(i.Layers), enroot)
	return mutate.Extract(i.Build(tb))
}

// runTar runs tar, which unpacks and packs as users do.
func runTar(tb testing.TB, input io.Reader, args ...string) {
	tb.Helper()
	c := exec.CommandContext(tb.Context(), "tar", args...)
	c.Stdin = input
	out, err := c.CombinedOutput()
	if err != nil {
		tb.Fatalf("tar %v: %v: %s", args, err, out)
	}
}
