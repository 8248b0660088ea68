package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/deadline"
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
		Description: `IMAGE is an OCI layout (folder or tar), an archive of docker save or podman save,
a root folder, the tar archive of one (docker export), or / for this system. Archives and
layers may be compressed with gzip or zstd. Nothing in it is run, and no GPU is needed.

A name that is no file is that of an image in a registry: ghcr.io/org/app:1.2, or
docker://ubuntu:22.04. Its layers are read as they come, and stored nowhere. Passwords are
those of docker login and podman login; programs that keep passwords are not run.

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

// gatherImage reads the facts of an image.
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
