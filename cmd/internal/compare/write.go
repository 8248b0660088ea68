package compare

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// Formats are the formats in which a difference can be written, the default first.
func Formats() []string { return []string{"text", "json", "markdown"} }

// Write writes the difference in one of the formats.
func (d *Difference) Write(w io.Writer, format string, s report.Style) (err error) {
	var raw []byte
	switch format {
	case "json":
		raw, err = lines.JSON(d)
	case "markdown":
		raw = d.doc(false).Markdown()
	default:
		raw = d.doc(s.Verbose).Text(s.Width, false, s.ASCII)
	}
	if err == nil {
		_, err = w.Write(raw)
	}
	return err
}

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

// doc is the difference for people. The new critical and high findings stand before the lost parts, all others behind.
func (d *Difference) doc(whole bool) lines.Doc {
	doc := lines.Doc{
		Title: "gpudoctor diff: " + strings.ToLower(strings.TrimSuffix(d.closing(), ".")), Head: []lines.Entry{{Lead: "A  ", Text: d.A.said()}, {Lead: "B  ", Text: d.B.said()}}, End: d.closing(), Rest: "--verbose or --format json",
	}
	doc.Head = append(doc.Head, lines.Map(d.Notes, func(n string) lines.Entry { return lines.Entry{Lead: "note: ", Text: n} })...)
	for _, items := range lines.Grouped(d.Items, Item.rank) {
		title := headings[items[0].Kind]
		switch {
		case items[0].rank() == 0:
			title = "New critical and high findings"
		case items[0].Kind == Finding && len(doc.Parts) > 0:
			title = "Other findings"
		}
		part := lines.Part{Title: title, List: listOf(items, whole)}
		if !whole && len(part.List) > maxLines {
			part.List, part.More = part.List[:maxLines], len(part.List)-maxLines
		}
		doc.Parts = append(doc.Parts, part)
	}
	return doc
}

// listOf writes items, those that say the same of several places as one.
func listOf(items []Item, whole bool) []lines.Entry {
	type saying struct {
		pattern, change, said string
		finding               *Said // A finding stands by itself.
	}
	var all []lines.Entry
	for _, alike := range lines.Grouped(items, func(i Item) saying {
		s := saying{pattern: i.pattern, change: string(i.Change), said: i.change()}
		if i.Kind == Finding {
			s.finding = i.said()[0]
		}
		return s
	}) {
		first := alike[0]
		e := lines.Entry{Lead: map[Change]string{New: "+ ", Gone: "- ", Changed: "~ "}[first.Change], Text: first.sentence(first.change())}
		more := lines.Map(alike[1:], func(i Item) string { return i.at })
		if most := maxPlaces; len(more) > 0 {
			if whole {
				most = len(more)
			}
			e.Below = "also " + lines.First(more, most, ", ")
		}
		all = append(all, e)
	}
	return all
}

func (i Item) sentence(said string) string {
	if i.Kind == Finding {
		return said
	}
	text := label(i.Path) + ": " + said
	if len(i.Along) > 0 {
		text += ", and " + lines.Count(len(i.Along), "fact") + " about it"
	}
	return text
}

// label is a path as people read it: "GPU 0000:3b:00.0 mig" of "gpus.devices[0000:3b:00.0].mig".
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
		gained, lost := lines.Lacking("+", after, before), lines.Lacking("-", before, after)
		if said := strings.Join(append(gained, lost...), " "); said != "" { // Else only its order changed.
			return lines.Cut(maxValue, said)
		}
	}
	if before, ok := i.Before.(float64); ok && before != 0 {
		if after, ok := i.After.(float64); ok {
			return fmt.Sprintf("%s -> %s (%+.0f %%)", i.value(before), i.value(after), (after/before-1)*100)
		}
	}
	return i.value(i.Before) + " -> " + i.value(i.After)
}

func (i Item) finding() string {
	before, after := i.BeforeFinding, i.AfterFinding
	switch {
	case before == nil:
		return after.String()
	case after == nil:
		return before.String()
	}
	became := func(before, after string) string {
		if before == after {
			return ""
		}
		return before + " -> " + after
	}
	changes := lines.Joined(", ", became(string(before.Severity), string(after.Severity)), became(string(before.Confidence), string(after.Confidence)), became(before.Subject, after.Subject))
	said := after.Message
	if changes == "" {
		said = "was: " + before.Message + " Is: " + after.Message
	}
	return lines.Joined(": ", after.Rule+" "+after.Subject, changes, said)
}

// String is the finding in one line.
func (s Said) String() string {
	under := lines.After(lines.Behind(" (consequence of ", s.Under), ")")
	return fmt.Sprintf("%s %s %s: %s", s.Severity, s.Rule, s.Subject, s.Message) + under
}

func (i Item) note(v any) string {
	said := i.value(v)
	if said == "" || said == "[]" || strings.HasPrefix(said, "{") {
		return ""
	}
	return " (" + said + ")"
}

// value writes a value of the item. A size stands in a unit that people read. Of a device or a finding, its name says more than its parts do.
func (i Item) value(v any) string {
	at := reflect.Indirect(reflect.ValueOf(v))
	if at.IsValid() && at.CanInt() && at.Int() >= 0 && strings.HasSuffix(i.pattern, "_bytes") {
		return humanize.IBytes(uint64(at.Int()))
	}
	switch at.Kind() { //nolint:exhaustive // All others are written as JSON.
	case reflect.Invalid:
		return ""
	case reflect.String:
		return lines.Cut(maxValue, at.String())
	case reflect.Float64:
		return fmt.Sprintf("%.4g", at.Float())
	case reflect.Struct:
		for _, name := range []string{"Value", "Version", "Reason", "Name"} {
			if said := at.FieldByName(name); said.IsValid() && said.Kind() == reflect.String && said.Len() > 0 {
				return lines.Cut(maxValue, said.String())
			}
		}
		return "{}"
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return lines.Cut(maxValue, string(raw))
}

func (d *Difference) closing() string {
	if d.Same {
		return "No differences."
	}
	return lines.Count(len(d.Items), "difference") + "."
}

func (s Side) said() string {
	verdict := string(s.State)
	if counts := s.Counts.String(); counts != "" && s.State == report.Findings {
		verdict = counts
	}
	return s.Name + " (" + verdict + "): " + s.Machine
}
