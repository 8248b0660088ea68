package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// splitLine parts a line of a text, "nccl.log:12", into the text and the number; that is 0 for anything else.
func splitLine(source string) (text string, line int) {
	at := strings.LastIndexByte(source, ':')
	if at < 1 {
		return source, 0
	}
	line, err := strconv.Atoi(source[at+1:])
	if err != nil || line < 1 {
		return source, 0
	}
	return source[:at], line
}

// fillOrigins gives evidence the line of the text that its fact was read from. A line is given only for the fact
// itself, never for what stands around it: two facts of one GPU may come from two texts. What no line tells keeps the
// source that the rule names.
func fillOrigins(findings []rules.Finding, f *facts.Facts) []rules.Finding {
	p := placesOf(f)
	var walk func([]rules.Finding)
	walk = func(list []rules.Finding) {
		for i := range list {
			for j := range list[i].Evidence {
				e := &list[i].Evidence[j]
				if source := p.of(*e); source != "" {
					e.Source = source
				}
			}
			walk(list[i].Explains)
		}
	}
	walk(findings)
	return findings
}

// places say where the facts of texts were read: at by their paths, and below those of the parts of a fact that has none of its own.
type places struct {
	at    map[string][]told
	below map[string][]string
}

// told is where a fact was read, its value, and the place that rules name instead. An empty one of the latter is any.
type told struct{ source, value, from string }

// tells reports whether a piece of evidence may be from there.
func (t told) tells(e rules.Evidence) bool {
	return (t.from == "" || t.from == e.Source) && (t.value == "" || sameValue(t.value, e.Value))
}

// sameValue reports whether two values have the same words, in any order.
func sameValue(told string, shown any) bool {
	words := func(text string) []string {
		list := strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(text))
		for i, word := range list {
			if n, err := strconv.ParseFloat(word, 64); err == nil {
				list[i] = strconv.FormatFloat(n, 'g', -1, 64)
			}
		}
		slices.Sort(list)
		return list
	}
	return slices.Equal(words(told), words(fmt.Sprint(shown)))
}

func placesOf(f *facts.Facts) places {
	p := places{at: map[string][]told{}, below: map[string][]string{}}
	for _, o := range f.Origins {
		path, source := plainPath(o.Fact), lineAt(o.Source, o.Line)
		p.at[path] = append(p.at[path], told{source: source, value: o.Value})
		for i := strings.LastIndexByte(path, '.'); i > 0; i = strings.LastIndexByte(path[:i], '.') {
			p.below[path[:i]] = append(p.below[path[:i]], source)
		}
	}
	p.addEntries(f)
	return p
}

func (p *places) addEntries(f *facts.Facts) {
	add := func(path, source string, line int, value any, from string) {
		if line > 0 {
			p.at[path] = append(p.at[path], told{lineAt(source, line), fmt.Sprint(value), from})
		}
	}
	if f.KernelLog != nil {
		for _, e := range f.KernelLog.Events {
			add("kernel_log", e.Source, e.Line, e.Message, "")
		}
	}
	if f.Env != nil {
		for _, v := range f.Env.Variables {
			if v.Value != "" && slices.ContainsFunc(f.Texts, func(t facts.Text) bool { return t.Name == v.Source }) {
				p.at["env.variables."+v.Name] = append(p.at["env.variables."+v.Name], told{source: lineAt(v.Source, v.Line), value: v.Value})
			}
		}
	}
	for _, l := range f.Launches {
		for part, line := range l.Lines {
			add("launches."+plainPath(part), l.Source, line, "", lineAt(l.Source, l.Line))
		}
	}
	for _, b := range f.Benchmarks {
		from := lineAt(b.Source, b.Line)
		for part, line := range b.Lines {
			add("benchmarks."+part, b.Source, line, "", from)
		}
		if b.Wrong != nil {
			add("benchmarks.", b.Source, b.Lines["wrong"], *b.Wrong, from)
		}
		for _, point := range b.Points {
			for _, measured := range []*float64{point.GBps, point.Microseconds} {
				if measured != nil {
					add("benchmarks.points", b.Source, point.Line, *measured, from)
				}
			}
		}
	}
}

func lineAt(source string, line int) string {
	if line <= 0 {
		return source
	}
	return source + ":" + strconv.Itoa(line)
}

// plainPath writes the path of a fact with dots alone: rules name some parts "a[b].c" and others "a.b.c".
func plainPath(fact string) string { return strings.NewReplacer("[", ".", "]", "").Replace(fact) }

// of is where a piece of evidence stands; empty where no text tells.
func (p *places) of(e rules.Evidence) string {
	path, entry := plainPath(e.Fact), true
	switch section, _, _ := strings.Cut(path, "."); section {
	case "kernel_log":
		path = section
	case "launches", "benchmarks": // The rule names the line in which the entry begins.
		_, part, _ := strings.Cut(e.Fact, "].")
		path = section + "." + plainPath(part)
	case "env":
	default:
		entry = false
	}
	for _, t := range p.at[path] {
		if t.tells(e) {
			return t.source
		}
	}
	if _, line := splitLine(e.Source); entry || len(p.at[path]) > 0 || line > 0 { // The rule has it from elsewhere, or it is an entry of a list.
		return ""
	}
	places := lines.Unique(p.below[path])
	if len(places) > 1 { // Several lines of one text.
		places = lines.Unique(lines.Map(places, func(line string) string { text, _ := splitLine(line); return text }))
	}
	if len(places) != 1 {
		return ""
	}
	return places[0]
}
