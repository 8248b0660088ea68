package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// Formats are the formats in which a difference can be written, the default first.
func Formats() []string { return []string{"text", "json", "markdown"} }

// Write writes the difference in one of the formats.
func (d *Difference) Write(w io.Writer, format string, s report.Style) error {
	var raw []byte
	switch format {
	case "json":
		var err error
		if raw, err = lines.JSON(d); err != nil {
			return fmt.Errorf("write the difference: %w", err)
		}
	case "markdown":
		raw = d.markdown()
	default:
		raw = d.text(s)
	}
	if _, err := w.Write(raw); err != nil {
		return fmt.Errorf("write the difference: %w", err)
	}
	return nil
}

// headings are the headings of the kinds.
var headings = map[Kind]string{
	Finding: "Findings",
	Part:    "GPUs, links and paths",
	Version: "Versions",
	Setting: "Settings",
	Figure:  "Measurements and counters",
	Fact:    "Other facts",
	Reading: "Known or judged on one side only",
}

// Bounds of what text and Markdown show; JSON holds all of it.
const (
	maxPlaces = 3  // Places of one change that are named.
	maxLines  = 20 // Lines of one kind, unless all are asked for.
	maxValue  = 60 // Characters of one value.
)

// line is what differs, as text and Markdown show it: one item, or several that are
// alike.
type line struct {
	sign string // "+", "-" or "~".
	text string
	more []string // Places of the same change.
}

// block is the lines of one heading.
type block struct {
	heading string
	lines   []line
}

// blocks gathers the items under their headings, in their order: the new critical and
// high findings stand before the lost parts, all others behind.
func (d *Difference) blocks() []block {
	var all []block
	for i := 0; i < len(d.Items); {
		j := i
		for j < len(d.Items) && d.Items[j].rank() == d.Items[i].rank() {
			j++
		}
		heading := headings[d.Items[i].Kind]
		switch {
		case d.Items[i].rank() == 0:
			heading = "New critical and high findings"
		case d.Items[i].Kind == Finding && len(all) > 0:
			heading = "Other findings"
		}
		all = append(all, block{heading, linesOf(d.Items[i:j])})
		i = j
	}
	return all
}

// linesOf writes items, those that say the same of several places as one.
func linesOf(items []Item) []line {
	var all []line
	at := map[string]int{}
	for _, i := range items {
		said := i.change()
		alike := i.pattern + "\x00" + string(i.Change) + "\x00" + said
		known, ok := at[alike]
		if ok && i.Kind != Finding {
			all[known].more = append(all[known].more, i.at)
			continue
		}
		at[alike] = len(all)
		all = append(all, line{sign: map[Change]string{New: "+", Gone: "-", Changed: "~"}[i.Change], text: i.sentence(said)})
	}
	return all
}

// sentence is the item in one line.
func (i Item) sentence(said string) string {
	if i.Kind == Finding {
		return said
	}
	text := label(i.Path) + ": " + said
	switch n := len(i.Along); {
	case n == 1:
		text += ", and one fact about it"
	case n > 1:
		text += fmt.Sprintf(", and %d facts about it", n)
	}
	return text
}

// label is a path as people read it: "GPU 0000:3b:00.0 mig" of
// "gpus.devices[0000:3b:00.0].mig".
func label(path string) string {
	list, rest, ok := strings.Cut(path, "[")
	name, field, closed := strings.Cut(rest, "]")
	noun := tables().Nouns[list]
	if !ok || !closed || noun == "" {
		return path
	}
	return strings.TrimSpace(noun + " " + strings.TrimPrefix(name, noun+" ") + strings.Replace(field, ".", " ", 1))
}

// change says what changed, without the place.
func (i Item) change() string {
	if i.Kind == Finding {
		return i.finding()
	}
	known := ""
	if !strings.HasSuffix(i.pattern, "]") {
		known = "known "
	}
	switch i.Change {
	case New:
		return known + "only in B" + i.note(i.After)
	case Gone:
		return known + "only in A" + i.note(i.Before)
	case Changed:
	}
	if before, ok := i.Before.([]string); ok {
		after, _ := i.After.([]string)
		if said := listChange(before, after); said != "" {
			return said
		}
	}
	said := i.value(i.Before) + " -> " + i.value(i.After)
	if before, ok := i.Before.(string); ok {
		after, _ := i.After.(string)
		said = wordsChange(before, after)
	}
	x, isFloat := i.Before.(float64)
	y, isToo := i.After.(float64)
	if isFloat && isToo && x != 0 {
		said += fmt.Sprintf(" (%+.0f %%)", (y/x-1)*100)
	}
	return said
}

// wordsChange shows two texts: of long ones that begin alike, what differs.
func wordsChange(before, after string) string {
	if len(before) > maxValue || len(after) > maxValue {
		a, b := []rune(before), []rune(after)
		same := 0
		for same < min(len(a), len(b)) && a[same] == b[same] {
			same++
		}
		if skip := same - maxValue/2; skip > 0 {
			before, after = "..."+string(a[skip:]), "..."+string(b[skip:])
		}
	}
	return cut(before) + " -> " + cut(after)
}

// value writes a value of the item. A size stands in a unit that people read.
func (i Item) value(v any) string {
	at := reflect.Indirect(reflect.ValueOf(v))
	if at.IsValid() && at.CanInt() && at.Int() >= 0 && strings.HasSuffix(i.pattern, "_bytes") {
		return humanize.IBytes(uint64(at.Int()))
	}
	return value(v)
}

// finding says what changed of a finding.
func (i Item) finding() string {
	before, after := i.BeforeFinding, i.AfterFinding
	switch {
	case before == nil:
		return after.String()
	case after == nil:
		return before.String()
	}
	said := after.Rule + " " + after.Subject + ": "
	var parts []string
	for _, change := range [...][2]string{
		{string(before.Severity), string(after.Severity)}, {string(before.Confidence), string(after.Confidence)}, {before.Subject, after.Subject},
	} {
		if change[0] != change[1] {
			parts = append(parts, change[0]+" -> "+change[1])
		}
	}
	if len(parts) == 0 {
		return said + "was: " + before.Message + " Is: " + after.Message
	}
	return said + strings.Join(parts, ", ") + ": " + after.Message
}

// String is the finding in one line.
func (s Said) String() string {
	said := fmt.Sprintf("%s %s %s: %s", s.Severity, s.Rule, s.Subject, s.Message)
	if s.Under != "" {
		said += " (consequence of " + s.Under + ")"
	}
	return said
}

// listChange says what a list gained and lost; empty where only its order changed.
func listChange(before, after []string) string {
	var parts []string
	for _, v := range after {
		if !slices.Contains(before, v) {
			parts = append(parts, "+"+v)
		}
	}
	for _, v := range before {
		if !slices.Contains(after, v) {
			parts = append(parts, "-"+v)
		}
	}
	return cut(strings.Join(parts, " "))
}

// note is a value in brackets, where it says something.
func (i Item) note(v any) string {
	said := i.value(v)
	if said == "" || said == "[]" || strings.HasPrefix(said, "{") {
		return ""
	}
	return " (" + said + ")"
}

// value writes a value. Of a device or a finding, its name says more than its parts do.
func value(v any) string {
	if v == nil {
		return ""
	}
	at := reflect.Indirect(reflect.ValueOf(v))
	switch at.Kind() { //nolint:exhaustive // All others are written as JSON.
	case reflect.String:
		return cut(at.String())
	case reflect.Float64:
		return fmt.Sprintf("%.4g", at.Float())
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	var named struct {
		Name    string `json:"name"`
		Value   string `json:"value"`
		Version string `json:"version"`
		Reason  string `json:"reason"`
	}
	if raw[0] == '{' {
		if json.Unmarshal(raw, &named) != nil {
			return ""
		}
		for _, said := range []string{named.Value, named.Version, named.Reason, named.Name} {
			if said != "" {
				return cut(said)
			}
		}
		return "{}"
	}
	return cut(string(raw))
}

// cut shortens a value.
func cut(s string) string {
	if r := []rune(s); len(r) > maxValue {
		return string(r[:maxValue]) + "..."
	}
	return s
}

// places names the further places of a change.
func (l line) places(all bool) string {
	if len(l.more) == 0 {
		return ""
	}
	shown, rest := l.more, 0
	if !all && len(shown) > maxPlaces {
		shown, rest = l.more[:maxPlaces], len(l.more)-maxPlaces
	}
	said := "also " + strings.Join(shown, ", ")
	if rest > 0 {
		said += fmt.Sprintf(" and %d more", rest)
	}
	return said
}

// closing says how many differences there are.
func (d *Difference) closing() string {
	switch n := len(d.Items); n {
	case 0:
		return "No differences."
	case 1:
		return "One difference."
	default:
		return fmt.Sprintf("%d differences.", n)
	}
}

// said is a side in one line.
func (s Side) said() string {
	verdict := string(s.State)
	if counts := s.Counts.String(); counts != "" && s.State == report.Findings {
		verdict = counts
	}
	return s.Name + " (" + verdict + "): " + s.Machine
}

// text writes the difference for a person at a terminal.
func (d *Difference) text(s report.Style) []byte {
	width := s.Width
	if width == 0 || width > 100 {
		width = 100 // As a report.
	}
	width = max(width, 40)
	var b bytes.Buffer
	put := func(lead, text string) {
		for _, l := range lines.Wrap(lines.Printable(text, s.ASCII), width-len(lead)) {
			b.WriteString(strings.TrimRight(lead+l, " ") + "\n")
			lead = strings.Repeat(" ", len(lead))
		}
	}
	put("A  ", d.A.said())
	put("B  ", d.B.said())
	for _, n := range d.Notes {
		put("note: ", n)
	}
	for _, block := range d.blocks() {
		b.WriteString("\n")
		put("", block.heading)
		for n, l := range block.lines {
			if n == maxLines && !s.Verbose {
				put("  ", fmt.Sprintf("... and %d more (--verbose)", len(block.lines)-n))
				break
			}
			put("  "+l.sign+" ", l.text)
			if places := l.places(s.Verbose); places != "" {
				put("    ", places)
			}
		}
	}
	b.WriteString("\n")
	put("", d.closing())
	return b.Bytes()
}

// markdown writes the difference for a ticket.
func (d *Difference) markdown() []byte {
	var b bytes.Buffer
	put := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	put("## gpudoctor diff: %s\n", strings.ToLower(strings.TrimSuffix(d.closing(), ".")))
	put("| | | verdict | machine |\n| --- | --- | --- | --- |")
	for _, side := range []struct {
		letter string
		Side
	}{{"A", d.A}, {"B", d.B}} {
		put("| %s | %s | %s | %s |", side.letter, report.Inline(side.Name), side.State, report.Inline(side.Machine))
	}
	for _, n := range d.Notes {
		put("\n%s.", report.Inline(n))
	}
	for _, block := range d.blocks() {
		put("\n### %s\n", block.heading)
		for n, l := range block.lines {
			if n == maxLines {
				put("- and %d more (`--format json` has all)", len(block.lines)-n)
				break
			}
			put("- `%s` %s", l.sign, report.Inline(l.text))
			if places := l.places(false); places != "" {
				put("  (%s)", report.Inline(places))
			}
		}
	}
	return b.Bytes()
}
