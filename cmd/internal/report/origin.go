package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
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

// fillOrigins gives evidence the line of the text that its fact was read from.
// A line is given only for the fact itself, never for what stands around it: two
// facts of one GPU may come from two texts. What no line tells keeps the source
// that the rule names.
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

// places say where the facts of texts were read.
type places struct {
	// at are the places of facts by their paths, and below are those of the
	// parts of a fact that has none of its own.
	at    map[string][]told
	below map[string][]string
}

// told is where a fact was read, and its value; that is empty where the facts come from a file, unless it is exact.
type told struct {
	source, value string
	exact         bool
	// from is the place that rules name instead; empty if it is any.
	from string
}

// tells reports whether a piece of evidence may be from there.
func (t told) tells(e rules.Evidence) bool {
	switch {
	case t.from != "" && t.from != e.Source:
		return false
	case t.exact:
		return e.Value == any(t.value)
	}
	return t.value == "" || sameValue(t.value, e.Value)
}

// sameValue reports whether a value that a text told is the one that evidence
// shows, be it in another order or, of a list, as one text.
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

// addEntries adds the places that entries of lists bear themselves.
func (p *places) addEntries(f *facts.Facts) {
	exact := func(path, source, value string) {
		p.at[path] = append(p.at[path], told{source: source, value: value, exact: true})
	}
	if f.KernelLog != nil {
		for _, e := range f.KernelLog.Events {
			if e.Line > 0 {
				exact("kernel_log", lineAt(e.Source, e.Line), e.Message)
			}
		}
	}
	if f.Env != nil {
		for _, v := range f.Env.Variables {
			if slices.ContainsFunc(f.Texts, func(t facts.Text) bool { return t.Name == v.Source }) {
				exact("env.variables."+v.Name, lineAt(v.Source, v.Line), v.Value)
			}
		}
	}
	add := func(path, source string, line int, value any, from string) {
		if line > 0 {
			p.at[path] = append(p.at[path], told{source: lineAt(source, line), value: fmt.Sprint(value), from: from})
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

// lineAt names a line, or where that is not known the text alone.
func lineAt(source string, line int) string {
	if line <= 0 {
		return source
	}
	return source + ":" + strconv.Itoa(line)
}

// plainPath writes the path of a fact with dots alone, as rules name some parts
// "a[b].c" and others "a.b.c".
func plainPath(fact string) string {
	return strings.NewReplacer("[", ".", "]", "").Replace(fact)
}

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
	lines := slices.Compact(slices.Sorted(slices.Values(p.below[path])))
	if len(lines) == 1 {
		return lines[0]
	}
	var texts []string
	for _, line := range lines {
		text, _ := splitLine(line)
		texts = append(texts, text)
	}
	if texts = slices.Compact(texts); len(texts) == 1 { // Several lines of one text.
		return texts[0]
	}
	return ""
}
