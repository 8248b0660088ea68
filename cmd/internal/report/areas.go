package report

import (
	"cmp"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/area"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// peerPaths is the area of the paths between GPUs as far as transfers tell.
func (d *Document) peerPaths() area.Line {
	all := newPaths(d)
	s, said := transfersLine(d, all)
	l := area.Line{Summary: said}
	switch {
	case s == statusFail, s == statusSlow:
		l.State = area.Problem
	case s == statusOpen:
		l.State = area.Unknown
	case s == statusOK:
		l.State = area.OK
	case len(all) > 0:
		l.State = area.Note // The driver offers no path.
	default:
		l.State = area.NotApplicable
	}
	return l
}

// unseenGPUs says why there may be GPUs, or faults of them, although none is seen.
func (d *Document) unseenGPUs(lacks []rules.Missing) string {
	for _, m := range lacks {
		if m.Fact == "gpus.devices[].in_nvml" && !d.textsOnly {
			return m.Short()
		}
	}
	return d.unseen()
}

// areaNames are what areas are called for people.
var areaNames = map[rules.Area]string{
	rules.AreaGPUs: "GPUs", rules.AreaPCIe: "PCIe", rules.AreaIOMMU: "IOMMU", rules.AreaNUMA: "NUMA", rules.AreaKernelLog: "kernel log",
}

func nameOf(a rules.Area) string { return cmp.Or(areaNames[a], string(a)) }

// shownAreas are the areas to be told, and the names of those of which the input says
// too little.
func (d *Document) shownAreas(verbose bool) (shown []area.Line, others []string) {
	for _, l := range d.Areas {
		left := d.only > 0 && l.State == area.Unknown && len(l.Rules) == 0 && l.Name != rules.AreaPaths
		switch {
		case verbose:
			shown = append(shown, l)
		case l.State == area.NotApplicable, left:
		case d.textsOnly && l.State == area.Unknown:
			others = append(others, nameOf(l.Name))
		default:
			shown = append(shown, l)
		}
	}
	return shown, others
}

// The columns of an area's line.
const (
	areaColumn  = 13 // Of the name: "environment" and a gap.
	stateColumn = 9  // Of the state: "problem" and a gap.
)

// areas writes a line for each part of the machine.
func (t *text) areas() {
	shown, others := t.v.shownAreas(t.style.Verbose)
	if len(shown) > 0 {
		t.Line()
	}
	for _, l := range shown {
		summary := l.Summary
		if l.Name == rules.AreaPaths && !t.v.textsOnly {
			summary += after(behind(" (", took(t.v.Timing.TotalMS)), ")")
		}
		t.area(nameOf(l.Name), l.State, summary)
		if l.Name == rules.AreaPaths && !t.v.textsOnly {
			t.remark(strings.Repeat(" ", areaColumn+stateColumn), lines.Dim, "", strings.Join(t.v.Figures, "; "))
		}
	}
	if len(others) > 0 {
		t.area("others", area.Unknown, "the input says too little about "+inWords(others)+" (--verbose)")
	}
}

// area writes one line: the name, the state and the summary.
func (t *text) area(name string, s area.State, summary string) {
	state := string(s)
	if s == area.NotApplicable {
		state = "n/a"
	}
	lead, margin := lines.Pad(name, areaColumn)+t.Paint(ColorOf(string(s)), lines.Pad(state, stateColumn)), strings.Repeat(" ", areaColumn+stateColumn)
	t.Under(lead, margin, lines.Plain, summary)
}
