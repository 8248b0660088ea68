package report

import (
	"cmp"

	"github.com/dustin/go-humanize/english"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/area"
	"github.com/gpudoctor/gpudoctor/rules"
)

func (d *Document) peerPaths() area.Line {
	all := newPaths(d)
	s, said := transfersLine(d, all)
	state := map[status]area.State{statusFail: area.Problem, statusSlow: area.Problem, statusOpen: area.Unknown, statusOK: area.OK}[s]
	if state == "" && len(all) > 0 {
		state = area.Note // The driver offers no path.
	}
	return area.Line{State: cmp.Or(state, area.NotApplicable), Summary: said}
}

// unseenGPUs says why there may be GPUs, or faults of them, although none is seen.
func (d *Document) unseenGPUs(lacks []rules.Missing) string {
	for _, m := range lacks {
		if m.Fact == "gpus.devices[].in_nvml" && !d.in.TextsOnly {
			return m.Short()
		}
	}
	return d.unseen()
}

var areaNames = map[rules.Area]string{
	rules.AreaGPUs: "GPUs", rules.AreaPCIe: "PCIe", rules.AreaIOMMU: "IOMMU", rules.AreaNUMA: "NUMA", rules.AreaKernelLog: "kernel log",
}

// AreaRows are the areas to be told, by the names that people know; those of which the input says too little stand in one row.
func (d *Document) AreaRows(verbose bool) []area.Line {
	var shown []area.Line
	var others []string
	for _, l := range d.Areas {
		left := len(d.in.Only) > 0 && l.State == area.Unknown && len(l.Rules) == 0 && l.Name != rules.AreaPaths
		name := cmp.Or(areaNames[l.Name], string(l.Name))
		l.Name = rules.Area(name)
		switch {
		case verbose:
			shown = append(shown, l)
		case l.State == area.NotApplicable, left:
		case d.in.TextsOnly && l.State == area.Unknown:
			others = append(others, name)
		default:
			shown = append(shown, l)
		}
	}
	if len(others) > 0 {
		shown = append(shown, area.Line{Name: "others", State: area.Unknown, Summary: "the input says too little about " + english.WordSeries(others, "and")})
	}
	return shown
}
