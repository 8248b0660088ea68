// Package gpudirect says whether NICs and drives really reach the memory of GPUs: a child registers memory of
// each GPU with a NIC through libibverbs (GPUDirect RDMA), and cuFile reads a file into it (GPUDirect Storage).
// Modules and versions say only what should work.
//
// Nothing that is tried outlives the child: memory and its registrations are the child's own, and the file
// that is read has a name only while cuFile opens it.
package gpudirect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/attempt"
	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// Check is the check of the section "gpudirect".
var Check = &gather.Check{
	Name:    section,
	After:   []string{"pci", "gpus", "links", "nics", "storage", "transfers"},
	Patient: true,
	Gather:  collect,
}

const section = "gpudirect"

func collect(ctx context.Context, g *gather.Gathering) error {
	f := g.Facts
	r := &reader{g: g, gpus: gpusOf(f), nics: nicsOf(f), mounts: mountsOf(f)}
	if t := f.Transfers; t != nil && t.API == "hip" && t.Mode == probe.Full && len(r.nics) > 0 {
		g.Add(facts.Unknown{Section: section, Reason: "it is tried only with CUDA", Kind: facts.NotAsked})
		return nil
	}
	if f.Transfers == nil && !g.Host.Recorded() || len(r.nics)+len(r.mounts) == 0 || len(r.gpus) == 0 {
		return nil // Nothing can be tried, and no rule misses it.
	}
	if !g.Host.Recorded() && f.Transfers.Mode != probe.Full {
		g.Add(facts.Unknown{Section: section, Reason: "only the full probe tries it", Hint: "use --probe full", Kind: facts.NotAsked})
		return nil
	}
	d := &facts.GPUDirectFacts{}
	r.registrations(ctx, d)
	r.reads(ctx, d)
	r.gaps.Report(g)
	if d.NICs != nil || d.Reads != nil {
		f.GPUDirect = d
	}
	return nil
}

type reader struct {
	g      *gather.Gathering
	gpus   []string
	nics   []nic
	mounts []facts.Mount
	gaps   gather.Gaps
}

var errLate = errors.New("too little time was left for it")

// ask puts a question that children answer, early enough to end them before the time of the whole is over.
func (r *reader) ask(ctx context.Context, question string, by func(ctx context.Context, l Limits) (*Answer, error)) (*Answer, error) {
	end, bounded := ctx.Deadline()
	end = end.Add(-deadline.Kill - deadline.Judge)
	l := Limits{Step: min(cmp.Or(r.g.Options.ProbeTimeout, deadline.Direct), deadline.Direct)}
	var a Answer
	err := r.g.Host.AskBy(ctx, question, func(ctx context.Context) (any, error) {
		if !bounded {
			return by(ctx, l)
		}
		if time.Until(end) < deadline.Judge {
			return nil, errLate
		}
		ctx, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		return by(ctx, l)
	}, &a)
	a.Tried = a.Tried[:min(len(a.Tried), maxTried)]
	return &a, err
}

// note says why nothing is known. That a recording is older, or was made without the full probe, is no failure.
func (r *reader) note(fact string, err error) {
	if errors.Is(err, host.ErrNotRecorded) {
		r.g.Add(facts.Unknown{Section: section, Fact: fact, Reason: "the recording holds no such attempt", Kind: facts.NotRecorded})
		return
	}
	r.g.Unknown(section, fact, gather.Cause(err), gather.HintFor(err))
}

// registrations reads what NICs register.
func (r *reader) registrations(ctx context.Context, d *facts.GPUDirectFacts) {
	if len(r.nics) == 0 {
		return
	}
	nics := r.nics
	if len(nics) > maxNICs {
		r.g.Unknown(section, "nics", fmt.Sprintf("only the first %d of %d RDMA devices were tried", maxNICs, len(nics)), "")
		nics = nics[:maxNICs]
	}
	r.g.Options.Progress("registering GPU memory with NICs")
	a, err := r.ask(ctx, askRegistrations, func(ctx context.Context, l Limits) (*Answer, error) {
		return register(ctx, tries(nics, pairs(r.g.Facts, r.gpus, nics)), l)
	})
	if err != nil {
		r.note("nics", err)
		return
	}
	d.NICs = []facts.DirectNIC{}
	for _, t := range a.Tried {
		outcome := r.outcome("nics", t)
		device, address := escape.Printable(t.Device, gather.MaxShown), escape.Printable(t.GPU, gather.MaxShown)
		n := entry(&d.NICs, func(n facts.DirectNIC) bool { return n.Device == device }, facts.DirectNIC{Device: device, GPUs: []facts.DirectGPU{}})
		switch t.Way {
		case wayHost:
			n.Host = outcome
		case wayDMABuf, wayPeermem:
			gpu := entry(&n.GPUs, func(g facts.DirectGPU) bool { return g.Address == address }, facts.DirectGPU{Address: address})
			if t.Way == wayDMABuf {
				gpu.DMABuf = outcome
			} else {
				gpu.Peermem = outcome
			}
		}
	}
}

// outcome is a result as a fact; nil for one that is not known.
func (r *reader) outcome(fact string, t Tried) *facts.Attempt {
	a, why := t.Result.Fact()
	if a == nil {
		shown := func(s string) string { return escape.Printable(s, gather.MaxShown) }
		r.gaps.Add(shown(cmp.Or(t.Device, t.Mount)), section, fact+"."+shown(t.Way), why, "")
	}
	return a
}

// entry finds an element of a list, and adds it where it is not there yet.
func entry[T any](list *[]T, is func(T) bool, added T) *T {
	i := slices.IndexFunc(*list, is)
	if i < 0 {
		*list = append(*list, added)
		i = len(*list) - 1
	}
	return &(*list)[i]
}

// reads reads what cuFile reads.
func (r *reader) reads(ctx context.Context, d *facts.GPUDirectFacts) {
	if len(r.mounts) == 0 {
		return
	}
	r.g.Options.Progress("reading with cuFile")
	a, err := r.ask(ctx, askReads, func(ctx context.Context, l Limits) (*Answer, error) {
		var all Answer
		for i := range r.mounts {
			a := readMount(ctx, nearestGPU(r.g.Facts, r.gpus, &r.mounts[i]), r.mounts[i].Path, l)
			all.Tried = append(all.Tried, a.Tried...)
		}
		return &all, nil
	})
	if err != nil {
		r.note("reads", err)
		return
	}
	d.Reads = []facts.DirectRead{}
	for _, t := range a.Tried {
		mount, gpu := escape.Printable(t.Mount, gather.MaxShown), escape.Printable(t.GPU, gather.MaxShown)
		o := entry(&d.Reads, func(o facts.DirectRead) bool { return o.Mount == mount && o.GPU == gpu }, facts.DirectRead{Mount: mount, GPU: gpu})
		switch t.Way {
		case wayDirect:
			o.Direct = r.read(t)
		case wayConfigured:
			o.Configured = r.read(t)
		}
	}
}

// read is the result of a read as a fact; nil for one that is not known.
func (r *reader) read(t Tried) *facts.CuFileRead {
	if t.Result.Outcome == attempt.Corrupt {
		return &facts.CuFileRead{Outcome: attempt.Corrupt, Call: escape.Printable(t.Result.Call, gather.MaxShown), Bytes: max(0, t.Result.Bytes)}
	}
	a := r.outcome("reads", t)
	if a == nil {
		return nil
	}
	return &facts.CuFileRead{Outcome: a.Outcome, Call: a.Call, Error: a.Errno, Bytes: a.Bytes}
}
