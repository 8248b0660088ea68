package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/image"
	"github.com/gpudoctor/gpudoctor/checks/image/registry"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/rules"
)

func imageCommand() *cli.Command {
	return &cli.Command{
		Name:      "image",
		Usage:     "examine a container image without running it",
		ArgsUsage: "IMAGE",
		Flags:     judgingFlags(),
		Action:    examineImage,
	}
}

func examineImage(c *cli.Context) error {
	names := c.Args().Slice()
	if len(names) != 1 {
		return complaint.Hinted(fmt.Errorf("image takes one image, got %d", len(names)), "gpudoctor image image.tar", takesImages)
	}
	r, err := readJudging(c, rules.Image)
	if err != nil {
		return err
	}
	flags := repeat("profile", string(rules.Image))
	if name := names[0]; name != "/" { // There, gpudoctor runs in the image.
		if r.source.remote, err = findImage(c.Context, name); err != nil {
			return err
		}
		r.source.from, r.source.image, r.again.Files = names, true, true
		if r.source.remote != nil && !isRemoteImage(name) {
			name = registry.Scheme + name // What image takes for a reference, --from takes for a path.
		}
		flags = append(repeat(fromFlag.Name, name), flags...)
	}
	r.again.Flags = append(flags, r.again.Flags...)
	if err := r.readTarget(c); err != nil {
		return err
	}
	return runRequest(c, r)
}

// takeImage finds out whether --from names an image, and judges it as one.
func (r *request) takeImage(c *cli.Context) error {
	sure := r.profile == rules.Image
	if err := r.source.takeImage(c.Context, sure); err != nil || !r.source.image {
		return err
	}
	if !sure && c.IsSet("profile") {
		name := complaint.Quote(r.source.from[0])
		return complaint.Hinted(fmt.Errorf("--from %s is an image, which is judged with --profile image", name), "gpudoctor image "+name)
	}
	r.profile = rules.Image
	return nil
}

// takeImage finds out whether --from names an image, which must then be alone.
func (s *source) takeImage(ctx context.Context, sure bool) error {
	for _, name := range s.from {
		switch {
		case name == standardInput, strings.HasPrefix(name, examplePrefix):
			continue
		case isRemoteImage(name):
			ref, err := findImage(ctx, name)
			if err != nil {
				return err
			}
			s.remote = ref
		default:
			// Why it cannot be read is found when it is read.
			if is, err := isImage(ctx, name, sure); err != nil || !is {
				continue
			}
		}
		if len(s.from)+len(s.with) > 1 {
			return complaint.Hinted(fmt.Errorf("--from %s is an image, which cannot be combined with other input", complaint.Quote(name)), "examine it separately: gpudoctor image "+complaint.Quote(name))
		}
		s.image = true
	}
	return nil
}

func (s source) gatherImage(ctx context.Context, opts gather.Options) gathered {
	if opts.Whole > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, deadline.Within(opts.Whole), errImageDeadline)
		defer stop()
	}
	if opts.Progress != nil {
		opts.Progress("image")
	}
	o := image.Options{Limits: image.DefaultLimits, Platform: s.platform}
	if s.maxBytes > 0 {
		o.Limits.Bytes = s.maxBytes
	}
	img, err := s.openImage(ctx, o)
	if err != nil {
		return gathered{err: imageProblem(s.from[0], err)}
	}
	f, took := checks.GatherImage(ctx, img, opts)
	return gathered{facts: f, took: took, err: context.Cause(ctx)}
}

func (s source) openImage(ctx context.Context, o image.Options) (*image.Image, error) {
	if s.remote == nil {
		return image.Open(ctx, s.from[0], true, o)
	}
	return image.OpenRemote(ctx, *s.remote, registry.Options{
		PlainHTTP: s.plainHTTP, Silence: deadline.Silence, Logins: registry.LoginFiles(os.Getenv),
	}, o)
}

const takesImages = "an image is an OCI layout, an archive of docker save or podman save, or a root folder"

var errImageDeadline = errors.New("the deadline was reached (--deadline)")

// isImage reports whether a file is an image; sure is as for image.Open.
func isImage(ctx context.Context, name string, sure bool) (bool, error) {
	return files.Within(ctx, deadline.Silence, func() (bool, error) { return image.Is(name, sure) })
}

// isRemoteImage reports whether a name can only be that of an image in a registry.
func isRemoteImage(name string) bool { return strings.HasPrefix(name, registry.Scheme) }

// findImage finds out whether a name is that of a file that is an image, for which it returns nil, or of an image in a
// registry. A file counts first, and what looks like a path is never looked for in a registry.
func findImage(ctx context.Context, name string) (*registry.Reference, error) {
	ref, wrong := registry.Parse(name)
	is, err := false, wrong
	if !isRemoteImage(name) {
		is, err = isImage(ctx, name, true)
	}
	switch {
	case isRemoteImage(name) && err == nil, errors.Is(err, fs.ErrNotExist) && wrong == nil && !inFolder(ctx, name):
		return &ref, nil
	case is && err == nil:
		return nil, nil //nolint:nilnil // It is a file.
	case err == nil:
		err = image.ErrNotImage
	}
	return nil, imageProblem(name, err)
}

func inFolder(ctx context.Context, name string) bool {
	first, _, _ := strings.Cut(filepath.ToSlash(name), "/")
	_, err := files.Within(ctx, deadline.Silence, func() (fs.FileInfo, error) { return os.Stat(first) })
	return !errors.Is(err, fs.ErrNotExist)
}

type imageHint struct {
	err  error
	hint string
}

// imageHints are what to do about the errors of images and registries.
var imageHints = []imageHint{
	{registry.ErrReference, "a reference is HOST/NAME:TAG or HOST/NAME@sha256:DIGEST: ghcr.io/org/app:1.2"},
	{registry.ErrNotFound, "check the name and the tag; some registries also say this of images that need a login"},
	{registry.ErrLogins, "docker login or podman login writes it; REGISTRY_AUTH_FILE names another"},
	{registry.ErrBusy, "wait and try again; registries accept more requests of users who have logged in"},
	{registry.ErrSilent, "try again; HTTPS_PROXY names a proxy, if one is needed"},
	{registry.ErrConnect, "check the name of the host; HTTPS_PROXY names a proxy, SSL_CERT_FILE certificates, and --plain-http is for a registry without encryption"},
	{registry.ErrAnswer, "the registry or a proxy before it is at fault; to examine the image nevertheless: skopeo copy docker://REF oci-archive:image.tar"},
	{image.ErrNotImage, takesImages},
	{image.ErrPacked, "gunzip image.tar.gz, or zstd -d image.tar.zst"},
	{image.ErrPlatform, "--platform linux/arm64 examines that of another platform"},
	{image.ErrSeveral, "save one image: skopeo copy docker://REF oci-archive:image.tar"},
	{image.ErrEncrypted, "decrypt it first: skopeo copy --decryption-key KEY SOURCE oci-archive:image.tar"},
	{image.ErrTooLarge, "unpack it, and examine the root folder; --max-bytes of gpudoctor check sets another limit"},
	{image.ErrBomb, "no image of libraries is compressed like that: check where it comes from"},
	{errImageDeadline, "--deadline sets another limit"},
	{fs.ErrPermission, makeReadable},
	{fs.ErrNotExist, takesImages + "; one in a registry is named with its host: docker.io/library/ubuntu:22.04"},
}

// imageProblem says what cannot be read, and what to do about it.
func imageProblem(name string, err error) error {
	if _, ok := errors.AsType[complaint.Error](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	hints := []string{"save the image again: skopeo copy docker://REF oci-archive:image.tar"}
	if i := slices.IndexFunc(imageHints, func(known imageHint) bool { return errors.Is(err, known.err) }); i >= 0 {
		hints = []string{imageHints[i].hint}
	}
	if denied, ok := errors.AsType[*registry.DeniedError](err); ok {
		hints = deniedHints(denied)
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrNotExist) {
		err = at.Err // The name is said.
	}
	return complaint.Hinted(fmt.Errorf("%s: %w", complaint.Quote(name), err), hints...)
}

func deniedHints(denied *registry.DeniedError) []string {
	login := fmt.Sprintf("podman login --authfile auth.json %s, then REGISTRY_AUTH_FILE=auth.json gpudoctor image ...", denied.Host)
	switch {
	case denied.Sent:
		return []string{"the password was sent: check that this user may read the image", login}
	case denied.Helper != "":
		return []string{"only " + denied.Helper + " may know the password, and gpudoctor runs no program; a file with it can be made: " + login}
	}
	return []string{"no file has a password for " + denied.Host + ": " + login}
}
