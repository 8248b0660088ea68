package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/image"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/rules"
)

// takesImages is what the command image takes, for hints.
const takesImages = "an image is an OCI layout, an archive of docker save or podman save, a root folder, or the tar archive of one"

func imageCommand() *cli.Command {
	return &cli.Command{
		Name:      "image",
		Usage:     "examine a container image without running it",
		ArgsUsage: "IMAGE",
		Description: `IMAGE is an OCI layout (folder or tar), an archive of docker save or podman save,
a root folder, the tar archive of one (docker export), or / for this system. Archives and
layers may be compressed with gzip or zstd. Nothing in it is run, and no GPU is needed.
To examine an image in a registry, save it first:
  skopeo copy docker://REF oci-archive:image.tar

The report, its formats and the exit codes are those of gpudoctor check --profile image,
which does the same inside an image, and with --from IMAGE.`,
		Flags:  judgingFlags(),
		Action: examineImage,
	}
}

// examineImage judges the image that the command names.
func examineImage(c *cli.Context) error {
	names := c.Args().Slice()
	if len(names) != 1 {
		return complaint.Hinted(fmt.Errorf("image takes one image, got %d", len(names)), "gpudoctor image image.tar", takesImages)
	}
	r, err := readJudging(c, rules.Image)
	if err != nil {
		return err
	}
	if err := r.readTarget(c); err != nil {
		return err
	}
	if names[0] == "/" {
		return runRequest(c, r) // gpudoctor runs in the image.
	}
	r.source.from = names
	if r.source.image, err = isImage(c.Context, names[0], true); err != nil || !r.source.image {
		return imageProblem(fmt.Errorf("%s: %w", complaint.Quote(names[0]), withoutPath(cmp.Or(err, image.ErrNotImage))))
	}
	return runRequest(c, r)
}

// isImage reports whether a file is an image; sure is as for image.Open.
func isImage(ctx context.Context, name string, sure bool) (bool, error) {
	return files.Within(ctx, deadline.Silence, func() (bool, error) { return image.Is(name, sure) })
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
		if name == standardInput || strings.HasPrefix(name, examplePrefix) {
			continue
		}
		// Why it cannot be read is found when it is read.
		if is, err := isImage(ctx, name, sure); err != nil || !is {
			continue
		}
		if len(s.from)+len(s.with) > 1 {
			return complaint.Hinted(fmt.Errorf("--from %s is an image, which cannot be combined with other input", complaint.Quote(name)), "examine it separately: gpudoctor image "+complaint.Quote(name))
		}
		s.image = true
	}
	return nil
}

// readTarget reads what machine an image is judged for.
func (r *request) readTarget(c *cli.Context) error {
	file, driver := c.String(targetFlag.Name), c.String(driverFlag.Name)
	if file == "" && driver == "" {
		return nil
	}
	if r.profile != rules.Image {
		return complaint.Hinted(errors.New("--target and --driver are for images and files of a job"), "gpudoctor image IMAGE, or --profile launch; a machine itself is examined with --from")
	}
	r.targetFile, r.driver = file, driver
	r.target = &facts.TargetFacts{Source: "--" + driverFlag.Name}
	if file != "" {
		of := source{from: []string{file}}
		if err := of.check(c.Context); err != nil {
			return err
		}
		g := of.machine(c.Context, gather.Options{Probe: probe.Off})
		switch {
		case g.err != nil:
			return g.err
		case g.facts == nil:
			return complaint.Hinted(fmt.Errorf("--target %s is neither a snapshot nor a facts file", complaint.Quote(file)), "on the target: gpudoctor snapshot -o target.txtar")
		}
		r.target = image.Target(file, g.facts)
	}
	if driver != "" {
		if !image.IsDriver(driver) {
			return complaint.Hinted(fmt.Errorf("invalid value %q for --driver", driver), "the version of an NVIDIA driver, as nvidia-smi shows it: 550.54.15")
		}
		r.target.Driver, r.target.CUDA = driver, ""
	}
	return nil
}

// gatherImage reads the facts of an image.
func (s source) gatherImage(ctx context.Context, opts gather.Options) gathered {
	debug.SetMemoryLimit(textsMemory)
	if opts.Whole > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, deadline.Within(opts.Whole), errImageDeadline)
		defer stop()
	}
	if opts.Progress != nil {
		opts.Progress("image")
	}
	limits := image.DefaultLimits
	if s.maxBytes > 0 {
		limits.Bytes = s.maxBytes
	}
	img, err := image.Open(ctx, s.from[0], true, limits)
	if err != nil {
		return gathered{err: imageProblem(fmt.Errorf("read %s: %w", complaint.Quote(s.from[0]), withoutPath(err)))}
	}
	f, took := checks.GatherImage(ctx, img, opts)
	return gathered{facts: f, took: took, err: context.Cause(ctx)}
}

// withoutPath leaves out of an error of the file system what the command names.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, os.ErrNotExist) {
		return p.Err
	}
	return err
}

var errImageDeadline = errors.New("the deadline was reached (--deadline)")

// imageProblem adds what to do about an image that cannot be read.
func imageProblem(err error) error {
	for _, known := range []struct {
		err  error
		hint string
	}{
		{image.ErrNotImage, takesImages},
		{image.ErrSeveral, "save one image, for one platform: skopeo copy docker://REF oci-archive:image.tar"},
		{image.ErrEncrypted, "decrypt it first: skopeo copy --decryption-key KEY SOURCE oci-archive:image.tar"},
		{image.ErrTooLarge, "unpack it, and examine the root folder; --max-bytes of gpudoctor check sets another limit"},
		{image.ErrBomb, "no image of libraries is compressed like that: check where it comes from"},
		{errImageDeadline, "--deadline sets another limit"},
		{fs.ErrPermission, "make it readable for this user, or run gpudoctor as a user who can read it"},
		{fs.ErrNotExist, takesImages + "; one in a registry must be saved first: skopeo copy docker://REF oci-archive:image.tar"},
	} {
		if errors.Is(err, known.err) {
			return complaint.Hinted(err, known.hint)
		}
	}
	if _, ok := errors.AsType[complaint.Error](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	return complaint.Hinted(err, "save the image again: skopeo copy docker://REF oci-archive:image.tar")
}
