package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/checks/image"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
)

// takesImages is what the command image takes, for hints.
const takesImages = "an image is an OCI layout, an archive of docker save or podman save, or a root folder"

// errImageDeadline is the cause of a reading that took too long.
var errImageDeadline = errors.New("the deadline was reached (--deadline)")

// isImage reports whether a file is an image; sure is as for image.Open.
func isImage(ctx context.Context, name string, sure bool) (bool, error) {
	return files.Within(ctx, deadline.Silence, func() (bool, error) { return image.Is(name, sure) })
}

// findImage checks that a name is that of an image.
func findImage(ctx context.Context, name string) error {
	is, err := isImage(ctx, name, true)
	switch {
	case is && err == nil:
		return nil
	case err == nil:
		err = image.ErrNotImage
	}
	return imageProblem(fmt.Errorf("%s: %w", complaint.Quote(name), withoutPath(err)))
}

// withoutPath leaves out of an error of the file system what the command names.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, os.ErrNotExist) {
		return p.Err
	}
	return err
}

// imageHints are what to do about the errors of images.
var imageHints = []struct {
	err  error
	hint string
}{
	{image.ErrNotImage, takesImages},
	{image.ErrPlatform, "--platform linux/arm64 examines that of another platform"},
	{image.ErrSeveral, "save one image: skopeo copy docker://REF oci-archive:image.tar"},
	{image.ErrEncrypted, "decrypt it first: skopeo copy --decryption-key KEY SOURCE oci-archive:image.tar"},
	{image.ErrTooLarge, "unpack it, and examine the root folder; --max-bytes of gpudoctor check sets another limit"},
	{image.ErrPacked, "gunzip image.tar.gz, or zstd -d image.tar.zst"},
	{image.ErrBomb, "no image of libraries is compressed like that: check where it comes from"},
	{errImageDeadline, "--deadline sets another limit"},
	{fs.ErrPermission, makeReadable},
	{fs.ErrNotExist, takesImages + "; save one that is in a registry: skopeo copy docker://REF oci-archive:image.tar"},
}

// hintsOfImage are what to do about an image that cannot be read.
func hintsOfImage(err error) []string {
	for _, known := range imageHints {
		if errors.Is(err, known.err) {
			return []string{known.hint}
		}
	}
	return []string{"save the image again: skopeo copy docker://REF oci-archive:image.tar"}
}
