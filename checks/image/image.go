// Package image reads what a container image holds, without running it: an OCI layout, a
// docker-archive, a root folder or the tar archive of one. Layers are read once, as a
// stream; only what checks ask for is kept of them, and serves as the files of a host.
package image

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
)

// The forms of an image.
const (
	formLayout   = "oci-layout"
	formOCI      = "oci-archive"
	formDocker   = "docker-archive"
	formFolder   = "root-folder"
	formTar      = "root-tar"
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

// DefaultLimits are far above those of images that exist: 200,000 files and 30 GB are
// large.
var DefaultLimits = Limits{Entries: 4_000_000, Bytes: 256 << 30, Kept: 96 << 20, Free: 2 << 30}

// maxRatio is how many times its size a layer is unpacked to at most: gzip reaches 1030,
// layers of libraries 10.
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

// Open reads an image. sure is false where name may as well be something else than an
// image: then ErrNotImage is returned for a folder or a tar archive that is not clearly one.
func Open(ctx context.Context, name string, sure bool, o Options) (*Image, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	s := newScanner(o)
	if info.IsDir() {
		return openFolder(ctx, name, sure, s)
	}
	if !info.Mode().IsRegular() {
		return nil, ErrNotImage
	}
	return openFile(ctx, name, sure, s)
}

func newScanner(o Options) *scanner {
	return &scanner{limits: o.Limits, platform: o.Platform, seed: maphash.MakeSeed(), budget: &budget{limits: o.Limits}}
}

// Is reports whether a file or a folder is an image; sure is as for Open.
func Is(name string, sure bool) (bool, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return false, err
	case info.IsDir():
		form, err := formOfFolder(name, sure)
		return form != "", err
	case !info.Mode().IsRegular() || info.Size() < blockBytes:
		return false, nil
	}
	_, _, err = formOfFile(name, sure)
	if errors.Is(err, ErrNotImage) {
		return false, nil
	}
	return err == nil, err
}

// formOfFolder tells an OCI layout from a root folder; it is empty for other folders.
func formOfFolder(root string, sure bool) (string, error) {
	if info, err := os.Lstat(filepath.Join(root, "oci-layout")); err == nil && info.Mode().IsRegular() {
		return formLayout, nil
	}
	f, err := os.Open(root)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // It was only read.
	tops, err := f.Readdirnames(maxTops)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if isRoot(tops, sure) && (sure || !holdsSys(root)) {
		return formFolder, nil
	}
	return "", nil
}

// holdsSys reports whether a folder holds what /sys shows, as the copy of a machine does. The root of
// this system, in which it is mounted, is still an image.
func holdsSys(root string) bool {
	sys, err := os.ReadDir(filepath.Join(root, "sys"))
	return err == nil && len(sys) > 0 && filepath.Clean(root) != "/"
}

// maxTops is how many names of a folder tell what it is.
const maxTops = 1000

// openFolder reads an OCI layout or a root folder.
func openFolder(ctx context.Context, name string, sure bool, s *scanner) (*Image, error) {
	// A link to the folder is followed, those in it are not.
	root, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, err
	}
	switch form, err := formOfFolder(root, sure); {
	case err != nil:
		return nil, err
	case form == "":
		return nil, ErrNotImage
	case form == formLayout:
		return s.layout(ctx, &folderStore{root}, form)
	}
	l, unread, err := s.folder(ctx, root)
	if err != nil {
		return nil, err
	}
	return s.fromRoot(l, formFolder, unread)
}

// rootFolders are those in a root file system (Filesystem Hierarchy Standard 3.0).
var rootFolders = []string{"bin", "boot", "dev", "etc", "home", "lib", "lib64", "media", "mnt", "opt", "proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var"}

// isRoot reports whether names are those in a root folder. A report on a machine, such as
// a sosreport, has such folders among others.
func isRoot(tops []string, sure bool) bool {
	known := 0
	for _, name := range tops {
		switch {
		case slices.Contains(rootFolders, name):
			known++
		case strings.HasPrefix(name, "sos_"), name == "version.txt":
			return false
		}
	}
	hasUsr := slices.Contains(tops, "usr") || slices.Contains(tops, "lib")
	return known >= 1 && sure || known >= 4 && hasUsr && known*2 > len(tops)
}

// fromRoot makes an image of the files of a root folder.
func (s *scanner) fromRoot(l *layer, form string, unread []string) (*Image, error) {
	t := newTree(s.seed)
	t.apply(l, 0)
	t.unread = append(t.unread, unread...)
	f := &facts.ImageFacts{Form: form, Files: l.files}
	src := t.source(nil)
	env, from := environmentOf(src.Memory)
	f.Environment = from
	return finish(src, t, f, env), nil
}

// fromLayers makes an image of its layers and its configuration.
func (s *scanner) fromLayers(ctx context.Context, st store, c *configuration) (*Image, error) {
	if len(c.layers) > maxLayers {
		return nil, fmt.Errorf("it has %d layers, more than %d", len(c.layers), maxLayers)
	}
	read := make([]*layer, len(c.layers))
	if err := parallel(ctx, len(c.layers), func(ctx context.Context, i int) error {
		l, err := st.layer(ctx, c.layers[i], s)
		if err != nil {
			return fmt.Errorf("layer %d (%s): %w", i+1, c.layers[i].short(), err)
		}
		read[i] = l
		return nil
	}); err != nil {
		return nil, err
	}
	t := newTree(s.seed)
	files := 0
	layers := make([]host.Layer, len(read))
	for i, l := range read {
		t.apply(l, i+1)
		files += l.files
		layers[i] = host.Layer{Index: i + 1, Digest: c.digest(i), Command: c.command(i)}
	}
	f := c.facts(layers)
	f.Files = files
	return finish(t.source(layers), t, f, c.config.Config.Env), nil
}

// finish gives the questions that no file answers.
func finish(src *source, t *tree, f *facts.ImageFacts, env []string) *Image {
	for _, name := range t.unread[:min(len(t.unread), maxUnread)] {
		f.Unread = append(f.Unread, escape.Printable(name, maxShown))
	}
	if f.Environment == "" {
		src.AnswerError(host.AskEnviron, errNoEnvironment)
	} else {
		src.Answer(host.AskEnviron, host.WantedEnviron(env))
	}
	src.Answer(host.AskIDs, host.IDs{UID: userID(src.Memory, f.User)})
	return &Image{source: src, facts: f}
}

// errNoEnvironment is why the variables of a root folder are unknown.
var errNoEnvironment = fmt.Errorf("a root folder does not hold the variables of its image: %w", errors.ErrUnsupported)

// parallel calls a function for 0 to n-1, several at a time, and returns the first error
// by number.
func parallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, n)
	slots := make(chan struct{}, min(runtime.GOMAXPROCS(0), maxParallel))
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if errs[i] = do(ctx, i); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return context.Cause(ctx)
}

// budget is what may still be read of an image. Layers that are read at the same time
// share it.
type budget struct {
	limits Limits
	mu     sync.Mutex
	used   Limits
}

func (b *budget) entry() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used.Entries++; b.used.Entries > b.limits.Entries {
		return fmt.Errorf("%w: more than %d files", ErrTooLarge, b.limits.Entries)
	}
	return nil
}

func (b *budget) keep(n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	const overhead = 200 // Of an entry and its node.
	if b.used.Kept += int64(n) + overhead; b.used.Kept > b.limits.Kept {
		return fmt.Errorf("%w: more than %d MiB of folders, links and libraries", ErrTooLarge, b.limits.Kept>>20)
	}
	return nil
}

// take counts what was unpacked.
func (b *budget) take(n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used.Bytes += n; b.used.Bytes > b.limits.Bytes {
		return fmt.Errorf("%w: more than %d GiB unpacked", ErrTooLarge, b.limits.Bytes>>30)
	}
	return nil
}

// ratio rejects a stream that is unpacked to far more than its size.
func (l Limits) ratio(unpacked, packed int64) error {
	if unpacked > l.Free && unpacked-l.Free > maxRatio*packed {
		return ErrBomb
	}
	return nil
}
