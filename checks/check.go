// Package checks gathers facts about one machine: what its PCI tree, IOMMU,
// GPUs, container, environment, libraries and kernel log show of themselves,
// and what a real transfer between its GPUs does. It reads and parses; it
// judges nothing. Judging is the work of package rules.
package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// Check gathers one section of the facts.
type Check struct {
	// Name is the section's name in the document: "pci".
	Name string
	// Doc is a title, a blank line, and what is read and from where.
	Doc string
	// After names the checks whose sections this one reads.
	After []string
	// Patient checks are not bound by Options.Deadline: they have their own.
	Patient bool
	// Gather fills the section of g.Facts that bears the check's name, and no
	// other. It judges nothing. What it cannot read it reports through
	// g.Unknown; an error means that the section as a whole could not be
	// read.
	Gather func(ctx context.Context, g *Gathering) error
}

// All is every check, in order of the document.
var All = []*Check{
	hostCheck,
	pciCheck,
	iommuCheck,
	numaCheck,
	gpusCheck,
	linksCheck,
	containerCheck,
	envCheck,
	librariesCheck,
	kernelLogCheck,
	transfersCheck,
}

// Options says how facts are gathered.
type Options struct {
	// Probe is how much of the probe is run.
	Probe probe.Mode
	// ProbeBusy lets the probe use GPUs that other processes use as well.
	ProbeBusy bool
	// ProbeTimeout bounds each step of starting the driver, each call of the
	// management library, and each transfer where it is shorter than the
	// probe's own bound; 0 means the defaults.
	ProbeTimeout time.Duration
	// Deadline bounds each check; 0 means deadline.Check. The probe has its own
	// deadline.
	Deadline time.Duration
	// Whole bounds all checks together; 0 means no bound.
	Whole time.Duration
	// Progress, if set, is told the name of a check or a step of the probe
	// as it begins. It is called from several goroutines.
	Progress func(step string)
}

// within is what is left of Whole for what runs in children; 0 without a bound.
func (o Options) within() time.Duration {
	if o.Whole == 0 {
		return 0
	}
	return deadline.Within(o.Whole)
}

// Gathering is a gathering of facts under way, as one check sees it. A check
// reads Host, writes its own section of Facts, and reads the sections of the
// checks that it comes after.
type Gathering struct {
	Host    *Host
	Facts   *facts.Facts
	Options Options

	doors   *doors
	probe   <-chan probeAnswer
	unknown *unknownList
}

// probeAnswer is what the probe's child said, or why it said nothing.
type probeAnswer struct {
	report *probe.Report
	err    error
}

type unknownList struct {
	mu   sync.Mutex
	list []facts.Unknown
}

// Unknown notes a fact that could not be established.
func (g *Gathering) Unknown(section, fact, reason, hint string) {
	g.add(facts.Unknown{Section: section, Fact: fact, Reason: reason, Hint: hint})
}

func (g *Gathering) add(u facts.Unknown) {
	g.unknown.mu.Lock()
	defer g.unknown.mu.Unlock()
	if !slices.Contains(g.unknown.list, u) {
		g.unknown.list = append(g.unknown.list, u)
	}
}

// Gather runs every check side by side, each after those that it depends on,
// and returns the facts with the time that each check took. A check that
// fails, panics or outlasts its deadline never stops another: its section
// stays nil and is listed as unknown.
func Gather(ctx context.Context, h *Host, opts Options) (*facts.Facts, map[string]time.Duration) {
	if opts.Deadline == 0 {
		opts.Deadline = deadline.Check
	}
	if opts.Whole > 0 {
		// By then the children have been ended by their own deadlines.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(opts.Whole-deadline.Judge, opts.Whole*3/4))
		defer cancel()
	}
	if opts.Progress == nil {
		opts.Progress = func(string) {}
	}
	f := &facts.Facts{Schema: facts.FactsSchema}
	unknown := &unknownList{}
	shared := newDoors(h, opts)
	asked := shared.startProbe(ctx) // The driver starts while files are read.
	var mu sync.Mutex               // Guards facts and timing.
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
			// outlasts its deadline writes into nothing that others read.
			mu.Lock()
			own := *f
			mu.Unlock()
			g := &Gathering{Host: h, Facts: &own, Options: opts, doors: shared, probe: asked, unknown: unknown}
			if c != transfersCheck { // It waits for the probe, which tells its stages.
				opts.Progress(c.Name)
			}
			err := c.run(ctx, g)
			if err != nil {
				g.Unknown(c.Name, "", err.Error(), hintFor(err))
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
	unknown.mu.Lock()
	defer unknown.mu.Unlock()
	f.Unknown = slices.Clone(unknown.list)
	order := make(map[string]int, len(All))
	for i, c := range All {
		order[c.Name] = i
	}
	slices.SortStableFunc(f.Unknown, func(a, b facts.Unknown) int {
		return cmp.Or(cmp.Compare(order[a.Section], order[b.Section]), cmp.Compare(a.Fact, b.Fact), cmp.Compare(a.Reason, b.Reason))
	})
	return f, timing
}

// take copies one section from another document.
func take(f *facts.Facts, section string, from *facts.Facts) {
	t := reflect.TypeFor[facts.Facts]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == section {
			reflect.ValueOf(f).Elem().Field(i).Set(reflect.ValueOf(from).Elem().Field(i))
			return
		}
	}
	panic("no section " + section) // A test holds that each check has one.
}

// run runs one check within its deadline and turns a panic into an error.
func (c *Check) run(ctx context.Context, g *Gathering) error {
	if !c.Patient {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, g.Options.Deadline)
		defer cancel()
	}
	start := time.Now()
	ended := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				ended <- fmt.Errorf("the check failed: %v; please report this", p)
			}
		}()
		ended <- c.Gather(ctx, g)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("gave no answer within %s", time.Since(start).Round(100*time.Millisecond))
	}
}

// hintFor says what would make an error go away, where that is known.
func hintFor(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "run as root"
	}
	return ""
}
