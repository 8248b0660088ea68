package emit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

type overview struct{ lines.Page }

// Overview is a plan for a person, in columns as a terminal has (0 for 100): what to set where, with the reasons, what else to
// do, and where each rank belongs.
func Overview(p *plan.Plan, columns int, color, ascii bool) []byte {
	o := overview{lines.NewPage(columns, color)}
	p = lines.Clean(p, ascii)
	o.Wrapped("", lines.Bold, p.Machine)
	o.settings(p, "Environment of the job", plan.Variable, plan.Unset, plan.Argument)
	o.settings(p, "Container, if the job runs in one", ofContainer[2:]...)
	o.settings(p, "Machine", plan.KernelParameter, plan.Sysctl, plan.ModuleOption)
	switch {
	case p.IsEmpty():
		o.Wrapped("", lines.Plain, "No GPU is known and no problem was found, so there is nothing to advise. On a machine with GPUs, gpudoctor snapshot -o machine.txtar records it for --from.")
	case len(p.Settings) == 0:
		o.Line()
		o.Wrapped("", lines.Plain, "No setting is needed: the defaults fit this machine.")
	}
	if len(p.Steps) > 0 {
		o.Head("To do, which no file sets")
		for i, step := range p.Steps {
			o.Wrapped("  ", lines.Plain, fmt.Sprintf("%d. %s (gpudoctor explain %s)", i+1, step.Title, step.Remedy))
		}
	}
	o.ranks(p)
	if len(p.Unknown) > 0 {
		o.Line()
		o.Wrapped("", lines.Yellow, "Settings may be missing, because these are not known: "+strings.Join(p.Unknown, ", ")+".")
	}
	o.Line()
	o.Wrapped("", lines.Dim, "To write them to a file: gpudoctor advise --for TARGET -o FILE. Targets: "+strings.Join(Names(), ", ")+".")
	return o.B.Bytes()
}

// settings writes those of some kinds under a heading; those with the same reason stand together.
func (o *overview) settings(p *plan.Plan, heading string, kinds ...plan.Kind) {
	all := of(p.Settings, kinds...)
	if len(all) == 0 {
		return
	}
	o.Head(heading)
	for _, same := range sameReason(all) {
		for _, s := range same {
			said := Words(s)
			if len(s.For) > 0 {
				said += " (" + strings.Join(s.For, ", ") + ")"
			}
			o.Line("  " + o.Paint(lines.Cyan, said))
		}
		o.Wrapped("      ", lines.Plain, why(same[0]))
	}
}

func (o *overview) ranks(p *plan.Plan) {
	hasNICs := func(r plan.Rank) bool { return len(r.NICs) > 0 }
	if len(p.Ranks) < 2 || !p.Bind && !slices.ContainsFunc(p.Ranks, hasNICs) {
		return
	}
	o.Head("Ranks")
	if p.Bind {
		o.Wrapped("  ", lines.Plain, "Each rank runs best on the NUMA node of its GPU. The files for torchrun, vLLM, SGLang, DeepSpeed, MPI and Slurm bind it.")
	}
	rows := [][]string{{"rank", "GPU", "NUMA node", "CPUs", "nearest NICs"}}
	for i, r := range p.Ranks {
		node := "-"
		if r.Node != nil {
			node = strconv.Itoa(*r.Node)
		}
		rows = append(rows, []string{strconv.Itoa(i), r.GPU, node, cmp.Or(r.CPUs, "-"), cmp.Or(strings.Join(r.NICs, ", "), "-")})
	}
	for row := range strings.Lines(lines.Table(rows)) {
		o.Line("  " + strings.TrimSuffix(row, "\n"))
	}
}
