// Package gather holds what all checks share.
package gather

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/attempt"
	"github.com/gpudoctor/gpudoctor/checks/internal/nvml"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/collective"
)

// Check gathers one section of the facts.
type Check struct {
	// Name is the section's name in the document: "pci".
	Name string
	// After names the checks whose sections this one reads.
	After []string
	// Patient checks are not bound by Options.Deadline: they have their own.
	Patient bool
	// Gather fills the section of g.Facts that bears the check's name, and no other. What it cannot read it reports
	// through g.Unknown; an error is for the section as a whole.
	Gather func(ctx context.Context, g *Gathering) error
}

// MaxShown bounds a name that the firmware or a file gives, in bytes.
const MaxShown = 256

// Options says how facts are gathered.
type Options struct {
	// Probe is how much of the probe is run.
	Probe probe.Mode
	// Collectives is how much of the probe of collectives is run, CollectiveArms are its arms (empty for those of
	// the mode), NCCL is the library (empty for the one that a job would load), and ReadLog reads its log.
	Collectives    probe.Mode
	CollectiveArms []string
	// CollectivesIfDue is true where nobody asked for them: they are run, in short, only where something may break
	// them.
	CollectivesIfDue bool
	NCCL             string
	ReadLog          func(text string, failed bool) collective.Log
	// ProbeBusy lets the probe use GPUs that other processes are using.
	ProbeBusy bool
	// ProbeTimeout bounds each step of starting the driver, each call of the management library, and each transfer
	// where it is shorter than the default; 0 means the defaults.
	ProbeTimeout time.Duration
	// Deadline bounds each check; 0 means deadline.Check.
	Deadline time.Duration
	// Image is set where an image is judged: every copy of a library counts then, not only those that a program loads.
	Image bool
	// Whole bounds all checks together; 0 means no bound.
	Whole time.Duration
	// Progress, if set, is called when a check or a step of the probe begins, from several goroutines.
	Progress func(step string)
}

// Within is what is left of Whole for work in child processes; 0 if there is no limit.
func (o Options) Within() time.Duration {
	if o.Whole == 0 {
		return 0
	}
	return deadline.Within(o.Whole)
}

// Gathering is a running gathering of facts, as one check sees it.
type Gathering struct {
	Host    *host.Host
	Facts   *facts.Facts
	Options Options

	// NVML queries the management library. The checks share its answer.
	NVML func(ctx context.Context, answer *nvml.Answer) error
	// Attempts returns what was tried in a child.
	Attempts func(ctx context.Context, answer *attempt.Answer) error
	// Collectives runs the collectives, with the candidates, files and limit of its options.
	Collectives func(ctx context.Context, o collective.Options, r *probe.Collectives) error
	// Linked gives the running probe the facts once the links are known.
	Linked func(f *facts.Facts)
	// Probe returns the answer of the probe, which is under way.
	Probe func(ctx context.Context, r *probe.Report) error

	unknown *unknownList
}

// New returns a gathering without unknown facts and without functions.
func New(h *host.Host, f *facts.Facts, opts Options) *Gathering {
	return &Gathering{Host: h, Facts: f, Options: opts, unknown: &unknownList{}}
}

// With returns the same gathering for a check that writes into f.
func (g *Gathering) With(f *facts.Facts) *Gathering {
	own := *g
	own.Facts = f
	return &own
}

// Unknowns returns the facts that could not be established so far.
func (g *Gathering) Unknowns() []facts.Unknown {
	g.unknown.mu.Lock()
	defer g.unknown.mu.Unlock()
	return slices.Clone(g.unknown.list)
}

type unknownList struct {
	mu   sync.Mutex
	list []facts.Unknown
}

// Unknown notes a fact that could not be established.
func (g *Gathering) Unknown(section, fact, reason, hint string) {
	g.Add(facts.Unknown{Section: section, Fact: fact, Reason: reason, Hint: hint})
}

// Add notes it once.
func (g *Gathering) Add(u facts.Unknown) {
	g.unknown.mu.Lock()
	defer g.unknown.mu.Unlock()
	if !slices.Contains(g.unknown.list, u) {
		g.unknown.list = append(g.unknown.list, u)
	}
}

// Section notes what could not be established of a section, and reads the small files of its devices.
type Section struct {
	*Gathering
	Name string
}

// Failed notes why a fact is not known. What a recording lacks is no failure.
func (s Section) Failed(fact string, err error) {
	if !errors.Is(err, host.ErrNotRecorded) {
		s.Unknown(s.Name, fact, Cause(err), HintFor(err))
	}
}

// Missing notes what is not known of one device. A file that does not exist is no gap.
func (s Section) Missing(fact string, err error) {
	if !errors.Is(err, fs.ErrNotExist) {
		s.Failed(fact, err)
	}
}

// Text is a file that says a fact of a device, empty if that is missing.
func (s Section) Text(fact, file string) string {
	text, err := s.Host.Text(file)
	if err != nil {
		s.Missing(fact, err)
	}
	return text
}

// Gaps are facts that are not known of some devices: each is noted once, with their names.
type Gaps struct {
	mu sync.Mutex
	of map[facts.Unknown][]string
}

// Add notes a fact of a device that could not be established.
func (m *Gaps) Add(device, section, fact, reason, hint string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := facts.Unknown{Section: section, Fact: fact, Reason: reason, Hint: hint}
	facts.Put(&m.of, u, append(m.of[u], device))
}

// Report notes them all.
func (m *Gaps) Report(g *Gathering) {
	for u, devices := range m.of {
		slices.Sort(devices)
		u.Reason += ": " + SomeOf(slices.Compact(devices))
		g.Add(u)
	}
}

// Run runs one check within its deadline and turns a panic into an error.
func (c *Check) Run(ctx context.Context, g *Gathering) error {
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
				ended <- fmt.Errorf("the check panicked: %v; please report this bug", p)
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

// HintFor says how to resolve an error, if that is known.
func HintFor(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "run as root"
	}
	return ""
}

// Cause is the innermost error, without the path.
func Cause(err error) string {
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// SomeOf lists the first few names and counts the others.
func SomeOf(names []string) string {
	const few = 4
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few-1], ", "), len(names)-few+1)
}
