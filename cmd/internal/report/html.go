package report

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/page"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/apply"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// writeHTML writes a report as a page for a browser.
func writeHTML(b *bytes.Buffer, d *Document, _ Style) {
	h := &pageOf{d: d, shown: map[string]int{}}
	if err := page.Write(b, h.report()); err != nil {
		// The template is part of the program, and a buffer takes all.
		panic(fmt.Sprintf("write page: %v", err))
	}
}

// pageOf fills a page.
type pageOf struct {
	d *Document
	// shown holds the number of the finding under which a remedy is shown.
	shown map[string]int
}

func (h *pageOf) report() *page.Report {
	d := h.d
	r := &page.Report{
		Verdict: h.verdict(), State: h.state(), Machine: texts(d.Host.parts), Reason: line(d.Verdict.Reason),
		Picture: d.topology(), Redacted: d.redactedNote(), Facts: h.facts(),
	}
	if !d.textsOnly {
		_, said := transfersLine(d, newPaths(d))
		r.Transfers = upperFirst(line(said)) + "."
	}
	for i, g := range groups(d.Findings) {
		r.Findings = append(r.Findings, h.finding(i+1, g))
	}
	r.First = first(r.Findings)
	if r.Picture != nil {
		r.Tree = h.tree()
		if r.Picture.Hidden {
			r.Notes = []string{hiddenPaths}
		}
	}
	h.matrices(r)
	h.open(r)
	h.about(r)
	return r
}

// verdict is the report in a few words.
func (h *pageOf) verdict() string {
	if h.d.Verdict.State != Findings {
		return upperFirst(h.d.title())
	}
	if len(h.d.Findings) == 1 {
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
func line(s string) string { return Printable(s, false) }

// texts are such lines.
func texts(all []string) []string {
	safe := make([]string, len(all))
	for i, s := range all {
		safe[i] = line(s)
	}
	return safe
}

// block is lines as they are, each safe to show.
func block(lines []string) string { return strings.Join(texts(lines), "\n") }

// tree is the picture as text.
func (h *pageOf) tree() string {
	var b bytes.Buffer
	t := newText(&b, h.d, Style{})
	t.tree(h.d.topology())
	return b.String()
}

// first is what to do about the worst finding of medium severity or above that says
// what to do.
func first(findings []page.Finding) *page.First {
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

// finding describes findings that are alike.
func (h *pageOf) finding(number int, g group) page.Finding {
	f := page.Finding{
		Number: number, Severity: string(g.Severity), Title: line(g.Title), Rule: line(g.Rule), Confidence: string(g.Confidence),
		Messages: texts(g.messages()), Notes: texts(g.withheld(h.d.Withheld)),
	}
	if !g.namesSubjects(g.messages()) {
		f.Subjects = texts(g.subjects)
	}
	for _, e := range g.explained() {
		f.Explains = append(f.Explains, page.Pair{Name: line(e.Rule), Text: line(strings.Join(e.subjects, ", "))})
	}
	for _, c := range g.candidates() {
		f.Candidates = append(f.Candidates, page.Pair{Name: line(c.Title), Text: line(inFavour(c))})
	}
	for _, s := range g.steps() {
		f.Steps = append(f.Steps, page.Step{Look: line(s.Look), Command: line(s.Command)})
	}
	cure := cureOf(g, h.d.Advice)
	for _, l := range cure.lead {
		f.Remedies = append(f.Remedies, h.remedy(number, l.label, l.advice))
	}
	f.Others = texts(cure.others)
	if len(cure.lead) > 0 {
		f.Check = line(h.d.recheck.Command(g.ids()...))
	}
	for _, one := range g.findings {
		for _, e := range one.Evidence {
			value, isText := e.Value.(string)
			if !isText {
				value = valueOf(e.Value)
			}
			f.Evidence = append(f.Evidence, page.Evidence{Fact: line(e.Fact), Value: line(value), Source: line(e.Source)})
		}
	}
	return f
}

// remedy describes one of the advice, or refers to the finding that shows it.
func (h *pageOf) remedy(number int, label string, a *remedies.Advice) page.Remedy {
	r := page.Remedy{Label: label, Title: line(a.Title), ID: line(a.ID())}
	key := a.ID() + "\x00" + valueOf(a.Apply)
	if h.shown[key] != unnumbered {
		r.Same = h.shown[key]
		return r
	}
	h.shown[key] = number
	r.Effort, r.Proof, r.Cost, r.Caution = line(apply.Effort(a.Needs, a.Lasts)), line(apply.Proof(a.Proof)), line(a.Cost), line(a.Caution)
	r.Description, r.Why, r.Undo, r.Verify = line(a.Description), line(a.Why), line(a.Undo), line(a.Verify)
	primary, others := apply.Instructions(a.Apply, h.d.runs)
	r.Blocks, r.More = blocksOf(primary), blocksOf(others)
	for _, l := range a.Links {
		if address.MatchString(l) {
			r.Links = append(r.Links, l)
		}
	}
	return r
}

// blocksOf are instructions as they stand on a page.
func blocksOf(all []apply.Instruction) []page.Block {
	var blocks []page.Block
	for _, i := range all {
		if i.Language == "" {
			blocks = append(blocks, page.Block{Where: i.Where, Steps: texts(i.Lines)})
		} else {
			blocks = append(blocks, page.Block{Where: i.Where, Text: block(i.Lines)})
		}
	}
	return blocks
}

// matrices are the table of the paths between the GPUs, and folded those of tests.
func (h *pageOf) matrices(r *page.Report) {
	if m := newMatrix(h.d, newPaths(h.d)); len(m.devices) > 1 {
		r.Matrices = append(r.Matrices, heatOf(m, false))
		for _, m := range testMatrices(h.d, true) {
			r.Matrices = append(r.Matrices, heatOf(m, true))
		}
	}
}

// heatLevels is how many shades a table has.
const heatLevels = 5

// heatOf makes a heat map: the shade of a number tells its share of the greatest one.
func heatOf(m matrix, folded bool) page.Matrix {
	out := page.Matrix{Title: m.title, Legend: m.legend, Folded: folded}
	for i, head := range m.heads {
		out.Heads = append(out.Heads, page.Pair{Name: line(head), Text: line(m.columns[i])})
	}
	most := 0.0
	for _, row := range m.cells {
		for _, c := range row {
			most = max(most, number(c))
		}
	}
	for i, row := range m.cells {
		r := page.MatrixRow{Name: line(m.labels[i]), Address: line(m.devices[i])}
		for j, c := range row {
			cell := page.Cell{Text: c, Class: heatClass(c, m.marks[i][j], most), Title: line(m.devices[i] + " -> " + m.columns[j])}
			if c == "." {
				cell = page.Cell{Text: "–", Class: "self"}
			}
			r.Cells = append(r.Cells, cell)
		}
		out.Rows = append(out.Rows, r)
	}
	return out
}

// number is what a cell begins with; 0 where that is no number.
func number(cell string) float64 {
	v, err := strconv.ParseFloat(strings.TrimRight(cell, "!?"), 64)
	if err != nil {
		return 0
	}
	return v
}

// heatClass is the colour of a cell.
func heatClass(cell string, o probe.Outcome, most float64) string {
	switch v := number(cell); {
	case o.Failed():
		return "bad"
	case o == probe.Slow:
		return "slow"
	case v > 0:
		return fmt.Sprintf("heat%d", min(int(v/most*heatLevels), heatLevels-1))
	}
	return "none"
}

// open lists what could not be judged, and what could not be read.
func (h *pageOf) open(r *page.Report) {
	add := func(title string, pairs []page.Pair) {
		if len(pairs) > 0 {
			r.Open = append(r.Open, page.List{Title: title, Pairs: pairs})
		}
	}
	var skipped, unknown, wanted []page.Pair
	for _, s := range h.d.Skipped {
		skipped = append(skipped, page.Pair{Name: line(s.Rule), Text: line(strings.Join(s.Missing, "; "))})
	}
	for _, u := range h.d.Unknown {
		said := u.Reason
		if u.Hint != "" {
			said += " (" + u.Hint + ")"
		}
		unknown = append(unknown, page.Pair{Name: line(strings.TrimSuffix(u.Section+"."+u.Fact, ".")), Text: line(said)})
	}
	for _, w := range h.d.Wanted {
		wanted = append(wanted, page.Pair{Name: line(w.Send), Text: "settles " + line(strings.Join(w.Settles, ", "))})
	}
	add("What would settle it", wanted)
	add("Rules that could not be judged", skipped)
	add("Facts that could not be read", unknown)
}

// about says how the report came about.
func (h *pageOf) about(r *page.Report) {
	d := h.d
	add := func(name, text string) {
		if text != "" {
			r.About = append(r.About, page.Pair{Name: name, Text: line(text)})
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

// upperFirst begins a sentence.
func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
