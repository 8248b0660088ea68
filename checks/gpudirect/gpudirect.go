// Package gpudirect says whether NICs really reach the memory of GPUs: a child registers memory of each GPU with a
// NIC through libibverbs (GPUDirect RDMA). Modules and versions say only what should work.
//
// Nothing that is tried outlives the child: memory and its registrations are the child's own.
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
	After:   []string{"pci", "gpus", "links", "nics", "transfers"},
	Patient: true,
	Gather:  collect,
}

const (
	section = "gpudirect"
	// question is answered with an Answer.
	question     = "gpudirect-registrations"
	registerTask = "register with NICs"
	// maxChildren bounds the children that continue after one that ended: each starts the driver again.
	maxChildren = 3
)

// The ways to register memory with an RDMA device.
const (
	// wayHost is memory of the process: the control, which needs no GPU.
	wayHost = "host"
	// wayDMABuf is memory of a GPU that its driver gives as a DMA-BUF, wayPeermem the same by its address, for
	// which the module nvidia-peermem gives the pages.
	wayDMABuf  = "dmabuf"
	wayPeermem = "peermem"
)

// Try is one thing to try.
type Try struct {
	Way string `json:"way"`
	// GPU is its PCI address, empty for wayHost, Device the name of an RDMA device.
	GPU    string `json:"gpu,omitempty"`
	Device string `json:"device,omitempty"`
}

// Tried is what came of it.
type Tried struct {
	Try

	Result attempt.Result `json:"result"`
}

// Answer is what was tried, in order.
type Answer struct {
	Tried []Tried `json:"tried"`
}

func init() { attempt.Register(registerTask, newRegistrar) }

func collect(ctx context.Context, g *gather.Gathering) error {
	f := g.Facts
	gpus, nics, t := gpusOf(f), nicsOf(f), f.Transfers
	if t != nil && t.API == "hip" && t.Mode == probe.Full && len(nics) > 0 {
		g.Add(facts.Unknown{Section: section, Reason: "it is tried only with CUDA", Kind: facts.NotAsked})
		return nil
	}
	if t == nil && !g.Host.Recorded() || len(nics) == 0 || len(gpus) == 0 {
		return nil // Nothing can be tried, and no rule misses it.
	}
	if !g.Host.Recorded() && t.Mode != probe.Full {
		g.Add(facts.Unknown{Section: section, Reason: "only the full probe tries it", Hint: "use --probe full", Kind: facts.NotAsked})
		return nil
	}
	if len(nics) > maxNICs {
		g.Unknown(section, "nics", fmt.Sprintf("only the first %d of %d RDMA devices were tried", maxNICs, len(nics)), "")
		nics = nics[:maxNICs]
	}
	g.Options.Progress("registering GPU memory with NICs")
	a, err := ask(ctx, g, tries(nics, pairs(f, gpus, nics)))
	switch {
	case errors.Is(err, host.ErrNotRecorded): // A recording that is older, or made without the full probe, is no failure.
		g.Add(facts.Unknown{Section: section, Fact: "nics", Reason: "the recording holds no such attempt", Kind: facts.NotRecorded})
	case err != nil:
		g.Unknown(section, "nics", gather.Cause(err), gather.HintFor(err))
	default:
		f.GPUDirect = &facts.GPUDirectFacts{NICs: registrations(g, a)}
	}
	return nil
}

var errLate = errors.New("too little time was left for it")

// ask has children make the tries, early enough to end them before the time of the whole is over.
func ask(ctx context.Context, g *gather.Gathering, tries []Try) (a *Answer, err error) {
	a = &Answer{}
	err = g.Host.AskBy(ctx, question, func(ctx context.Context) (any, error) {
		step, all := min(cmp.Or(g.Options.ProbeTimeout, deadline.Direct), deadline.Direct), deadline.DirectAll
		if end, bounded := ctx.Deadline(); bounded {
			all = min(all, time.Until(end)-deadline.Kill-deadline.Judge)
		}
		if all < deadline.Judge {
			return nil, errLate
		}
		return register(ctx, tries, step, all)
	}, a)
	a.Tried = a.Tried[:min(len(a.Tried), maxTried)]
	return a, err
}

// register makes the tries: each takes as long as step, and all of them as long as all, at most.
func register(ctx context.Context, tries []Try, step, all time.Duration, env ...string) (*Answer, error) {
	s := attempt.Series[Try]{Task: registerTask, Env: append([]string{"CUDA_CACHE_DISABLE=1"}, env...), Children: maxChildren, Step: step, All: all}
	results, err := s.Run(ctx, tries)
	if err != nil {
		return nil, err
	}
	a := &Answer{}
	for i, t := range tries {
		a.Tried = append(a.Tried, Tried{t, results[i]})
	}
	return a, nil
}

// registrations are an answer as facts. What is not known has no outcome, and a reason.
func registrations(g *gather.Gathering, a *Answer) []facts.DirectNIC {
	shown := func(s string) string { return escape.Printable(s, gather.MaxShown) }
	all := []facts.DirectNIC{}
	var gaps gather.Gaps
	for _, t := range a.Tried {
		device, address := shown(t.Device), shown(t.GPU)
		outcome, why := t.Result.Fact()
		if outcome == nil {
			gaps.Add(device, section, "nics."+shown(t.Way), why, "")
		}
		n := entry(&all, func(n facts.DirectNIC) bool { return n.Device == device }, facts.DirectNIC{Device: device, GPUs: []facts.DirectGPU{}})
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
	gaps.Report(g)
	return all
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
