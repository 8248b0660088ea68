package compare

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// pair is a finding on side A and the same one on side B; one of them is nil where the other side lacks it.
type pair struct{ before, after *Said }

// pairs are the findings of two reports, paired by rule, variable and subject, then by rule and what they affect.
func pairs(a, b []rules.Finding) []pair {
	left, right := flat(a, ""), flat(b, "")
	var all []pair
	for _, same := range []func(x, y *Said) bool{
		func(x, y *Said) bool { return x.Subject == y.Subject && x.sameMessage(y) },
		func(x, y *Said) bool { return x.Subject == y.Subject },
		(*Said).touches,
	} {
		left = slices.DeleteFunc(left, func(x *Said) bool {
			i := slices.IndexFunc(right, func(y *Said) bool { return x.Rule == y.Rule && x.variable == y.variable && same(x, y) })
			if i >= 0 {
				all = append(all, pair{x, right[i]})
				right = slices.Delete(right, i, i+1)
			}
			return i >= 0
		})
	}
	onlyBefore := lines.Map(left, func(x *Said) pair { return pair{before: x} })
	onlyAfter := lines.Map(right, func(y *Said) pair { return pair{after: y} })
	return slices.Concat(all, onlyBefore, onlyAfter)
}

func compareFindings(a, b []rules.Finding) []Item {
	differ := func(p pair) bool { return p.before == nil || p.after == nil || !p.before.says(p.after) }
	return lines.Map(lines.Filter(pairs(a, b), differ), pair.item)
}

// item names a finding by the side that has it, A first if both have.
func (p pair) item() Item {
	change, named := Changed, cmp.Or(p.before, p.after)
	switch {
	case p.before == nil:
		change = New
	case p.after == nil:
		change = Gone
	}
	name := named.Rule + " " + named.Subject
	return Item{Kind: Finding, Change: change, Path: "findings[" + name + "]", BeforeFinding: p.before, AfterFinding: p.after, pattern: "findings[]", at: name}
}

// flat lists findings and their consequences, in an order that depends on neither.
func flat(findings []rules.Finding, under string) []*Said {
	var all []*Said
	for _, f := range findings {
		variable, _ := f.Params["variable"].(string)
		all = append(all, &Said{
			Rule: f.Rule, Title: f.Title, Severity: f.Severity, Confidence: f.Confidence, Subject: f.About(), Message: f.Message, Under: under,
			affects: f.Affects, variable: variable,
		})
		all = append(all, flat(f.Explains, f.Rule)...)
	}
	slices.SortStableFunc(all, func(x, y *Said) int {
		return cmp.Or(strings.Compare(x.Rule, y.Rule), strings.Compare(x.Subject, y.Subject), strings.Compare(x.Message, y.Message))
	})
	return all
}

func (s *Said) touches(other *Said) bool {
	return slices.ContainsFunc(s.affects, func(address string) bool { return slices.Contains(other.affects, address) })
}

func (s *Said) says(other *Said) bool {
	return s.Severity == other.Severity && s.Confidence == other.Confidence && s.Subject == other.Subject && s.sameMessage(other)
}

// sameMessage compares the messages; measured values in them may differ as two measurements of one thing do.
func (s *Said) sameMessage(other *Said) bool {
	if s.Message == other.Message {
		return true
	}
	a, b := decimal.FindAllString(s.Message, -1), decimal.FindAllString(other.Message, -1)
	return decimal.ReplaceAllString(s.Message, "#") == decimal.ReplaceAllString(other.Message, "#") &&
		slices.EqualFunc(a, b, func(v, w string) bool { return near(number(v), number(w)) })
}

func number(s string) float64 {
	value, _, _ := strings.Cut(s, " ")
	n, _ := strconv.ParseFloat(value, 64) // It is a number, by the pattern.
	return n
}

// decimal is a number with a unit of a rate, a time or a share: what was measured.
var decimal = lazy.New(`\b[0-9]+(?:\.[0-9]+)?(?: (?:GB/s|Gb/s|us|ms|%))`)

// skippedOnly lists the rules that were skipped in a report and judged in the other.
func skippedOnly(change Change, d, other *report.Document) []Item {
	var items []Item
	for _, s := range d.Skipped {
		also := slices.ContainsFunc(other.Skipped, func(o report.Skipped) bool { return o.Rule == s.Rule })
		if also || !judged(other, s.Rule) {
			continue
		}
		i := Item{Kind: Reading, Change: change, Path: "skipped[" + s.Rule + "]", pattern: "skipped[]", at: s.Rule}
		*map[Change]*any{New: &i.After, Gone: &i.Before}[change] = strings.Join(s.Missing, "; ")
		items = append(items, i)
	}
	return items
}

// judged reports whether a rule passed in a report or found something.
func judged(d *report.Document, rule string) bool {
	return slices.Contains(d.Passed, rule) || slices.ContainsFunc(flat(d.AllFindings(), ""), func(o *Said) bool { return o.Rule == rule })
}

func factsOf(d *report.Document) *facts.Facts {
	h := d.Host
	f := &facts.Facts{
		Host:      &facts.HostFacts{Hostname: h.Hostname, Kernel: h.Kernel, Arch: h.Arch, Distribution: h.Distribution},
		Transfers: d.Transfers,
		Unknown:   d.Unknown,
	}
	if h.CPU != "" {
		f.Host.CPU = &facts.CPU{Model: h.CPU}
	}
	if h.Virtualization != "" {
		f.Host.Virtualization = &facts.Virtualization{Kind: h.Virtualization}
	}
	f.GPUs = &facts.GPUFacts{Driver: facts.GPUDriver{Version: h.Driver, CUDAVersion: h.CUDA}}
	f.GPUs.Devices = lines.Map(h.GPUs, func(g report.GPU) facts.GPU {
		return facts.GPU{Address: g.Address, Index: g.Index, Name: g.Name, MemoryBytes: g.MemoryBytes}
	})
	noGPU := slices.ContainsFunc(d.Verdict.Reasons, func(r report.Reason) bool { return r.Code == report.ReasonNoGPU })
	if f.GPUs.Devices == nil && noGPU {
		f.GPUs.Devices = []facts.GPU{} // It was looked for one.
	}
	return f
}

// standIn is a UUID or the name of a host that takes the place of another (docs/redaction.md).
var standIn = lazy.New(`00000000-0000-0000-0000-|^host-[0-9]+$`)

// Replaced reports whether stand-ins took the place of names.
func Replaced(s Input) bool {
	if s.Report.Redacted == report.RedactedNames {
		return true
	}
	f := cmp.Or(s.Facts, &facts.Facts{})
	isStandIn := func(g facts.GPU) bool { return standIn.MatchString(g.UUID) }
	return f.Host != nil && standIn.MatchString(f.Host.Hostname) || slices.ContainsFunc(f.GPUs.All(), isStandIn)
}
