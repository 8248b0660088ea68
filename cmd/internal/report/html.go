package report

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/page"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/apply"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/topology"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// writeHTML writes a report as a page for a browser.
func writeHTML(b *bytes.Buffer, d *Document, _ Style) {
	h := &pageOf{d: d, shown: map[string]int{}}
	h.write(b, h.report())
}

// pageOf fills a page.
type pageOf struct {
	d *Document
	// shown holds the number of the finding under which a remedy is shown.
	shown map[string]int
}

// write writes a page.
func (h *pageOf) write(b *bytes.Buffer, r *page.Report) {
	if err := page.Write(b, r); err != nil {
		// The template is part of the program, and a buffer takes all.
		panic(fmt.Sprintf("write page: %v", err))
	}
}

// transfers is the page of a command that makes transfers and nothing else.
func (h *pageOf) transfers() *page.Report {
	_, said := transfersLine(h.d, newPaths(h.d))
	r := &page.Report{
		Verdict: "Transfers between the GPUs", State: map[int]string{0: "good", 1: "bad"}[TransfersExitCode(h.d)],
		Machine: h.lines(h.d.Host.parts), Transfers: h.sentence(h.line(said)) + ".", Redacted: h.d.redactedNote(),
	}
	r.State = cmp.Or(r.State, "open")
	h.matrices(r)
	return r
}

func (h *pageOf) report() *page.Report {
	d := h.d
	r := &page.Report{
		Verdict: h.verdict(), State: h.state(), Machine: h.lines(d.Host.parts),
		Picture: d.topology(), Redacted: d.redactedNote(), Facts: page.Outline(d.shown(), h.line),
	}
	if !d.textsOnly {
		_, said := transfersLine(d, newPaths(d))
		r.Transfers = h.sentence(h.line(said)) + "."
	}
	for i, g := range groups(d.Findings) {
		r.Findings = append(r.Findings, h.finding(i+1, g))
	}
	r.First = h.first(r.Findings)
	h.waived(r)
	if b := d.Baseline; b != nil {
		r.Baseline = h.line(b.Source)
		for _, e := range b.Entries() {
			r.Since = append(r.Since, h.line(e.Label+": "+e.Text))
		}
	}
	if r.Picture != nil {
		r.Tree = h.tree()
		if r.Picture.Hidden {
			r.Notes = []string{topology.HiddenPaths}
		}
		for _, note := range r.Picture.Notes {
			r.Notes = append(r.Notes, h.line(note))
		}
	}
	h.matrices(r)
	h.examined(r)
	h.about(r)
	return r
}

// verdict is the report in a few words.
func (h *pageOf) verdict() string {
	if h.d.Verdict.State != Findings {
		return h.sentence(h.d.title())
	}
	if len(h.d.Findings)+len(h.d.Waived) == 1 {
		return h.d.title() + " finding"
	}
	return h.d.title() + " findings"
}

// state is the colour of the verdict.
func (h *pageOf) state() string {
	switch v := &h.d.Verdict; {
	case v.Counts.Critical+v.Counts.High > 0 || v.has(ReasonFailed):
		return "bad"
	case v.State == Findings:
		return "warn"
	case v.State == Healthy:
		return "good"
	}
	return "open"
}

// line makes a string from the machine safe to show in one line.
func (h *pageOf) line(s string) string { return lines.Printable(s, false) }

// lines are such strings.
func (h *pageOf) lines(all []string) []string {
	safe := make([]string, len(all))
	for i, s := range all {
		safe[i] = h.line(s)
	}
	return safe
}

// tree is the picture as text.
func (h *pageOf) tree() string {
	var b bytes.Buffer
	t := newText(&b, h.d, Style{})
	t.tree(h.d.topology())
	return b.String()
}

// first is what to do about the worst finding of medium severity or above that says
// what to do.
func (h *pageOf) first(findings []page.Finding) *page.First {
	for _, f := range findings {
		switch {
		case !atLeast(rules.Severity(f.Severity), rules.Medium):
			return nil
		case len(f.Remedies) > 0:
			r := f.Remedies[0]
			if typed := slices.DeleteFunc(slices.Clone(r.Blocks), func(b page.Block) bool { return b.Text == "" }); len(typed) > 0 {
				r.Blocks = typed // What is said beside it stands with the finding.
			}
			return &page.First{Finding: f.Number, Title: r.Title, Remedy: &r}
		case len(f.Steps) > 0:
			return &page.First{Finding: f.Number, Title: f.Title, Steps: f.Steps}
		}
	}
	return nil
}

// sentence begins with a capital letter.
func (h *pageOf) sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// finding describes findings that are alike.
func (h *pageOf) finding(number int, g group) page.Finding {
	f := page.Finding{
		Number: number, Severity: string(g.Severity), Title: h.line(g.Title), Rule: h.line(g.Rule), Confidence: g.certainty(),
		Messages: h.lines(g.messages()), Notes: h.lines(g.withheld(h.d.Withheld)),
	}
	if o := h.d.objectOf(g); o != "" {
		f.Notes = append([]string{h.line(o)}, f.Notes...)
	}
	if !g.namesSubjects(g.messages()) {
		f.Subjects = h.lines(g.subjects)
	}
	for _, e := range g.explained() {
		f.Explains = append(f.Explains, page.Pair{Name: h.line(e.Rule), Text: h.line(strings.Join(e.subjects, ", "))})
	}
	for _, c := range g.candidates() {
		f.Candidates = append(f.Candidates, page.Pair{Name: h.line(c.Title), Text: inFavour(c, h.line, h.line)})
	}
	for _, s := range g.steps() {
		f.Steps = append(f.Steps, page.Step{Look: h.line(s.Look), Command: h.line(s.Command)})
	}
	cure := cureOf(g, h.d.Advice)
	for _, l := range cure.lead {
		f.Remedies = append(f.Remedies, h.remedy(number, l.label, l.advice))
	}
	f.Others = h.lines(cure.others)
	if len(cure.lead) > 0 {
		f.Check, f.Fresh = h.line(h.d.recheck.Command(g.ids()...)), h.d.recheck.Fresh()
	}
	for _, one := range g.findings {
		for _, e := range one.Evidence {
			value, isText := e.Value.(string)
			if !isText {
				value = valueOf(e.Value)
			}
			f.Evidence = append(f.Evidence, page.Evidence{Fact: h.line(e.Fact), Value: h.line(value), Source: h.line(e.Source)})
		}
	}
	return f
}

// remedy describes one of the advice, or refers to the finding that shows it.
func (h *pageOf) remedy(number int, label string, a *remedies.Advice) page.Remedy {
	r := page.Remedy{Label: label, Title: h.line(a.Title), ID: h.line(a.ID())}
	key := a.ID() + "\x00" + valueOf(a.Apply)
	if h.shown[key] != unnumbered {
		r.Same = h.shown[key]
		return r
	}
	h.shown[key] = number
	r.Effort, r.Proof, r.Cost, r.Caution = h.line(apply.Effort(a.Needs, a.Lasts)), h.line(apply.Proof(a.Proof)), h.line(a.Cost), h.line(a.Caution)
	r.Description, r.Why, r.Undo, r.Verify = h.line(a.Description), h.line(a.Why), h.line(a.Undo), h.line(a.Verify)
	primary, others := apply.Instructions(a.Apply, h.d.runsOf(a))
	r.Blocks, r.More = h.blocks(primary), h.blocks(others)
	if efforts := apply.Efforts(primary, a.Needs, a.Lasts); efforts != nil {
		r.Effort = ""
		for i := range r.Blocks {
			r.Blocks[i].Effort = h.line(efforts[i])
		}
	}
	for _, l := range a.Links {
		if strings.HasPrefix(l, "https://") || strings.HasPrefix(l, "http://") {
			r.Links = append(r.Links, h.line(l))
		}
	}
	return r
}

// blocks are instructions as they stand on a page.
func (h *pageOf) blocks(all []apply.Instruction) []page.Block {
	var blocks []page.Block
	for _, i := range all {
		if i.Language == "" {
			blocks = append(blocks, page.Block{Where: i.Where, Steps: h.lines(i.Lines)})
		} else {
			blocks = append(blocks, page.Block{Where: i.Where, Text: strings.Join(h.lines(i.Lines), "\n")})
		}
	}
	return blocks
}

// matrices are the table of the paths between the GPUs, and folded those of tests.
func (h *pageOf) matrices(r *page.Report) {
	if m := newMatrix(h.d, newPaths(h.d)); len(m.devices) > 1 {
		r.Matrices = append(r.Matrices, h.heatMap(m, false))
		for _, m := range testMatrices(h.d, true) {
			r.Matrices = append(r.Matrices, h.heatMap(m, true))
		}
	}
}

// heatMap makes a table of what a matrix holds.
func (h *pageOf) heatMap(m matrix, folded bool) page.Matrix {
	out := page.Matrix{Title: m.title, Legend: m.legend, Folded: folded, Heads: h.lines(m.heads)}
	for i, row := range m.cells {
		r := page.MatrixRow{Name: h.line(m.labels[i]), Address: h.line(m.devices[i])}
		for j, c := range row {
			cell := page.Cell{Text: c, Title: h.line(m.devices[i] + " -> " + m.columns[j])}
			switch o := m.marks[i][j]; {
			case c == ".":
				cell = page.Cell{Text: "–", Class: "self"}
			case o.Failed():
				cell.Class = "bad"
			case o == probe.Slow:
				cell.Class = "slow"
			case c == string(probe.OK):
				cell.Class = "ok"
			}
			r.Cells = append(r.Cells, cell)
		}
		out.Rows = append(out.Rows, r)
	}
	out.Shade()
	out.Legend = h.legend(m, out)
	return out
}

// legend explains the numbers at the edges, the shades and the marks of a table.
func (h *pageOf) legend(m matrix, shown page.Matrix) string {
	said := "Rows are GPUs."
	if slices.Equal(m.devices, m.columns) {
		said = "Rows and columns are GPUs."
	}
	shaded := slices.ContainsFunc(shown.Rows, func(r page.MatrixRow) bool {
		return slices.ContainsFunc(r.Cells, func(c page.Cell) bool { return strings.HasPrefix(c.Class, "heat") })
	})
	if shaded {
		said += " The stronger the shade, the higher the number."
	}
	if m.legend != "" {
		said += " " + m.legend + "."
	}
	return said
}

// examined lists what texts were taken for, what could not be judged, and what could
// not be read.
func (h *pageOf) examined(r *page.Report) {
	add := func(title string, pairs []page.Pair) {
		if len(pairs) > 0 {
			r.Examined = append(r.Examined, page.List{Title: title, Pairs: pairs})
		}
	}
	var texts, wanted, skipped, unknown []page.Pair
	for _, t := range h.d.Texts {
		var said []string
		for _, k := range t.Kinds {
			said = append(said, fmt.Sprintf("%s from line %d", k.Kind, k.Line))
		}
		if t.Problem != "" {
			said = append(said, t.Problem)
		}
		if len(said) == 0 {
			said = []string{"not recognized"}
		}
		texts = append(texts, page.Pair{Name: h.line(t.Name), Text: h.line(strings.Join(said, "; "))})
	}
	for _, w := range h.d.Wanted {
		wanted = append(wanted, page.Pair{Name: h.line(w.Send), Text: "to decide " + h.line(strings.Join(w.Settles, ", "))})
	}
	for _, s := range h.d.Skipped {
		skipped = append(skipped, page.Pair{Name: h.line(s.Rule), Text: h.line(strings.Join(s.Missing, "; "))})
	}
	for _, u := range h.d.Unknown {
		said := u.Reason
		if u.Hint != "" {
			said += " (" + u.Hint + ")"
		}
		unknown = append(unknown, page.Pair{Name: h.line(strings.TrimSuffix(u.Section+"."+u.Fact, ".")), Text: h.line(said)})
	}
	add("Texts", texts)
	add("What to send next", wanted)
	if n := len(r.Examined); len(wanted) > 0 {
		// Who is left without a certain verdict needs it first.
		r.Examined[n-1].Open = h.d.open() || h.d.Verdict.State == Inconclusive
	}
	listed := len(r.Examined)
	add("Rules that could not be judged", skipped)
	add("Facts that could not be read", unknown)
	for i := range r.Examined[listed:] {
		r.Examined[listed+i].OnScreen = true
	}
}

// about says how the report came about.
func (h *pageOf) about(r *page.Report) {
	d := h.d
	add := func(name, text string) {
		if text != "" {
			r.About = append(r.About, page.Pair{Name: name, Text: h.line(text)})
		}
	}
	system := []string{d.Host.Distribution, d.Host.Kernel, d.Host.Arch}
	add("Host", d.Host.Hostname)
	add("System", strings.Join(slices.DeleteFunc(system, func(s string) bool { return s == "" }), ", "))
	add("Processor", d.Host.CPU)
	add("Measured", strings.Join(figures(d), "; "))
	add("Examined", strings.Join(d.Sources, ", "))
	add("Rules", fmt.Sprintf("%d passed, %d could not be judged, %d do not apply", len(d.Passed), len(d.Skipped), len(d.NotApplicable)))
	add("Exit code", fmt.Sprintf("%d: %s", d.Verdict.ExitCode, d.Verdict.Reason))
	add("gpudoctor", d.Version+", profile "+string(d.Profile))
}
