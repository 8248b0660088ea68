package checks

import (
	"context"
	"fmt"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/attempt"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/internal/nvml"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/engine"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// ChildMain must be called first in main: in a child of gpudoctor it does the child's work and never returns.
func ChildMain() { child.Main() }

// Root must be called next in main: it declares that this process starts none but its children. It fails if the own
// process ID is not known.
func Root() error { return child.Root() }

// Exit exits, and leaves no child behind.
func Exit(code int) { child.Exit(code) }

// doors call the libraries of vendors, each in a child of this binary. The checks of a gathering share the answers.
type doors struct {
	host    *host.Host
	options gather.Options
	// linked has room for the facts once the links are known, by which the running probe judges speeds.
	linked chan *facts.Facts
}

func newDoors(h *host.Host, opts gather.Options) *doors {
	return &doors{host: h, options: opts, linked: make(chan *facts.Facts, 1)}
}

// open lets a gathering use the doors, and starts the probe.
func (d *doors) open(ctx context.Context, g *gather.Gathering) {
	g.NVML, g.Attempts, g.Probe, g.Collectives = d.nvml, d.attempts, d.probe, d.collectives
	if !d.host.Recorded() {
		go func() { _ = d.attempts(ctx, &attempt.Answer{}) }() // Whoever needs the answer asks again.
		go func() { _ = d.probe(ctx, &probe.Report{}) }()
	}
	g.Linked = func(f *facts.Facts) {
		select {
		case d.linked <- f:
		default: // No probe is under way.
		}
	}
}

// limits are how long the management library may take.
func (d *doors) limits() nvml.Limits {
	return nvml.Limits{Call: d.options.ProbeTimeout, All: d.options.Within() / 2}
}

func (d *doors) nvml(ctx context.Context, answer *nvml.Answer) error {
	return d.host.AskBy(ctx, host.AskNVML, func(ctx context.Context) (any, error) {
		return nvml.Ask(ctx, d.limits())
	}, answer)
}

// attempts tries what the kernel allows. Without the probe, only what costs nothing is tried.
func (d *doors) attempts(ctx context.Context, answer *attempt.Answer) error {
	return d.host.AskBy(ctx, attempt.Question, func(ctx context.Context) (any, error) {
		limits := data.Thresholds()
		probing := d.options.Probe != "" && d.options.Probe != probe.Off
		return attempt.Ask(ctx, probing, attempt.Sizes{File: limits.ShmConnectionBytes, Locked: limits.MemlockTooLowBytes})
	}, answer)
}

func (d *doors) probe(ctx context.Context, report *probe.Report) error {
	return d.askProbe(d.options.Probe, func(m probe.Mode) error {
		*report = probe.Report{}
		return d.host.AskBy(ctx, host.AskProbe+string(m), func(ctx context.Context) (any, error) {
			return engine.Run(ctx, d.probeOptions(m))
		}, report)
	})
}

func (d *doors) probeOptions(mode probe.Mode) engine.Options {
	o := engine.Options{
		Mode: mode, Slow: d.slow, Users: d.usersNow,
		Start: d.options.ProbeTimeout, Whole: d.options.Within(), Progress: func(stage string) { d.options.Progress("probe: " + stage) },
	}
	if d.options.ProbeTimeout > 0 {
		o.Patience = min(d.options.ProbeTimeout, deadline.Transfer)
	}
	if !d.options.ProbeBusy {
		o.Busy = d.busyGPUs
	}
	return o
}

// slow are those transfers that are slower than the links allow, once these are known.
func (d *doors) slow(ctx context.Context, gpus int, all []probe.Transfer) []probe.Transfer {
	select {
	case f := <-d.linked:
		d.linked <- f // For the next time.
		return slowOnes(f, gpus, all)
	case <-ctx.Done():
		return nil
	}
}

// busyBytes is the memory in use above which a GPU counts as busy if no process is visible: a desktop and the
// driver's own reserve (616 MiB on an H200) take less.
const busyBytes = 4 << 30

// busyGPUs says which GPUs are known to be in use by others than gpudoctor, and by what.
func (d *doors) busyGPUs(ctx context.Context) map[string]probe.User {
	busy := busyAMD(ctx, d.host, 0)
	var answer nvml.Answer
	_ = d.nvml(ctx, &answer) // No answer shows no GPU.
	addUsers(d.host, busy, answer.Devices, 0)
	return busy
}

// ownBytes is the most memory that the probe takes on a GPU: 3 GiB of buffers in the full
// probe, and less than 1 GiB for the context (0.6 GiB on an H200).
const ownBytes = 4 << 30

// usersNow says the same while the probe holds memory on GPUs, by asking the management library again if it
// answered before.
func (d *doors) usersNow(ctx context.Context) map[string]probe.User {
	users := busyAMD(ctx, d.host, ownBytes)
	var first nvml.Answer
	if d.nvml(ctx, &first) != nil || first.Outcome != nvml.OK {
		return users
	}
	now, err := nvml.Ask(ctx, d.limits())
	if err != nil {
		return users
	}
	for i := range now.Devices {
		if gpu := &now.Devices[i]; gpu.Own == 0 {
			gpu.Processes = withoutOwn(d.host, gpu.Processes)
		}
	}
	addUsers(d.host, users, now.Devices, ownBytes)
	return users
}

// withoutOwn leaves out the process that drives the GPUs if the library did not identify it: where process IDs are
// those of the host, it is one of those that are not visible.
func withoutOwn(h *host.Host, list []facts.GPUProcess) []facts.GPUProcess {
	i := slices.IndexFunc(list, func(p facts.GPUProcess) bool {
		_, err := h.Text(fmt.Sprintf("/proc/%d/comm", p.PID))
		return err != nil
	})
	if i < 0 {
		return list
	}
	return slices.Delete(slices.Clone(list), i, i+1)
}

// addUsers adds who uses which GPU according to the management library; own is as of busyAMD.
func addUsers(h *host.Host, users map[string]probe.User, devices []nvml.Device, own int64) {
	for _, d := range devices {
		if u := userOf(&d.GPU, own); u != nil && d.Address != "" {
			if u.PID > 0 {
				u.Program, _ = h.Text(fmt.Sprintf("/proc/%d/comm", u.PID)) // Of another PID namespace none is visible.
			}
			users[d.Address] = *u
		}
	}
}

// userOf is who uses a GPU; nil if nobody is known to.
func userOf(d *facts.GPU, own int64) *probe.User {
	switch {
	case len(d.Processes) > 0:
		return &probe.User{PID: d.Processes[0].PID, Program: d.Processes[0].Name}
	case d.MemoryUsedBytes != nil && *d.MemoryUsedBytes > busyBytes+own:
		return &probe.User{UsedBytes: *d.MemoryUsedBytes}
	}
	return nil
}
