package checks

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/pci"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/collective"
)

var collectivesCheck = &gather.Check{
	Name:    "collectives",
	After:   []string{"transfers", "libraries", "gpus", "links", "nics", "env", "container"},
	Patient: true,
	Gather:  gatherCollectives,
}

func gatherCollectives(ctx context.Context, g *gather.Gathering) error {
	if g.Collectives == nil || unasked(g) && !due(g) {
		return nil
	}
	if t := g.Facts.Transfers; t != nil && t.Outcome != probe.OK && g.Options.Collectives != "" && g.Options.Collectives != probe.Off {
		// What stopped that probe stops this one, and its findings say so.
		g.Add(facts.Unknown{Section: "collectives", Reason: "the probe of pairs did not finish", Kind: facts.NotAsked})
		return nil
	}
	var r probe.Collectives
	o := collective.Options{Candidates: candidates(g), Files: fileSettings(g.Facts)}
	if c := g.Facts.Container; c != nil && c.NOFILESoft != nil {
		o.FilesLimit = *c.NOFILESoft
	}
	err := g.Collectives(ctx, o, &r)
	switch {
	case errors.Is(err, errProbeOff), errors.Is(err, host.ErrNotRecorded):
		return nil // Nothing was asked for: the section is one of those that most documents lack.
	case err != nil:
		return err
	}
	expectOfProbe(g.Facts, &r)
	if r.Outcome == probe.Unknown {
		if absent(r.Cause) {
			g.Add(facts.Unknown{Section: "collectives", Reason: r.Reason, Kind: facts.NotAsked})
		} else {
			g.Unknown("collectives", "", r.Reason, probeHints[r.Cause])
		}
	}
	g.Facts.Collectives = &r
	return nil
}

// unasked reports whether collectives are to be run only where they are due; a recording gives what it holds.
func unasked(g *gather.Gathering) bool {
	return g.Options.CollectivesIfDue && (g.Host == nil || !g.Host.Recorded())
}

// due reports whether something here may break collectives: a transfer between two GPUs failed, or variables shape
// how the library communicates. Without the probe of pairs, nothing is due.
func due(g *gather.Gathering) bool {
	t := g.Facts.Transfers
	if t == nil || len(t.Devices) == 0 || len(candidates(g)) == 0 {
		return false
	}
	return slices.ContainsFunc(t.Transfers, betweenGPUsFailed) || collective.Shaped(settingsInForce(g.Facts))
}

func betweenGPUsFailed(t probe.Transfer) bool {
	return t.Outcome.Failed() && t.Source != t.Destination && t.Test != probe.TestHostToDevice && t.Test != probe.TestDeviceToHost && t.Test != probe.TestStaged
}

// settingsInForce are the variables that the library finds, by name.
func settingsInForce(f *facts.Facts) map[string]string {
	all := fileSettings(f)
	if f.Env == nil {
		return all
	}
	for _, v := range f.Env.Variables {
		if v.Effective && v.Source == fromEnvironment {
			all[v.Name] = v.Value
		}
	}
	return all
}

// fromEnvironment is the source of a variable of this process.
const fromEnvironment = "environment"

// fileSettings are the variables, by name, that the library reads from its files and that the
// environment does not override. RCCL has files of its own.
func fileSettings(f *facts.Facts) map[string]string {
	all := map[string]string{}
	if f.Env == nil {
		return all
	}
	rccl := amdAlone(f)
	for _, v := range f.Env.Variables {
		base := path.Base(v.Source)
		if v.Effective && v.Source != fromEnvironment && (base == "rccl.conf" || base == ".rccl.conf") == rccl {
			all[v.Name] = v.Value
		}
	}
	return all
}

// absent reports whether a cause means that there is nothing to run.
func absent(c probe.Cause) bool { return c == probe.CauseNoLibrary || c == probe.CauseNoDevice }

// candidates are the copies of NCCL or RCCL, in the order in which a job would take them: what its environment
// names, what a Python environment brings, and what the loader finds.
func candidates(g *gather.Gathering) []probe.Candidate {
	if at := g.Options.NCCL; at != "" {
		return []probe.Candidate{{Path: at, FoundBy: "option"}}
	}
	if g.Facts.Libraries == nil {
		return nil
	}
	kind := "libnccl"
	if amdAlone(g.Facts) {
		kind = "librccl"
	}
	rank := map[string]int{"ld_preload": 1, "ld_library_path": 2, "python": 3, "ld_cache": 4, "default_path": 5, "toolkit": 6}
	var files []facts.Library
	for _, l := range g.Facts.Libraries.Files {
		if l.Kind == kind && !l.Stub && !l.Empty && rank[l.FoundBy] > 0 && !slices.ContainsFunc(files, func(o facts.Library) bool {
			return cmp.Or(o.RealPath, o.Path) == cmp.Or(l.RealPath, l.Path)
		}) {
			files = append(files, l)
		}
	}
	slices.SortStableFunc(files, func(a, b facts.Library) int { return cmp.Compare(rank[a.FoundBy], rank[b.FoundBy]) })
	var all []probe.Candidate
	for _, l := range files {
		all = append(all, probe.Candidate{Path: l.Path, Version: l.Version, FoundBy: l.FoundBy})
	}
	return all
}

func amdAlone(f *facts.Facts) bool {
	all := f.GPUs.All()
	return len(all) > 0 && !slices.ContainsFunc(all, func(d facts.GPU) bool { return d.Vendor != pci.WordAMD })
}

func (d *doors) collectives(ctx context.Context, o collective.Options, r *probe.Collectives) error {
	return d.askProbe(d.options.Collectives, func(m probe.Mode) error {
		*r = probe.Collectives{}
		return d.host.AskBy(ctx, host.AskCollectives+string(m), func(ctx context.Context) (any, error) {
			return collective.Run(ctx, d.collectiveOptions(ctx, m, o))
		}, r)
	})
}

func (d *doors) collectiveOptions(ctx context.Context, m probe.Mode, o collective.Options) collective.Options {
	o.Mode, o.Arms, o.Brief, o.ReadLog = m, d.options.CollectiveArms, d.options.CollectivesIfDue, d.options.ReadLog
	o.Start, o.Whole = d.options.ProbeTimeout, d.options.Within()
	o.Progress = func(arm string) { d.options.Progress("collectives: " + arm) }
	if t := d.options.ProbeTimeout; t > 0 {
		o.Patience, o.Join = min(t, deadline.Transfer), min(t, deadline.Join)
	}
	if end, is := ctx.Deadline(); is {
		o.Whole = min(cmp.Or(o.Whole, deadline.Full), max(time.Until(end)-deadline.Kill-deadline.Judge, time.Millisecond))
	}
	if !d.options.ProbeBusy {
		o.Busy = d.busyGPUs
	}
	return o
}
