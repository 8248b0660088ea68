// Package checks gathers facts about one machine: about its PCI tree, IOMMU, GPUs, container, environment,
// libraries and kernel log, and the results of real transfers between its GPUs. It reads and parses; it judges
// nothing. Judging is the work of package rules.
package checks

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/affinity"
	"github.com/gpudoctor/gpudoctor/checks/container"
	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/gpudirect"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/image"
	"github.com/gpudoctor/gpudoctor/checks/library"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/pci"
	"github.com/gpudoctor/gpudoctor/checks/storage"
	"github.com/gpudoctor/gpudoctor/checks/system"
)

// All are the checks, in the order of the document.
var All = []*gather.Check{
	system.Check,
	pci.Check,
	iommuCheck,
	affinity.Check,
	gpusCheck,
	linksCheck,
	network.Check,
	storage.Check,
	container.Check,
	env.Check,
	library.Check,
	kernelLogCheck,
	transfersCheck,
	gpudirect.Check,
	collectivesCheck,
}

// probes are the checks that use the GPUs, and wait for the probe of pairs.
var probes = []*gather.Check{transfersCheck, gpudirect.Check, collectivesCheck}

// Gather runs all checks in parallel, each after those that it depends on, and returns the facts and how long each
// took. One that fails, panics or outlasts its deadline stops no other: its section is unknown.
func Gather(ctx context.Context, h *host.Host, opts gather.Options) (*facts.Facts, map[string]time.Duration) {
	opts.Deadline = cmp.Or(opts.Deadline, deadline.Check)
	if opts.Whole > 0 {
		// By then, the child processes have reached their own deadlines.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(opts.Whole-deadline.Judge, opts.Whole*3/4))
		defer cancel()
	}
	if opts.Progress == nil {
		opts.Progress = func(string) {}
	}
	f := &facts.Facts{Schema: facts.FactsSchema}
	shared := gather.New(h, f, opts)
	ways := newDoors(h, opts)
	ways.open(ctx, shared) // The driver starts while files are read.
	var mu sync.Mutex      // Guards facts and timing.
	done := make(map[string]chan struct{}, len(All))
	for _, c := range All {
		done[c.Name] = make(chan struct{})
	}
	timing := make(map[string]time.Duration, len(All))
	var wg sync.WaitGroup
	for _, c := range All {
		wg.Go(func() {
			defer close(done[c.Name])
			for _, name := range c.After {
				<-done[name]
			}
			start := time.Now()
			// Each check works on a copy of its own, so that one that
			// outlasts its deadline writes nothing that others read.
			mu.Lock()
			own := *f
			mu.Unlock()
			g := shared.With(&own)
			if !slices.Contains(probes, c) { // They tell their stages.
				opts.Progress(c.Name)
			}
			err := c.Run(ctx, g)
			if err != nil {
				g.Unknown(c.Name, "", err.Error(), gather.HintFor(err))
			}
			mu.Lock()
			defer mu.Unlock()
			timing[c.Name] = time.Since(start)
			if err == nil {
				take(f, c.Name, &own)
			}
		})
	}
	wg.Wait()
	deriveOffered(f)
	f.Unknown = inOrder(shared.Unknowns())
	return f, timing
}

// GatherImage runs the checks that read what an image holds.
func GatherImage(ctx context.Context, img *image.Image, opts gather.Options) (*facts.Facts, map[string]time.Duration) {
	opts.Deadline, opts.Image = cmp.Or(opts.Deadline, deadline.Check), true
	f := &facts.Facts{Schema: facts.FactsSchema, Image: img.Facts()}
	g := gather.New(img.Host(), f, opts)
	timing := make(map[string]time.Duration)
	for _, c := range []*gather.Check{env.Check, library.Check} {
		start := time.Now()
		if err := c.Run(ctx, g); err != nil {
			g.Unknown(c.Name, "", err.Error(), gather.HintFor(err))
		}
		timing[c.Name] = time.Since(start)
	}
	f.Unknown = inOrder(g.Unknowns())
	return f, timing
}

func inOrder(unknown []facts.Unknown) []facts.Unknown {
	order := func(section string) int {
		return slices.IndexFunc(All, func(c *gather.Check) bool { return c.Name == section })
	}
	slices.SortStableFunc(unknown, func(a, b facts.Unknown) int {
		return cmp.Or(cmp.Compare(order(a.Section), order(b.Section)), cmp.Compare(a.Fact, b.Fact), cmp.Compare(a.Reason, b.Reason))
	})
	return unknown
}

func take(f *facts.Facts, section string, from *facts.Facts) {
	t := reflect.TypeFor[facts.Facts]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == section {
			reflect.ValueOf(f).Elem().Field(i).Set(reflect.ValueOf(from).Elem().Field(i))
			return
		}
	}
	panic("no section " + section) // A test checks that each check has one.
}
