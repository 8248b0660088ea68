package image_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/image"
	"github.com/gpudoctor/gpudoctor/checks/image/imagetest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

var usualOptions = image.Options{Limits: image.DefaultLimits}

const lib = "usr/lib/x86_64-linux-gnu/"

var small = imagetest.Image{
	Env: []string{"NCCL_DEBUG=WARN", "PATH=/bin"}, User: "1000",
	Layers: []imagetest.Layer{
		{Command: "/bin/sh -c #(nop) ADD file:1 in / ", Files: []imagetest.File{
			{Name: "usr/bin/true", Content: "x"}, {Name: lib + "libnccl.so.2.18.3", Content: "NCCL version 2.18.3+cuda12.2\x00"}, {Name: lib + "libnccl.so.2", Target: "libnccl.so.2.18.3"},
		}},
		{Command: "RUN /bin/sh -c apt-get install -y cuda # buildkit", Files: []imagetest.File{{Name: lib + "libcudart.so.12.4.127", Content: "\x7fELF\x02"}}},
	},
}

// written writes an image in a form, which may be an archive that is compressed as a whole.
func written(tb testing.TB, img imagetest.Image, form string) string {
	tb.Helper()
	form, packed := strings.CutSuffix(form, ".gz")
	at := imagetest.Write(tb, img, form)
	if packed {
		expect.NoError(tb, os.WriteFile(at+".gz", checktest.Gzip(expect.Value(os.ReadFile(at))(tb)), 0o600))
		at += ".gz"
	}
	return at
}

// TestForms checks that the facts of an image are the same in every form, but for what only some forms have.
func TestForms(t *testing.T) {
	var want []string
	for _, form := range slices.Concat(imagetest.Forms, []string{imagetest.Registry}) {
		at := written(t, small, form)
		read := func() (*image.Image, error) { return image.Open(t.Context(), at, true, usualOptions) }
		if form == imagetest.Registry {
			read = func() (*image.Image, error) { return openRemote(t, at, time.Minute, usualOptions) }
		}
		img, err := read()
		expect.Must(t, err == nil, "%s: %v", form, err)
		f, _ := checks.GatherImage(t.Context(), img, gather.Options{})
		var got []string
		for _, l := range f.Libraries.Files {
			got = append(got, fmt.Sprint(l.Kind, " ", l.Path, " ", l.RealPath, " ", l.Version, " ", l.Loads))
			layered := form != imagetest.Folder
			expect.Must(t, layered == (l.Layer != nil), "%s: %s has the layer %v", form, l.Path, l.Layer)
			if layered && l.Kind == "libcudart" {
				expect.That(t, l.Layer.Index == 2 && l.Layer.Command == "RUN apt-get install -y cuda" && len(l.Layer.Digest) == 71, "%s: %s comes from %+v", form, l.Path, *l.Layer)
			}
		}
		got = append(got, expect.Map(f.Env.Variables, func(v facts.Variable) string { return v.Name + "=" + v.Value })...)
		if want == nil {
			want = got
		}
		expect.NoDiff(t, want, got, "%s", form)
		expect.Len(t, 3, want, "%s", form)
		expect.Equal(t, form, f.Image.Form, "got the form")
		if f.Image.Environment == "configuration" && (f.Image.User != "1000" || f.Image.Platform != "linux/amd64") {
			t.Errorf("%s: %+v", form, f.Image)
		}
		expect.Len(t, 0, f.Unknown, "%s: unknown", form)
	}
}

func write(tb testing.TB, name string, raw []byte) {
	tb.Helper()
	expect.NoError(tb, os.MkdirAll(filepath.Dir(name), 0o755))
	expect.NoError(tb, os.WriteFile(name, raw, 0o600))
}

func digest(raw []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(raw)) }

// blobFile is where a layout has a blob.
func blobFile(dir string, raw []byte) string {
	return filepath.Join(dir, "blobs", strings.Replace(digest(raw), ":", "/", 1))
}

func addBlob(tb testing.TB, dir, mediaType string, raw []byte) string {
	tb.Helper()
	write(tb, blobFile(dir, raw), raw)
	return fmt.Sprintf(`{"mediaType": "application/vnd.oci.image.%s", "digest": %q, "size": %d}`, mediaType, digest(raw), len(raw))
}

const (
	usualConfig   = `{"os": "linux", "architecture": "amd64"}`
	usualManifest = `{"schemaVersion": 2, "config": `
)

// layout writes an OCI layout of one layer, in whose documents texts are replaced by others.
func layout(tb testing.TB, layer []byte, replaced ...string) string {
	tb.Helper()
	dir := tb.TempDir()
	document := func(text string) []byte { return []byte(strings.NewReplacer(replaced...).Replace(text)) }
	config := addBlob(tb, dir, "config.v1+json", document(usualConfig))
	manifest := document(usualManifest + config + `, "layers": [` + addBlob(tb, dir, "layer.v1.tar+gzip", layer) + `]}`)
	write(tb, filepath.Join(dir, "index.json"), document(`{"manifests": [`+addBlob(tb, dir, "manifest.v1+json", manifest)+`]}`))
	write(tb, filepath.Join(dir, "oci-layout"), []byte(`{"imageLayoutVersion": "1.0.0"}`))
	return dir
}

func tarOf(tb testing.TB, files ...imagetest.File) []byte {
	tb.Helper()
	return imagetest.Layer{Files: files}.Tar(tb)
}

// TestBroken checks what is said of images that cannot be read.
func TestBroken(t *testing.T) {
	good := tarOf(t, imagetest.File{Name: "usr/bin/true", Content: "x"}, imagetest.File{Name: lib + "libnccl.so.2", Content: strings.Repeat("x", 5000)})
	packed := checktest.Gzip(good)
	damaged := slices.Clone(packed)
	damaged[len(damaged)/2] ^= 0xff
	file := func(content []byte) string {
		name := filepath.Join(t.TempDir(), "file")
		write(t, name, content)
		return name
	}
	pipe := func(name string) string {
		expect.NoError(t, syscall.Mkfifo(name, 0o600))
		return name
	}
	layer := func(raw []byte) string { return layout(t, raw) }
	replaced := func(texts ...string) string { return layout(t, packed, texts...) }
	// instead is a layout with something else in the place of a blob, or nothing.
	instead := func(blob []byte, put func(name string)) string {
		dir := layout(t, packed)
		expect.NoError(t, os.Remove(blobFile(dir, blob)))
		put(blobFile(dir, blob))
		return dir
	}
	deep, inner := layout(t, packed), ""
	for range 5 {
		inner = addBlob(t, deep, "index.v1+json", []byte(`{"manifests": [`+inner+`]}`))
	}
	write(t, filepath.Join(deep, "index.json"), []byte(`{"manifests": [`+inner+`]}`))
	for name, tt := range map[string]struct {
		at, want string
		is       error
	}{
		"no such file":          {at: "/nonexistent/image", is: os.ErrNotExist},
		"empty file":            {at: file(nil), is: image.ErrNotImage},
		"text":                  {at: file(bytes.Repeat([]byte("NCCL INFO\n"), 100)), is: image.ErrNotImage},
		"gzip of a text":        {at: file(checktest.Gzip(bytes.Repeat([]byte("NCCL INFO\n"), 100))), is: image.ErrNotImage},
		"compressed as a whole": {at: written(t, small, imagetest.Docker+".gz"), is: image.ErrPacked},
		"empty folder":          {at: t.TempDir(), is: image.ErrNotImage},
		"a pipe":                {at: pipe(filepath.Join(t.TempDir(), "p")), is: image.ErrNotImage},
		"truncated gzip":        {at: layer(packed[:len(packed)-20]), want: "unexpected EOF"},
		"damaged gzip":          {at: layer(damaged), want: "broken tar"},
		"truncated tar":         {at: layer(good[:len(good)-4000]), want: "unexpected EOF"},
		"garbage":               {at: layer(bytes.Repeat([]byte("garbage "), 1000)), want: "broken tar"},
		"broken zstd":           {at: layer([]byte("\x28\xb5\x2f\xfd" + strings.Repeat("x", 1000))), want: "broken tar"},
		"xz":                    {at: layer([]byte("\xfd7zXZ\x00" + strings.Repeat("x", 1000))), want: "compressed with xz"},
		"leaves the image":      {at: layer(tarOf(t, imagetest.File{Name: "../../etc/passwd", Content: "x"})), want: "a path leaves the image"},
		"a link out of it":      {at: layer(tarOf(t, imagetest.File{Name: "usr/lib/libcuda.so.1", Target: "../../../etc/shadow", Hard: true})), want: "a path leaves the image"},
		"another layer":         {at: instead(packed, func(name string) { write(t, name, checktest.Gzip(append(slices.Clone(good), 0))) }), want: "it is damaged"},
		"another document":      {at: instead([]byte(usualConfig), func(name string) { write(t, name, []byte("{}")) }), want: "it is damaged"},
		"no layer":              {at: instead(packed, func(string) {}), want: "does not hold it"},
		"a layer outside":       {at: instead(packed, func(name string) { expect.NoError(t, os.Symlink("/etc/passwd", name)) }), want: "path escapes"},
		"a layer that waits":    {at: instead(packed, func(name string) { pipe(name) }), want: "not a regular file"},
		"encrypted":             {at: replaced("tar+gzip", "tar+gzip+encrypted"), is: image.ErrEncrypted},
		"unknown media type":    {at: replaced("vnd.oci.image.layer.v1.tar+gzip", "x-parquet"), want: `the media type "application/x-parquet" is not supported`},
		"no container image":    {at: replaced("vnd.oci.image.config.v1+json", "vnd.cncf.helm.config.v1+json"), is: image.ErrNotImage},
		"digest that escapes":   {at: replaced(digest(packed), "sha256:../../../../etc/passwd"), want: "non-hex character in hash"},
		"unknown digest":        {at: replaced(digest(packed), "md5:d41d8cd98f00b204e9800998ecf8427e"), want: "unsupported hash"},
		"another size":          {at: replaced(fmt.Sprintf(`"size": %d`, len(packed)), fmt.Sprintf(`"size": %d`, len(packed)+1)), want: "it is damaged"},
		"negative size":         {at: replaced(fmt.Sprintf(`"size": %d`, len(packed)), `"size": -1`), want: "it is damaged"},
		"schema 1":              {at: replaced(`"schemaVersion": 2`, `"schemaVersion": 1`), want: "schema 1"},
		"Windows":               {at: replaced("linux", "windows"), want: "an image for windows"},
		"broken configuration":  {at: replaced(usualConfig, "{"), want: "broken configuration"},
		"broken manifest":       {at: replaced(usualManifest, "not JSON"), want: "broken manifest"},
		"no image":              {at: replaced(`{"manifests": [`, `{"manifests": [], "x": [`), want: "names no image"},
		"several images":        {at: replaced(`{"manifests": [`, `{"manifests": [{}, `), is: image.ErrSeveral},
		"indexes without end":   {at: deep, want: "too many indexes"},
	} {
		_, err := image.Open(t.Context(), tt.at, true, usualOptions)
		expect.Must(t, err != nil, "%s: it was read", name)
		expect.That(t, (tt.is == nil || errors.Is(err, tt.is)) && strings.Contains(err.Error(), tt.want), "%s: got %v, want %s%v", name, err, tt.want, tt.is)
		expect.That(t, !strings.Contains(err.Error(), "\n"), "%s: more than a line: %q", name, err)
	}
}

// TestLimits checks that what an image may hold is bounded.
func TestLimits(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	many := make([]imagetest.File, 1000)
	for i := range many {
		many[i] = imagetest.File{Name: fmt.Sprintf("usr/lib/%d", i), Target: strings.Repeat("x", 100)}
	}
	zeros := tarOf(t, imagetest.File{Name: "usr/lib/libnccl.so.2", Size: 64 << 20})
	for name, tt := range map[string]struct {
		layer  []byte
		change func(*image.Limits)
		want   error
	}{
		"entries": {layer: tarOf(t, many...), change: func(l *image.Limits) { l.Entries = 999 }, want: image.ErrTooLarge},
		"kept":    {layer: tarOf(t, many...), change: func(l *image.Limits) { l.Kept = 100_000 }, want: image.ErrTooLarge},
		"folders": {layer: tarOf(t, imagetest.File{Name: strings.Repeat("a/", 1000) + "libcuda.so.1"}), change: func(l *image.Limits) { l.Kept = 100_000 }, want: image.ErrTooLarge},
		"bytes":   {layer: checktest.Gzip(zeros), change: func(l *image.Limits) { l.Bytes = 32 << 20 }, want: image.ErrTooLarge},
		"bomb":    {layer: checktest.Gzip(zeros), change: func(l *image.Limits) { l.Free = 1 << 20 }, want: image.ErrBomb},
		"sparse":  {layer: sparse(t), change: func(l *image.Limits) { l.Bytes = 1 << 30 }, want: image.ErrTooLarge},
		"none":    {layer: checktest.Gzip(zeros), change: func(*image.Limits) {}},
	} {
		limits := image.DefaultLimits
		tt.change(&limits)
		_, err := image.Open(t.Context(), layout(t, tt.layer), true, image.Options{Limits: limits})
		expect.That(t, errors.Is(err, tt.want), "%s: got %v, want %v", name, err, tt.want)
	}
}

// sparse is a layer with a large file of which the archive holds nothing.
func sparse(tb testing.TB) []byte {
	tb.Helper()
	dir := tb.TempDir()
	write(tb, filepath.Join(dir, lib, "libnccl.so.2"), nil)
	expect.NoError(tb, os.Truncate(filepath.Join(dir, lib, "libnccl.so.2"), 1<<40))
	return expect.Value(exec.CommandContext(tb.Context(), "tar", "-c", "-S", "-H", "posix", "-C", dir, "usr").Output())(tb)
}

// TestPlatforms checks which image of an index is read.
func TestPlatforms(t *testing.T) {
	platforms := []v1.Platform{
		{OS: "linux", Architecture: "amd64"},
		{OS: "linux", Architecture: "arm64", Variant: "v8"},
		{OS: "unknown", Architecture: "unknown"},
	}
	var images []v1.Image
	for _, p := range platforms {
		img := small
		img.Architecture = p.Architecture
		img.User = p.Architecture
		images = append(images, img.Build(t))
	}
	several, nested := imagetest.WriteIndex(t, platforms, images, false), imagetest.WriteIndex(t, platforms, images, true)
	one := imagetest.WriteIndex(t, platforms[:1], images[:1], false)
	for _, tt := range []struct {
		at, platform, arch, want string
		is                       error
	}{
		{several, "", "", "amd64", nil},
		{nested, "", "", "amd64", nil},
		{several, "", "arm64", "arm64", nil},
		{several, "linux/arm64", "", "arm64", nil},
		{several, "linux/arm64/v8", "", "arm64", nil},
		{several, "linux/riscv64", "", "", image.ErrPlatform},
		{several, "", "riscv64", "", image.ErrPlatform},
		{one, "", "", "amd64", nil},
		{one, "", "arm64", "amd64", nil}, // There is no other.
		{one, "linux/amd64", "", "amd64", nil},
		{one, "linux/arm64", "", "", image.ErrPlatform},
	} {
		o := usualOptions
		o.Platform.Architecture = tt.arch
		if tt.platform != "" {
			o.Platform, _ = image.ParsePlatform(tt.platform)
		}
		img, err := image.Open(t.Context(), tt.at, true, o)
		expect.That(t, errors.Is(err, tt.is) && (err != nil || img.Facts().User == tt.want), "%s for %q %q: got %v", tt.at, tt.platform, tt.arch, err)
		expect.That(t, !errors.Is(err, image.ErrPlatform) || strings.Contains(err.Error(), "amd64"), "it does not say what there is: %v", err)
	}
	for _, text := range []string{"", "linux", "amd64", "linux/", "windows/amd64", "linux/amd64/", "linux/amd64/v1/x", "Linux/AMD64", "linux/amd64\n"} {
		p, ok := image.ParsePlatform(text)
		expect.That(t, !ok, "%q is the platform %s", text, p)
	}
}

// TestCancelled checks that a reading ends with its context.
func TestCancelled(t *testing.T) {
	at := imagetest.Write(t, small, imagetest.Layout)
	ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	expect.Fails(image.Open(ctx, at, true, usualOptions))(t, context.DeadlineExceeded, "it")
}

// TestTickets checks that what people send in a ticket is not taken for an image.
func TestTickets(t *testing.T) {
	for name, names := range map[string][]string{
		"logs": {"nccl.log", "etc/nccl.conf"}, "sosreport": {"etc/hosts", "proc/cpuinfo", "sys/x", "usr/x", "sos_commands/pci/lspci"},
	} {
		dir := t.TempDir()
		var files []imagetest.File
		for _, n := range names {
			write(t, filepath.Join(dir, n), []byte("x"))
			files = append(files, imagetest.File{Name: n, Content: "x"})
		}
		file := filepath.Join(t.TempDir(), "ticket.tar")
		write(t, file, tarOf(t, files...))
		for _, at := range []string{dir, file} {
			is, err := image.Is(at, false)
			expect.That(t, !is && err == nil, "%s, %s: %v %v", name, at, is, err)
		}
	}
}

// FuzzLayer checks that no layer makes the reader fail in another way than with an error, or read more than its limits.
func FuzzLayer(f *testing.F) {
	f.Add(tarOf(f, small.Layers[0].Files...))
	f.Add(checktest.Gzip(tarOf(f, small.Layers[1].Files...)))
	f.Add(tarOf(f, imagetest.File{Name: "usr/.wh..wh..opq"}, imagetest.File{Name: "usr/.wh.lib"}, imagetest.File{Name: "usr/lib", Target: "../usr/lib"}))
	f.Add(sparse(f))
	limits := image.Limits{Entries: 1000, Bytes: 4 << 20, Kept: 1 << 20, Free: 4 << 20}
	f.Fuzz(func(t *testing.T, raw []byte) {
		img, err := image.Open(t.Context(), layout(t, raw), true, image.Options{Limits: limits})
		if err != nil {
			expect.That(t, !strings.Contains(err.Error(), "\n"), "more than a line: %q", err)
			return
		}
		got, _ := checks.GatherImage(t.Context(), img, gather.Options{})
		expect.That(t, got.Libraries != nil && int64(got.Image.Files) <= limits.Entries, "got %+v", got)
	})
}

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
	for _, form := range []string{imagetest.Docker, imagetest.Layout} {
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
