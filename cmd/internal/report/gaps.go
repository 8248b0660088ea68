package report

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// gap is a reason why transfers were not tried.
type gap struct {
	// devices are the GPUs that the reason applies to; empty if it applies to all.
	devices []string
	// reason says why; for GPUs that are in use, it names the program.
	reason string
	// processes are those of a program that uses the GPUs.
	processes []string
	// hint says how to continue, if there is a way.
	hint string
}

// maxNamed bounds the GPUs and processes of one gap that are named: a job has a
// process for each GPU.
const maxNamed = 4

// String names the GPUs, the reason and the hint.
func (g gap) String() string {
	s := g.reason
	if n := len(g.processes); n > 0 {
		s = fmt.Sprintf("in use by process%s %s (%s)", map[bool]string{true: "es"}[n > 1], lines.First(g.processes, maxNamed, ", "), g.reason)
	}
	switch n := len(g.devices); {
	case n > maxNamed:
		s = fmt.Sprintf("%d GPUs %s", n, s)
	case n > 0:
		s = strings.Join(g.devices, ", ") + " " + s
	}
	if g.hint != "" {
		s += ": " + g.hint
	}
	return s
}

// gapsInWords names each reason.
func gapsInWords(all []gap) string {
	return lines.First(lines.Map(all, gap.String), maxNamed, "; ")
}

// gaps says, reason by reason, why paths were not tried.
func gaps(d *Document, open paths) []gap {
	out := map[string]probe.Device{}
	for _, device := range d.Transfers.Devices {
		if device.Outcome != probe.OK && device.Outcome != "" {
			out[device.Address] = device
		}
	}
	var singles []gap
	for _, p := range open {
		before := len(singles)
		for _, address := range []string{p.source, p.destination} {
			if device, ok := out[address]; ok {
				singles = append(singles, gapOf(device))
			}
		}
		switch {
		case len(singles) > before:
		case p.plain != nil && p.plain.Reason != "":
			singles = append(singles, gap{reason: p.plain.Reason})
		default:
			singles = append(singles, gap{reason: "the probe did not reach them"})
		}
	}
	type key struct {
		reason, hint string
		inUse        bool
	}
	var all []gap
	for _, alike := range lines.Grouped(singles, func(g gap) key { return key{g.reason, g.hint, len(g.processes) > 0} }) {
		g := gap{reason: alike[0].reason, hint: alike[0].hint}
		for _, one := range alike {
			g.devices, g.processes = append(g.devices, one.devices...), append(g.processes, one.processes...)
		}
		g.devices, g.processes = lines.Unique(g.devices), lines.Unique(g.processes)
		all = append(all, g)
	}
	return all
}

// gapOf says why a GPU was not tested, and how to continue.
func gapOf(device probe.Device) gap {
	g := gap{devices: []string{device.Address}, reason: cmp.Or(reasonOfCall(device.Call, device.Reason, device.ErrorName), string(device.Outcome))}
	if u := device.User; device.Cause == probe.CauseBusy && u != nil {
		g.hint = "use --probe-busy to include them"
		if u.PID > 0 {
			g.processes, g.reason = []string{strconv.Itoa(u.PID)}, cmp.Or(u.Program, "not visible here")
		}
	}
	if device.Cause == probe.CauseNoMemory {
		g.hint = "free some of its memory and run again"
	}
	return g
}

// reasonOfCall is why something failed, with the name of the driver's error. A reason with a call has it.
func reasonOfCall(call, reason, errorName string) string {
	if call != "" || reason == "" {
		return cmp.Or(reason, errorName)
	}
	return reason + after(behind(" (", errorName), ")")
}
