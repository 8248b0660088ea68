package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/template"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/area"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/topology"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Bounds of what the text shows unless all is asked for. The template has others.
const (
	maxMessages = 4  // Messages of findings that are shown as one.
	maxReasons  = 3  // Reasons why a verdict is not healthy.
	maxObjects  = 16 // Parts of files.
)

const labelWidth = 7

//go:embed templates/report.txt.tmpl
var textTemplateText string

// textTemplate is the template. Its functions are replaced by those of a text. What stands behind a tab is broken into lines: no value
// of a view holds one.
var textTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("text").Funcs((&text{}).functions()).Parse(strings.ReplaceAll(textTemplateText, "»", "\t")))
})

// text writes a report for a person.
type text struct {
	lines.Page
	v     *view
	style Style
	full  bool // Each remedy is told in full, and what it is called.

	template *template.Template
}

var colors = map[string]lines.Color{
	string(rules.Critical): lines.Red, string(rules.High): lines.Red, string(rules.Medium): lines.Yellow, string(rules.Low): lines.Cyan,
	string(statusFail): lines.Red, string(statusSlow): lines.Yellow, string(statusOpen): lines.Yellow, // And statusOK, as area.OK.
	string(area.Problem): lines.Red, string(area.Unknown): lines.Yellow, string(area.Note): lines.Cyan, string(area.OK): lines.Green,
	"bad": lines.Red, "warn": lines.Yellow, "open": lines.Yellow, "yellow": lines.Yellow, "good": lines.Green, "green": lines.Green,
}

// ColorOf is the colour of a severity, a status, the state of an area or the class of a verdict.
func ColorOf(s string) lines.Color { return cmp.Or(colors[s], lines.Dim) }

func newText(v *view, s Style) *text {
	t := &text{Page: lines.NewPage(s.Width, s.Color), v: v, style: s}
	t.template = template.Must(textTemplate().Clone()).Funcs(t.functions())
	return t
}

func (t *text) functions() template.FuncMap {
	bound := func(most int) int {
		if t.style.Verbose {
			return 1 << 30
		}
		return most
	}
	some := func(names []string, most int, separator string) string {
		return lines.First(names, bound(most), separator)
	}
	paint := func(c, s any) string { return t.Paint(ColorOf(fmt.Sprint(c)), fmt.Sprint(s)) }
	return template.FuncMap{
		"paint": paint, "pad": func(s any, width int) string { return lines.Pad(fmt.Sprint(s), width) },
		"dim":   func(s string) string { return t.Paint(lines.Dim, s) },
		"bold":  func(s any) string { return t.Paint(lines.Bold, fmt.Sprint(s)) },
		"label": func(s string) string { return paint("green", lines.Pad(s, labelWidth)) },
		"blank": func(s any) string { return strings.Repeat(" ", utf8.RuneCountInString(fmt.Sprint(s))) },
		"entry": func(label any, said, remark string) string {
			return paint(label, lines.Pad(fmt.Sprint(label), 6)) + "\t" + said + lines.After(lines.Behind(" (", remark), ")")
		},
		"in":    t.in,
		"first": func(list any, most int) any { return firstItems(list, bound(most)) },
		"more":  func(list any, most int) int { return moreItems(list, bound(most)) },
		"some":  some,
		"at": func(f finding) string {
			if slices.Equal(f.Subjects(), []string{"host"}) {
				return ""
			}
			return ": " + some(f.Subjects(), maxMessages, ", ")
		},
		"brief": func(s string) string {
			if t.style.Verbose {
				return s
			}
			return sentence(s)
		},
		"bare": bare, "number": number, "join": strings.Join, "count": lines.Count, "took": took, "topics": func(all []finding) string { return strings.Join(topics(all), ", ") },
		"favour":  func(c rules.Candidate) string { return inFavour(c, strings.TrimSpace, strings.TrimSpace) },
		"quoted":  quoted,
		"verbose": func() bool { return t.style.Verbose },
		"full":    func() bool { return t.full },
		"grave":   func() int { return t.v.Grave },
		"objects": func() *objectList { return t.v.listedObjects(t.style.Verbose, maxObjects) },
		"reaching": func() []rules.Finding {
			return lines.Filter(t.v.Findings, func(f rules.Finding) bool { return t.v.FailOn.reaches(worst(f)) })
		},
		"fits": func(m matrix) bool { return m.width() <= t.Width-6 },
		"rows": t.rows, "tree": t.treeLines,
		"conclusion": t.conclusion, "judged": t.judged, "upper": strings.ToUpper,
		"operations": operationRows, "arms": armRows, "failed": failedArms,
		"logWish":     logWish,
		"hiddenPaths": func() string { return topology.HiddenPaths },
		"example": func() string {
			if !t.v.Verdict.has(ReasonNoGPU) {
				return ""
			}
			return t.style.Example
		},
	}
}

// shownLine matches the beginning of a line of the template's output that is shown.
var shownLine = lazy.New(`(?m)^ *\|`)

// in is a part of the report behind a margin.
func (t *text) in(margin, name string, data any) string {
	return shownLine.ReplaceAllString(t.executed(name, data), "|"+margin)
}

func (t *text) executed(name string, data any) string {
	var b strings.Builder
	if err := t.template.ExecuteTemplate(&b, name, data); err != nil {
		panic(fmt.Sprintf("write text: %v", err)) // The template is part of the program, and a builder takes all.
	}
	return b.String()
}

// escapes matches what colours a text.
var escapes = lazy.New(`\x1b\[([0-9;]*)m`)

func (t *text) write(name string, data any) {
	for line := range strings.Lines(t.executed(name, data)) {
		line, shown := strings.CutPrefix(strings.TrimLeft(strings.TrimSuffix(line, "\n"), " "), "|")
		lead, said, broken := strings.Cut(line, "\t")
		switch {
		case broken:
			color := lines.Plain
			if m := escapes.FindStringSubmatch(said); m != nil {
				color, said = lines.Color(m[1]), escapes.ReplaceAllString(said, "")
			}
			t.Under(lead, strings.Repeat(" ", utf8.RuneCountInString(escapes.ReplaceAllString(lead, ""))), color, said)
		case shown:
			t.Line(line)
		}
	}
}

func writeText(b *bytes.Buffer, d *Document, s Style) {
	t := newText(newView(d, s.ASCII), s)
	t.write(map[bool]string{true: "quiet", false: "report"}[s.Quiet], t.v)
	b.Write(t.B.Bytes())
}

func (t *text) rows(m matrix) []string {
	head, column := m.head(), m.column()
	heads := lines.Map(m.Heads, func(h string) string { return lines.Pad(h, -column) })
	all := []string{t.Paint(lines.Dim, strings.Repeat(" ", head)+strings.Join(heads, ""))}
	for i, cells := range m.Cells {
		row := lines.Map(cells, func(c cell) string { return strings.Repeat(" ", column-len(c.Text)) + t.Paint(c.color(), c.Text) })
		all = append(all, t.Paint(lines.Dim, lines.Pad(m.Labels[i]+"  "+m.Devices[i], head))+strings.Join(row, ""))
	}
	return all
}

func (c cell) color() lines.Color {
	switch {
	case c.Text == "." || badness[c.Outcome] < badness[probe.OK]:
		return lines.Dim
	case badness[c.Outcome] > badness[probe.Slow]:
		return lines.Red
	case c.Outcome == probe.Slow:
		return lines.Yellow
	}
	return lines.Plain
}

// took is a time in words; empty when it was not taken.
func took(ms float64) string {
	switch {
	case ms <= 0:
		return ""
	case ms < 1:
		return "<1 ms"
	case ms < 999.5:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}

// Times counts the findings that are told as one: " x 2".
func (f finding) Times() string {
	if n := len(f.All); n > 1 {
		return fmt.Sprintf(" x %d", n)
	}
	return ""
}

// Like counts the findings beside the one that is told.
func (f finding) Like() string {
	if more := len(f.All) - 1; more > 0 {
		return fmt.Sprintf(" (and %d like it)", more)
	}
	return ""
}

func topics(all []finding) []string {
	return lines.Unique(lines.Map(all, func(f finding) string { return f.Rule }))
}

// conclusion is the verdict in a sentence.
func (t *text) conclusion() string {
	d := t.v
	if d.Verdict.State == Findings {
		return upper(d.Title) + "."
	}
	gaps := lines.First(d.Verdict.Missing, maxReasons, "; ")
	switch v := &d.Verdict; {
	case t.style.Verbose:
		gaps = strings.Join(d.Verdict.Missing, "; ")
	case v.has(ReasonFailed):
	case v.has(ReasonUnread), v.has(ReasonTexts):
		gaps = v.text(ReasonCut)
	case v.has(ReasonNoGPU):
		gaps = ""
	}
	return upper(d.state()) + lines.Behind(": ", gaps) + d.besides() + "."
}

// judged counts the rules by what became of them, and names those at fault that the conclusion does not.
func (t *text) judged() string {
	faulty := lines.Filter(t.v.Skipped, func(s Skipped) bool { // What facts lack, their areas tell.
		return s.Fault && !strings.Contains(t.conclusion(), notJudged(s).Text)
	})
	faults := lines.Map(faulty, func(s Skipped) string { return notJudged(s).Text })
	more := map[bool]string{true: " (--verbose)"}[len(t.v.Skipped) > 0 && !t.style.Verbose]
	return "Rules: " + t.v.rulesInNumbers() + lines.Behind("; ", lines.First(faults, maxReasons, "; ")) + more + "."
}

// besides counts the findings that do not decide the verdict; empty if there are none.
func (d *Document) besides() string { return lines.Behind("; ", d.Verdict.Tally()) }

// Hint is what would make known most of what is not.
func (d *Document) Hint() string {
	if len(d.Skipped) == 0 {
		return ""
	}
	hinted := lines.Filter(d.Unknown, func(u facts.Unknown) bool { return u.Hint != "" })
	hints := commonest(lines.Map(hinted, func(u facts.Unknown) pair { return pair{u.Fact, u.Hint} }))
	texts := lines.Map(hints, func(h alike) string { return h.Text })
	return strings.Join(texts[:min(2, len(texts))], "; ")
}

// picture draws the machine with what is wrong in it; nil where no GPU is known.
func (v *view) picture(ascii bool) *topology.Machine {
	var faults []topology.Fault
	for _, f := range v.Found {
		if places := f.places(); len(places) > 0 {
			faults = append(faults, topology.Fault{
				Number: f.Number, Severity: string(f.Severity), Title: f.Title, Rule: f.Rule, Places: places, OnLink: f.Cause == "pcie-link-degraded",
			})
		}
	}
	return lines.Clean(topology.New(v.shown(), faults), ascii)
}

// WriteTopology writes the picture of the machine as a tree, and what is wrong in it.
func WriteTopology(w io.Writer, d *Document, s Style) error {
	v := newView(d, s.ASCII)
	why := "how the GPUs are connected is not known"
	switch {
	case d.in.TextsOnly:
		why = "the input does not show how GPUs are connected"
	case len(d.Host.GPUs) == 0:
		_, why = noGPU(v.Document)
	}
	t := newText(v, s)
	t.write("topology", struct {
		*view
		Picture *topology.Machine
		Why     string
	}{v, v.picture(s.ASCII), why})
	if _, err := w.Write(t.B.Bytes()); err != nil {
		return fmt.Errorf("write topology: %w", err)
	}
	return nil
}

// treeLines are the nodes, a line each, their links in columns at the right of the names,
// or below them where there is no room, and below a node what is wrong there.
func (t *text) treeLines(m *topology.Machine) []string {
	p := lines.Page{B: &bytes.Buffer{}, Width: t.Width, Color: t.Color}
	rows := m.Rows(t.style.ASCII)
	names, speeds, rates := 0, 0, 0
	for _, r := range rows {
		if r.Up != nil {
			names = max(names, utf8.RuneCountInString(r.Lead+r.Label()))
			speeds, rates = max(speeds, utf8.RuneCountInString(r.Up.Speed)), max(rates, len(r.Up.Rate))
		}
	}
	beside := names+len("  ")+speeds+len("  ")+rates <= t.Width
	for _, r := range rows {
		below := func(c lines.Color, said string) {
			for _, l := range lines.Wrap(said, max(t.Width-utf8.RuneCountInString(r.Under), 20)) {
				p.Line(p.Paint(lines.Dim, r.Under), p.Paint(c, l))
			}
		}
		line, link := r.Lead+r.Label(), ""
		if r.Up != nil && r.Up.Speed != "" && beside {
			line = lines.Pad(line, names) + "  " + lines.Pad(r.Up.Speed, speeds) + "  " + lines.Pad(r.Up.Rate, rates)
		} else if r.Up != nil && r.Up.Speed != "" {
			link = r.Link()
		}
		detail := lines.Joined(", ", link, r.More())
		if detail != "" && utf8.RuneCountInString(line)+2+utf8.RuneCountInString(detail) <= t.Width {
			line, detail = line+"  "+detail, ""
		}
		p.Line(p.Paint(lines.Dim, r.Lead), strings.TrimPrefix(line, r.Lead))
		if detail != "" {
			below(lines.Dim, detail)
		}
		for _, f := range r.Marks() {
			said := fmt.Sprintf("! %d %s %s", f.Number, f.Severity, f.Rule)
			switch {
			case slices.ContainsFunc(r.Faults, func(o topology.Fault) bool { return o.Number == f.Number }):
			case slices.Contains(f.Places, r.Up.Port):
				said += " at port " + r.Up.Port
			default:
				said += " on this link"
			}
			below(ColorOf(f.Severity), said)
		}
	}
	return strings.Split(strings.TrimSuffix(p.B.String(), "\n"), "\n")
}

func upper(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// sentence is the first sentence of a text, without its full stop.
func sentence(s string) string {
	for i := range len(s) - 2 {
		if s[i] == '.' && s[i+1] == ' ' && s[i+2] >= 'A' && s[i+2] <= 'Z' {
			return s[:i]
		}
	}
	return strings.TrimSuffix(s, ".")
}

// bare is a text without its full stop.
func bare(s string) string { return strings.TrimSuffix(s, ".") }

func number(i int) int { return i + 1 }

type pair struct{ Name, Text string }

type alike struct {
	Names []string
	Text  string
}

// together gathers names of which the same is said, in order.
func together(all []pair) []alike {
	return lines.Map(lines.Grouped(all, func(p pair) string { return p.Text }), func(same []pair) alike {
		return alike{lines.Map(same, func(p pair) string { return p.Name }), same[0].Text}
	})
}

// commonest gathers names of which the same is said, most names first.
func commonest(all []pair) []alike {
	rows := together(all)
	slices.SortStableFunc(rows, func(a, b alike) int { return len(b.Names) - len(a.Names) })
	return rows
}
