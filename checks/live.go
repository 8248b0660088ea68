package checks

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/internal/machine"
	"github.com/gpudoctor/gpudoctor/checks/internal/nvml"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/engine"
)

// ChildMain is to be called first thing in main: where this process is a child
// that the doctor started, it does the child's work and never returns.
func ChildMain() { child.Main() }

// registerAnswers makes live machines answer the questions that vendor
// libraries answer, each in a child of this binary.
var registerAnswers = sync.OnceFunc(func() {
	machine.Register(machine.AskNVML, func(ctx context.Context, _ string) (any, error) {
		limits, _ := ctx.Value(driverLimits{}).(nvml.Limits)
		met, _ := ctx.Value(gpusMet{}).(chan []nvml.Device)
		return nvml.Ask(ctx, limits, func(devices []nvml.Device) {
			select {
			case met <- devices:
			default: // Nobody is to be told, or was told before.
			}
		})
	})
	machine.Register(machine.AskProbe, func(ctx context.Context, mode string) (any, error) {
		o, _ := ctx.Value(probeOptions{}).(engine.Options)
		o.Mode = probe.Mode(mode)
		return engine.Run(ctx, o)
	})
})

// driverLimits is the context key of how long the management library may take.
// Whoever asks it first decides for all, so it stands in the context of the whole
// gathering.
type driverLimits struct{}

// gpusMet is the context key of a channel with room for one message: the GPUs
// as the management library shows them, as soon as it has, so that the probe
// need not wait for the rest. It stands beside driverLimits.
type gpusMet struct{}

// probeOptions is the context key of the probe's options: what is asked and
// recorded is the mode alone.
type probeOptions struct{}

// withDriverOptions adds what those who ask a vendor's library share.
func withDriverOptions(ctx context.Context, opts Options) context.Context {
	ctx = context.WithValue(ctx, driverLimits{}, nvml.Limits{Call: opts.ProbeTimeout, All: opts.within() / 2})
	return context.WithValue(ctx, gpusMet{}, make(chan []nvml.Device, 1))
}

// withProbeOptions adds what a live probe needs beside its mode.
func withProbeOptions(ctx context.Context, h *Host, opts Options, slow func(context.Context, int, []probe.Transfer) []probe.Transfer) context.Context {
	o := engine.Options{
		Slow: slow, Users: func(ctx context.Context) map[string]probe.User { return usersNow(ctx, h) },
		Start: opts.ProbeTimeout, Whole: opts.within(), Progress: func(stage string) { opts.Progress("probe: " + stage) },
	}
	if opts.ProbeTimeout > 0 {
		o.Patience = min(opts.ProbeTimeout, deadline.Transfer)
	}
	if !opts.ProbeBusy {
		o.Busy = func(ctx context.Context) map[string]probe.User { return busyGPUs(ctx, h) }
	}
	return context.WithValue(ctx, probeOptions{}, o)
}

// busyBytes is the memory in use above which a GPU is taken for busy where no
// process can be seen: a desktop takes less, and so does the driver's own
// reserve (616 MiB on an H200).
const busyBytes = 4 << 30

// busyGPUs says which GPUs are in use by others than the doctor, and by what.
// A GPU of which nothing can be learned is not taken for busy.
func busyGPUs(ctx context.Context, h *Host) map[string]probe.User {
	busy := busyAMD(ctx, h, 0)
	addUsers(h, busy, devicesSoon(ctx, h), 0)
	return busy
}

// ownBytes is what the probe takes of a GPU at most: 3 GiB of buffers in the full
// probe, and less than 1 GiB for the context (0.6 GiB on an H200).
const ownBytes = 4 << 30

// usersNow says the same while the probe holds memory on every GPU that it tries.
// The management library is asked afresh, unless it gave no answer before.
func usersNow(ctx context.Context, h *Host) map[string]probe.User {
	users := busyAMD(ctx, h, ownBytes)
	var first nvml.Answer
	if h.Ask(ctx, machine.AskNVML, &first) != nil || first.Outcome != nvml.OK {
		return users
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limits, _ := ctx.Value(driverLimits{}).(nvml.Limits)
	var devices []nvml.Device
	_, _ = nvml.Ask(ctx, limits, func(met []nvml.Device) { // Called off, it has no answer.
		devices = met
		cancel() // Pairs are of no interest.
	})
	for i := range devices {
		if d := &devices[i]; d.Own == 0 {
			d.Processes = withoutOwn(h, d.Processes)
		}
	}
	addUsers(h, users, devices, ownBytes)
	return users
}

// withoutOwn leaves out the process that drives the GPUs where the library did not
// name it: in a container the numbers may be those of the whole machine, where it
// has another one. It is then one of those that cannot be seen.
func withoutOwn(h *Host, list []nvml.Process) []nvml.Process {
	i := slices.IndexFunc(list, func(p nvml.Process) bool {
		_, err := h.Text(fmt.Sprintf("/proc/%d/comm", p.PID))
		return err != nil
	})
	if i < 0 {
		return list
	}
	return slices.Delete(slices.Clone(list), i, i+1)
}

// addUsers adds who uses which GPU by the management library. own is how much of
// its memory the doctor may hold.
func addUsers(h *Host, users map[string]probe.User, devices []nvml.Device, own int64) {
	for _, d := range devices {
		switch {
		case d.Address == "":
		case len(d.Processes) > 0:
			p := d.Processes[0]
			name, _ := h.Text(fmt.Sprintf("/proc/%d/comm", p.PID)) // Of another PID namespace none is visible.
			users[d.Address] = probe.User{PID: p.PID, Program: name}
		case d.MemoryUsedBytes != nil && *d.MemoryUsedBytes > busyBytes+own:
			users[d.Address] = probe.User{UsedBytes: *d.MemoryUsedBytes}
		}
	}
}

// devicesSoon returns the GPUs by the management library, before its whole
// answer is there if it can.
func devicesSoon(ctx context.Context, h *Host) []nvml.Device {
	met, _ := ctx.Value(gpusMet{}).(chan []nvml.Device) // Without one only the answer comes.
	whole := make(chan []nvml.Device, 1)
	go func() {
		var a nvml.Answer
		_ = h.Ask(ctx, machine.AskNVML, &a) // No answer shows no GPU.
		whole <- a.Devices
	}()
	select {
	case devices := <-met:
		return devices
	case devices := <-whole:
		return devices
	}
}
