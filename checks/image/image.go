// Package image reads what a container image holds, without running it. Layers are read once, as a stream; only what checks ask
// for is kept of them, and serves as the files of a host.
package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

const (
	formLayout   = "oci-layout"
	formOCI      = "oci-archive"
	formDocker   = "docker-archive"
	formFolder   = "root-folder"
	formPacked   = "packed"
	formRegistry = "registry"
	maxShown     = 256
	maxUnread    = 64
	maxLayers    = 512
	maxParallel  = 4
)

// Options say how an image is read.
type Options struct {
	Limits Limits
	// Platform is the one to take of an index with several.
	Platform Platform
}

// Limits bound what an image may hold.
type Limits struct {
	// Entries is how many files, folders and links all layers have at most.
	Entries int64
	// Bytes is how much they have at most, unpacked.
	Bytes int64
	// Kept is how much of them is kept in memory.
	Kept int64
	// Free is how much of a layer is unpacked however small the layer is; beyond it, a
	// layer may have maxRatio times its size.
	Free int64
}

// DefaultLimits are far above those of images that exist: 200,000 files and 30 GB are large.
var DefaultLimits = Limits{Entries: 4_000_000, Bytes: 256 << 30, Kept: 96 << 20, Free: 2 << 30}

// maxRatio is how many times its size a layer is unpacked to at most: gzip reaches 1030, libraries 10.
const maxRatio = 200

// The errors for which there is a hint.
var (
	ErrNotImage  = errors.New("not a container image")
	ErrTooLarge  = errors.New("the image is larger than the limit")
	ErrBomb      = errors.New("a layer is unpacked to more than 200 times its size")
	ErrEncrypted = errors.New("the layer is encrypted")
	ErrSeveral   = errors.New("it holds several images")
	ErrPlatform  = errors.New("it holds no image")
	ErrDamaged   = errors.New("damaged")
	ErrPacked    = errors.New("the archive is compressed as a whole")
	errLeaves    = errors.New("a path leaves the image")
	errPacking   = errors.New("compressed with xz or bzip2, which is not supported")
)

// Image is an image that was read.
type Image struct {
	source *source
	facts  *facts.ImageFacts
}

// Host returns the image as checks read it.
func (i *Image) Host() *host.Host { return host.New(i.source) }

// Facts returns what the image says about itself.
func (i *Image) Facts() *facts.ImageFacts { return i.facts }

// Open reads an image. A root folder is one only where it is sure that name is an image.
func Open(ctx context.Context, name string, sure bool, o Options) (*Image, error) {
	form, err := formOf(name, sure)
	if err != nil {
		return nil, err
	}
	s := &scanner{platform: o.Platform, budget: &budget{limits: o.Limits}}
	switch form {
	case formPacked:
		return nil, ErrPacked // Its members could not be read where they lie.
	case formOCI:
		return s.openFile(ctx, name)
	}
	root, err := os.OpenRoot(name) // A link to the folder is followed, none out of it.
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // It was only read.
	if form == formLayout {
		return s.layout(ctx, folderStore(root), form)
	}
	return s.folder(ctx, root)
}

func (s *scanner) openFile(ctx context.Context, name string) (*Image, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // It was only read.
	a, err := s.index(f)
	if err != nil {
		return nil, err
	}
	return s.layout(ctx, a.open, formOCI)
}

// Is reports whether a file or a folder is an image; sure is as for Open.
func Is(name string, sure bool) (bool, error) {
	_, err := formOf(name, sure)
	if errors.Is(err, ErrNotImage) {
		return false, nil
	}
	return err == nil, err
}

func formOf(name string, sure bool) (string, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return formOfFolder(name, sure)
	case !info.Mode().IsRegular():
		return "", ErrNotImage
	}
	return formOfFile(name)
}

func formOfFolder(name string, sure bool) (string, error) {
	if info, err := os.Lstat(filepath.Join(name, "oci-layout")); err == nil && info.Mode().IsRegular() {
		return formLayout, nil
	}
	for _, folder := range rootFolders {
		if _, err := os.Lstat(filepath.Join(name, folder)); err == nil && sure {
			return formFolder, nil
		}
	}
	return "", ErrNotImage
}

// The bounds of what tells what a file is, by the members at the beginning of an archive.
const (
	maxHeads    = 64
	maxUnpacked = 64 << 20
)

func formOfFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // It was only read.
	head := make([]byte, blockBytes)
	n, _ := f.ReadAt(head, 0) // A short file is no image.
	form, members := formOCI, tar.NewReader(f)
	if isPacked(head[:n]) {
		plain, err := decompress(f)
		if err != nil {
			return "", err
		}
		defer plain.Close() //nolint:errcheck // It was only read.
		form, members = formPacked, tar.NewReader(io.LimitReader(plain, maxUnpacked))
	}
	for range maxHeads {
		member, err := members.Next()
		if err != nil {
			break
		}
		if blobName.MatchString(strings.TrimPrefix(path.Join("/", member.Name), "/")) {
			return form, nil
		}
	}
	return "", ErrNotImage
}

// blobName is what the members of an image's archive are called by docker save, Podman and go-containerregistry.
var blobName = lazy.New(`^(?:manifest\.json|index\.json|oci-layout|repositories|blobs(?:/.*)?|sha256:[0-9a-f]{64}|[0-9a-f]{64}(?:/.*|\.json|\.tar(?:\.gz)?)?)$`)

// rootFolders are those in a root file system (Filesystem Hierarchy Standard 3.0).
var rootFolders = []string{"bin", "boot", "dev", "etc", "home", "lib", "lib64", "media", "mnt", "opt", "proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var"}

func (s *scanner) fromLayers(ctx context.Context, st store, c *configuration) (*Image, error) {
	if len(c.layers) > maxLayers {
		return nil, fmt.Errorf("it has %d layers, more than %d", len(c.layers), maxLayers)
	}
	read := make([]*layer, len(c.layers))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(min(runtime.GOMAXPROCS(0), maxParallel))
	for i, b := range c.layers {
		group.Go(func() (err error) {
			if read[i], err = s.layer(ctx, st, b); err != nil {
				err = fmt.Errorf("layer %d (%s): %w", i+1, b.short(), err)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	t, f := s.newTree(), c.facts()
	for i, l := range read {
		if err := t.apply(l, i+1); err != nil {
			return nil, err
		}
		f.Files += l.files
		f.Layers = append(f.Layers, facts.ImageLayer{Index: i + 1, Digest: c.digest(i), Command: c.command(i)})
	}
	return s.finish(t.source(f.Layers), f, c.config.Config.Env), nil
}

func (s *scanner) layer(ctx context.Context, st store, b blob) (*layer, error) {
	r, err := st(ctx, b)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // It was only read.
	return s.archive(ctx, r)
}

func (s *scanner) finish(src *source, f *facts.ImageFacts, env []string) *Image {
	// Where the variables were not known when files were read, the one that they name may be in the image.
	if file := confFile(env); file != "" && !s.keepsWhole(file) {
		if found, err := host.New(src).Exists(file); err == nil && !found {
			src.AddError(file, errNotKept)
		}
	}
	unread := src.tree.unread
	for _, name := range unread[:min(len(unread), maxUnread)] {
		f.Unread = append(f.Unread, escape.Printable(name, maxShown))
	}
	if f.Environment == "" {
		src.AnswerError(host.AskEnviron, errNoEnvironment)
	} else {
		src.Answer(host.AskEnviron, host.WantedEnviron(env))
	}
	src.Answer(host.AskIDs, host.IDs{UID: userID(f.User)})
	return &Image{source: src, facts: f}
}

var errNoEnvironment = fmt.Errorf("a root folder does not hold the variables of its image: %w", errors.ErrUnsupported)

// budget is what was read of an image. Layers that are read at the same time share it.
type budget struct {
	limits               Limits
	entries, bytes, held atomic.Int64
}

// spend counts what was read against a limit, which a message shows in units.
func spend(used *atomic.Int64, n, limit, unit int64, what string) error {
	if used.Add(n) > limit {
		return fmt.Errorf("%w: more than %d %s", ErrTooLarge, limit/unit, what)
	}
	return nil
}

func (b *budget) entry() error { return spend(&b.entries, 1, b.limits.Entries, 1, "files") }

// keep counts what is kept of an entry in memory.
func (b *budget) keep(n int) error {
	const overhead = 200 // Of an entry and its node.
	return spend(&b.held, int64(n)+overhead, b.limits.Kept, 1<<20, "MiB of folders, links and libraries")
}

func (b *budget) take(n int64) error {
	return spend(&b.bytes, n, b.limits.Bytes, 1<<30, "GiB unpacked")
}

func (b *budget) ratio(unpacked, packed int64) error {
	if unpacked > b.limits.Free && unpacked-b.limits.Free > maxRatio*packed {
		return ErrBomb
	}
	return nil
}
