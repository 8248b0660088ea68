package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/affinity"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// path is one ordered pair of GPUs and the result of the transfers on it.
type path struct {
	source, destination string
	outcome             probe.Outcome   // The worst of all its tests.
	decided             *probe.Transfer // The transfer that gave it; nil where none was made.
	plain               *probe.Transfer // The test that every mode of the probe makes.
}

// paths are all ordered pairs of GPUs, by source and destination.
type paths []path

// badness orders outcomes, the worst with the highest number.
var badness = map[probe.Outcome]int{
	probe.Corrupt: 6, probe.Hang: 5, probe.Error: 4, probe.Slow: 3, probe.OK: 2, probe.Unknown: 1, probe.Unsupported: 0,
}

// newPaths gathers what the probe says of each ordered pair.
func newPaths(d *Document) paths {
	if d.Transfers == nil {
		return nil
	}
	found := map[[2]string]*path{}
	at := func(source, destination string) *path {
		k := [2]string{source, destination}
		found[k] = cmp.Or(found[k], &path{source: source, destination: destination, outcome: probe.Unknown})
		return found[k]
	}
	for _, p := range d.Transfers.Peers {
		at(p.Source, p.Destination)
	}
	for i := range d.Transfers.Transfers {
		t := &d.Transfers.Transfers[i]
		if t.Test == probe.TestCopy {
			p := at(t.Source, t.Destination)
			p.plain, p.decided, p.outcome = t, t, t.Outcome
		}
	}
	for i := range d.Transfers.Transfers {
		t := &d.Transfers.Transfers[i]
		// A test beyond the plain copy may be missing or unsupported without harm to the path.
		if !slices.ContainsFunc(tests, func(one test) bool { return one.id == t.Test && !one.within }) {
			continue
		}
		p := at(t.Source, t.Destination)
		if badness[t.Outcome] > badness[probe.OK] && badness[t.Outcome] > badness[p.outcome] {
			p.decided, p.outcome = t, t.Outcome
		}
	}
	return lines.Map(slices.SortedFunc(maps.Values(found), func(a, b *path) int {
		return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.destination, b.destination))
	}), func(p *path) path { return *p })
}

func (all paths) with(o probe.Outcome) paths {
	return lines.Filter(all, func(p path) bool { return p.outcome == o })
}

func (all paths) tried() paths {
	return lines.Filter(all, func(p path) bool { return p.outcome != probe.Unknown })
}

// odd describes the paths that are not well, the worst first.
func (all paths) odd() []string {
	some := lines.Filter(all, func(p path) bool { return p.outcome != probe.OK })
	slices.SortStableFunc(some, func(a, b path) int { return badness[b.outcome] - badness[a.outcome] })
	return lines.Map(some, func(p path) string {
		own := paths{p}
		return p.source + " -> " + p.destination + ": " + string(p.outcome) + inTests(own) + lines.Behind(", ", speed(own.deciding()))
	})
}

// deciding are the transfers that gave the paths their outcome.
func (all paths) deciding() []*probe.Transfer {
	decided := lines.Map(all, func(p path) *probe.Transfer { return p.decided })
	return lines.Filter(decided, func(t *probe.Transfer) bool { return t != nil })
}

// speed describes the rates of transfers, with what their links could carry:
// "395 to 396 GB/s (88 % of 450)". It is empty where nothing was measured.
func speed(ts []*probe.Transfer) string {
	var rates, fractions, expected []float64
	for _, t := range ts {
		if t.GBps == nil {
			continue
		}
		rates = append(rates, *t.GBps)
		if t.ExpectedGBps != nil && *t.ExpectedGBps > 0 {
			expected = append(expected, *t.ExpectedGBps)
			fractions = append(fractions, 100**t.GBps / *t.ExpectedGBps)
		}
	}
	if len(rates) == 0 {
		return ""
	}
	s := lines.LeastToMost(rates, lines.Rate) + " GB/s"
	if len(fractions) == len(rates) {
		of := lines.LeastToMost(expected, lines.Rate)
		if strings.Contains(of, " to ") {
			of = "the link rate"
		}
		s += fmt.Sprintf(" (%s %% of %s)", lines.LeastToMost(fractions, lines.Percent), of)
	}
	return s
}

type status string

// The statuses.
const (
	statusOK   status = "ok"
	statusSlow status = "slow"
	statusFail status = "FAIL"
	statusNone status = "--"
	statusOpen status = "??"
)

// transfersLine sums up the transfers. It is FAIL exactly if something failed, so that it agrees with the verdict.
func transfersLine(d *Document, all paths) (status, string) {
	s, said := pathsOrWhy(d, all)
	if n := d.failures(d.Transfers); n > 0 && s != statusFail {
		s, said = statusFail, said+"; "+lines.Count(n, "other failure")
	}
	if n := countTransfers(d.Transfers, isSlow); n > 0 && s == statusOK && d.Verdict.State != Healthy {
		s, said = statusSlow, said+"; "+lines.Count(n, "other transfer")+" slow"
	}
	if s == statusOK && (d.Verdict.has(ReasonFailed) || d.Verdict.has(ReasonProbe) || d.Verdict.has(ReasonUntried)) {
		s = statusOpen
	}
	return s, said
}

func isSlow(o probe.Outcome) bool { return o == probe.Slow }

func countTransfers(r *probe.Report, holds func(probe.Outcome) bool) int {
	if r == nil {
		return 0
	}
	return len(lines.Filter(r.Transfers, func(t probe.Transfer) bool { return holds(t.Outcome) }))
}

// pathsOrWhy sums the peer paths up, or says why there is none.
func pathsOrWhy(d *Document, all paths) (status, string) {
	t := d.Transfers
	switch {
	case len(d.Host.GPUs) == 0 && (t == nil || len(t.Devices) == 0):
		return noGPU(d)
	case t == nil && d.Profile == rules.Image:
		return statusNone, "transfers are not tried in an image"
	case len(d.Host.GPUs) == 1 && (t == nil || len(t.Peers) == 0 && (t.Outcome == probe.OK || t.Outcome == "")):
		return oneGPU(t)
	case t == nil:
		return statusOpen, "no transfer was tried: " + d.whyUnknown("transfers")
	case t.Outcome == probe.Unknown && len(all.tried()) > 0:
		s, said := pathsLine(all)
		return s, said + ": " + cmp.Or(t.Reason, "the probe ended early")
	case t.Outcome != probe.OK && t.Outcome != "":
		return stopped(t, all)
	case len(all) == 0:
		return statusOpen, "no transfer was tried: the driver offers " + lines.Count(len(t.Devices), "GPU") + " to this process"
	}
	s, said := pathsLine(all)
	if open := gaps(d, all.with(probe.Unknown)); len(open) > 0 {
		said += ": " + gapsInWords(open)
	}
	return s, said
}

func oneGPU(t *probe.Report) (status, string) {
	const none = "only one GPU, so no peer paths"
	switch checked := t != nil && t.Checked(); {
	case t == nil || len(t.Devices) != 1:
		return statusNone, none
	case t.Devices[0].Outcome == probe.Unknown:
		return statusOpen, none + "; it could not be checked: " + t.Devices[0].Reason
	case t.Devices[0].Outcome != probe.OK || !checked:
		return statusNone, none
	}
	return statusOK, none + "; a kernel and copies from and to host memory deliver correct data"
}

func noGPU(d *Document) (status, string) {
	switch {
	case d.Profile == rules.Image:
		return statusNone, "no GPU is expected during an image build"
	case !d.Host.looked:
		return statusOpen, "not known whether there is a GPU: " + d.whyUnknown("pci")
	case d.unseen() != "":
		return statusOpen, "not known whether there is a GPU: " + d.unseen()
	}
	if len(d.Passed)+len(d.Findings)+len(d.Skipped) == 0 {
		return statusNone, "no GPU here, so no transfer"
	}
	return statusNone, "no GPU here, so no transfer; the host and the container are still judged"
}

// stopped says what stopped the probe: in which stage, on which GPU, and why.
func stopped(t *probe.Report, all paths) (status, string) {
	where := lines.Behind(" in the stage ", t.Stage) + lines.Behind(" on GPU ", t.GPU)
	reason := lines.Behind(": ", reasonOfCall(t.Call, t.Reason, t.ErrorName))
	if t.Left {
		reason += "; the process that called it cannot be killed"
	}
	switch done := len(all.tried()); {
	case done > 0:
		reason += fmt.Sprintf("; %d of %d peer paths were tried before that", done, len(all))
	case t.Outcome != probe.Unknown:
		reason += "; no transfer was tried"
	}
	switch {
	case t.Outcome == probe.Hang:
		return statusFail, "the GPU driver hangs" + where + reason
	case t.Outcome == probe.Unknown: // Whatever ended the process, the driver did not.
	case t.Signal != "":
		return statusFail, "the GPU driver crashes" + where + " with " + t.Signal + reason
	case t.Outcome == probe.Error || t.Outcome == probe.Corrupt:
		return statusFail, "the GPU driver fails" + where + reason
	}
	return statusOpen, "no transfer could be tried" + reason
}

func pathsLine(all paths) (status, string) {
	var s status
	var said []string
	say := func(o probe.Outcome, as status, many, one string, rest func(paths) string) {
		some := all.with(o)
		if len(some) == 0 {
			return
		}
		count, verb := fmt.Sprintf("%d of %d peer paths", len(some), len(all)), many
		if len(said) > 0 {
			count = fmt.Sprint(len(some))
		} else if len(all) == 1 {
			count = "the one peer path"
		}
		if len(some) == 1 {
			verb = one
		}
		said, s = append(said, count+" "+verb+rest(some)), cmp.Or(s, as)
	}
	say(probe.Corrupt, statusFail, "deliver", "delivers", func(paths) string { return " wrong data, and the driver reports success" })
	say(probe.Hang, statusFail, "hang", "hangs", func(bad paths) string { return ": not finished within the deadline" + inTests(bad) })
	say(probe.Error, statusFail, "fail", "fails", errorsOf)
	say(probe.Slow, statusSlow, "are", "is", func(slow paths) string {
		return " slower than the links allow: " + speed(slow.deciding()) + inTests(slow)
	})
	say(probe.OK, statusOK, "carry", "carries", func(good paths) string { return " data correctly" + lines.Behind(", ", speed(good.deciding())) })
	slow, good := all.with(probe.Slow), all.with(probe.OK)
	if v := speed(good.deciding()); v != "" && len(slow) > 0 && len(slow)+len(good) == len(all) { // The slow ones also carry correct data.
		said[len(said)-1] = "the others reach " + v + "; all data is correct"
	}
	say(probe.Unsupported, statusNone, "are", "is", func(paths) string { return " not offered by the driver: data goes through host memory" })
	say(probe.Unknown, statusOpen, "could", "could", func(paths) string { return " not be judged" })
	if s == statusOK && len(all.with(probe.Unknown)) > 0 {
		s = statusOpen
	}
	return s, strings.Join(said, "; ")
}

// inTests names the tests that decided, where that is not the plain copy.
func inTests(bad paths) string {
	tests := lines.Unique(lines.Map(bad.deciding(), func(t *probe.Transfer) string { return t.Test }))
	others := lines.Filter(tests, func(test string) bool { return test != probe.TestCopy })
	return lines.After(lines.Behind(" (", strings.Join(others, ", ")), ")")
}

// errorsOf names the driver's errors, each once.
func errorsOf(bad paths) string {
	names := lines.Map(bad.deciding(), func(t *probe.Transfer) string { return cmp.Or(t.ErrorName, t.Reason) })
	return lines.Behind(": ", lines.Joined(", ", lines.Unique(names)...)) + inTests(bad)
}

func figures(d *Document) []string {
	if d.Transfers == nil {
		return nil
	}
	var parts []string
	for _, t := range tests {
		ways, of := t.byWay(d.Transfers)
		var figures, bases []string
		tried := false
		for _, way := range ways {
			figures = append(figures, figure(of[way])+lines.Behind(" by ", way))
			for _, x := range of[way] {
				bases = append(bases, x.Basis)
				tried = tried || x.Outcome != probe.Unknown
			}
		}
		if tried { // The line above says what was not tried at all.
			parts = append(parts, t.name+" "+strings.Join(figures, ", ")+lines.Behind(" over a ", affinity.Uplink(bases)))
		}
	}
	if why := d.Transfers.SMTests; why != "" {
		parts = append(parts, "SM tests not tried: "+why)
	}
	return parts
}

// figure is a test's rates, else its times; what did not go well is counted behind it.
func figure(ts []*probe.Transfer) string {
	var rates, times []float64
	outcomes := map[probe.Outcome]int{}
	for _, t := range ts {
		outcomes[t.Outcome]++
		if t.GBps != nil {
			rates = append(rates, *t.GBps)
		}
		if t.Microseconds != nil {
			times = append(times, *t.Microseconds)
		}
	}
	s := "ok"
	switch {
	case len(outcomes) == 1 && outcomes[probe.OK] == 0 && len(rates) == 0:
		return outcomeInWords(ts[0].Outcome)
	case len(rates) > 0:
		s = lines.LeastToMost(rates, lines.Rate) + " GB/s"
	case len(times) > 0:
		s = lines.LeastToMost(times, lines.Microseconds) + " us"
	}
	for _, o := range []probe.Outcome{probe.Corrupt, probe.Hang, probe.Error, probe.Slow, probe.Unknown, probe.Unsupported} {
		if outcomes[o] > 0 {
			s += fmt.Sprintf(" (%d %s)", outcomes[o], outcomeInWords(o))
		}
	}
	return s
}

func outcomeInWords(o probe.Outcome) string {
	words := map[probe.Outcome]string{probe.Unknown: "not tried", probe.Unsupported: "not offered"}
	return cmp.Or(words[o], string(o))
}

const maxNamed = 4

// gapsInWords names each reason why transfers were not tried, behind the GPUs that it applies to, if it does not apply to all.
func gapsInWords(all []pair) string {
	return lines.First(lines.Map(together(lines.Unique(all)), func(a alike) string {
		names := strings.Join(a.Names, ", ")
		if len(a.Names) > maxNamed {
			names = lines.Count(len(a.Names), "GPU")
		}
		return lines.Joined(" ", names, a.Text)
	}), maxNamed, "; ")
}

// gaps says, GPU by GPU and reason by reason, why paths were not tried.
func gaps(d *Document, open paths) []pair {
	out := map[string]probe.Device{}
	for _, device := range d.Transfers.Devices {
		if device.Outcome != probe.OK && device.Outcome != "" {
			out[device.Address] = device
		}
	}
	var all []pair
	for _, p := range open {
		why := []pair{{Text: "the probe did not reach them"}}
		if p.plain != nil && p.plain.Reason != "" {
			why[0].Text = p.plain.Reason
		}
		if ends := lines.Filter([]string{p.source, p.destination}, func(address string) bool { return out[address].Address != "" }); len(ends) > 0 {
			why = lines.Map(ends, func(address string) pair { return gapOf(out[address]) })
		}
		all = append(all, why...)
	}
	return all
}

// gapOf says why a GPU was not tested, and how to continue.
func gapOf(device probe.Device) pair {
	reason := cmp.Or(reasonOfCall(device.Call, device.Reason, device.ErrorName), string(device.Outcome))
	switch u := device.User; {
	case device.Cause == probe.CauseBusy && u != nil:
		if u.PID > 0 {
			reason = "in use by " + cmp.Or(u.Program, "a process that is not visible here")
		}
		reason += ": use --probe-busy to include them"
	case device.Cause == probe.CauseNoMemory:
		reason += ": free some of its memory and run again"
	}
	return pair{device.Address, reason}
}

// reasonOfCall is why something failed, with the name of the driver's error. A reason with a call has it.
func reasonOfCall(call, reason, errorName string) string {
	if call != "" || reason == "" {
		return cmp.Or(reason, errorName)
	}
	return reason + lines.After(lines.Behind(" (", errorName), ")")
}
