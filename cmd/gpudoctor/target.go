package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/image"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/units"
	"github.com/gpudoctor/gpudoctor/rules"
)

// readTarget reads which machine an image or the files of a job are for, and which platform of an image is meant.
func (r *request) readTarget(c *cli.Context) error {
	r.source.target, r.driver = c.String(targetFlag.Name), c.String(driverFlag.Name)
	switch {
	case r.profile == rules.Training && (r.source.target != "" || r.driver != ""):
		return complaint.Hinted(errors.New("--target and --driver are for images and files of a job"), "gpudoctor image IMAGE, or --profile launch; a machine itself is examined with --from")
	case r.profile == rules.Launch && r.driver != "":
		return complaint.Hinted(errors.New("--driver is for images"), "gpudoctor image IMAGE, or --profile image")
	case r.driver != "" && !image.IsDriver(r.driver):
		return complaint.Hinted(fmt.Errorf("invalid value %q for --driver", r.driver), "the version of an NVIDIA driver, as nvidia-smi shows it: 550.54.15")
	}
	if err := r.source.readRemote(c); err != nil {
		return err
	}
	if r.source.target == "" {
		return nil
	}
	return source{from: []string{r.source.target}}.check(c.Context)
}

// readRemote reads which image of several is meant, and how its registry is reached.
func (s *source) readRemote(c *cli.Context) error {
	s.plainHTTP = c.Bool(plainHTTPFlag.Name)
	text := c.String(platformFlag.Name)
	if text != "" {
		var ok bool
		if s.platform, ok = image.ParsePlatform(text); !ok {
			return complaint.Hinted(fmt.Errorf("invalid value %q for --%s", text, platformFlag.Name), "a platform is linux/amd64, linux/arm64 or linux/arm64/v8")
		}
	}
	switch {
	case text != "" && !s.image:
		return complaint.Hinted(fmt.Errorf("--%s is for images", platformFlag.Name), "gpudoctor image --platform "+s.platform.String()+" IMAGE")
	case s.plainHTTP && s.remote == nil:
		return complaint.Hinted(fmt.Errorf("--%s is for images in a registry", plainHTTPFlag.Name), "gpudoctor image --plain-http REF")
	}
	return nil
}

// openTarget reads the facts of the machine that --target names, for which an image of several is chosen; nil where it
// names none.
func (r *request) openTarget(ctx context.Context) (*facts.Facts, error) {
	if r.source.target == "" {
		return nil, nil
	}
	target := source{from: []string{r.source.target}, system: r.source.system}
	g := target.machine(ctx, gather.Options{Probe: probe.Off, Whole: r.options.Whole, Progress: r.options.Progress})
	switch {
	case g.err != nil:
		return nil, g.err
	case g.facts == nil:
		return nil, complaint.Hinted(fmt.Errorf("--target %s is neither a snapshot nor a facts file", complaint.Quote(r.source.target)), "on the target: gpudoctor snapshot -o target.txtar")
	case g.facts.Host != nil && r.source.platform.Architecture == "":
		r.source.platform.Architecture = g.facts.Host.Arch
	}
	return g.facts, nil
}

// aim adds to what was gathered the target that it is judged for.
func (r request) aim(g gathered, target *facts.Facts) gathered {
	switch t := r.imageTarget(target); {
	case r.profile == rules.Launch:
		if g.err == nil {
			g.err = units.DropBroken(g.facts)
		}
		if g.err != nil {
			return gathered{err: g.err}
		}
		if target != nil {
			g.facts, g.textsOnly = forTarget(g.facts, target), false
		}
	case t != nil && g.facts != nil:
		g.facts.Target = t // Instead of the one that a facts file has.
	}
	return g
}

// imageTarget is what an image is judged by; nil where nothing is known of its target.
func (r request) imageTarget(machine *facts.Facts) *facts.TargetFacts {
	t := r.target
	if machine != nil {
		t = image.Target(r.source.target, machine)
	}
	if r.driver != "" {
		t = cmp.Or(t, &facts.TargetFacts{Source: "--" + driverFlag.Name})
		t.Driver, t.CUDA = r.driver, ""
	}
	return t
}

// forTarget are the facts of files with those of the hardware of the machine that they are for. What else the machine
// shows, its variables, limits and libraries, does not hold for the job.
func forTarget(files, machine *facts.Facts) *facts.Facts {
	joined := *files
	joined.Host, joined.PCI, joined.GPUs, joined.Links, joined.NICs = machine.Host, machine.PCI, machine.GPUs, machine.Links, machine.NICs
	joined.Transfers = machine.Transfers
	return &joined
}
