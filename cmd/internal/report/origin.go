package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/rules"
)

// lineOfText is a line of a text: "nccl.log:12".
var lineOfText = lazy.New(`^(.+):(\d+)$`)

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
	facts *facts.Facts
	// at are the lines of facts by their paths, and below are those of the
	// parts of a fact that has none of its own.
	at    map[string]told
	below map[string][]string
	// events are the lines of kernel logs, by what they say.
	events map[string]string
}

// told is where a fact was read, and its value; that is empty where the facts
// come from a file.
type told struct{ source, value string }

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
	p := places{facts: f, at: make(map[string]told, len(f.Origins)), below: make(map[string][]string), events: make(map[string]string)}
	for _, o := range f.Origins {
		path, source := plainPath(o.Fact), lineAt(o.Source, o.Line)
		if p.at[path].source == "" {
			p.at[path] = told{source, o.Value}
		}
		for i := strings.LastIndexByte(path, '.'); i > 0; i = strings.LastIndexByte(path[:i], '.') {
			p.below[path[:i]] = append(p.below[path[:i]], source)
		}
	}
	if f.KernelLog != nil {
		for _, e := range f.KernelLog.Events {
			if e.Line > 0 && p.events[e.Message] == "" {
				p.events[e.Message] = lineAt(e.Source, e.Line)
			}
		}
	}
	return p
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
	switch section, _, _ := strings.Cut(e.Fact, "."); {
	case section == "kernel_log":
		said, _ := e.Value.(string)
		return p.events[said]
	case section == "env":
		return p.variable(e)
	case strings.HasPrefix(section, "launches["):
		return p.launch(e)
	case strings.HasPrefix(section, "benchmarks"):
		return p.benchmark(e)
	}
	path := plainPath(e.Fact)
	if t, ok := p.at[path]; ok {
		if t.value != "" && !sameValue(t.value, e.Value) { // The rule has it from elsewhere.
			return ""
		}
		return t.source
	}
	if lineOfText.MatchString(e.Source) { // An entry of a list, which bears its own place.
		return ""
	}
	lines := slices.Compact(slices.Sorted(slices.Values(p.below[path])))
	if len(lines) == 1 {
		return lines[0]
	}
	var texts []string
	for _, line := range lines {
		texts = append(texts, lineOfText.ReplaceAllString(line, "$1"))
	}
	if texts = slices.Compact(texts); len(texts) == 1 { // Several lines of one text.
		return texts[0]
	}
	return ""
}

// variable is where a variable has the value that is shown: it may be set twice.
func (p *places) variable(e rules.Evidence) string {
	if p.facts.Env == nil {
		return ""
	}
	for _, v := range p.facts.Env.Variables {
		if e.Fact == "env.variables["+v.Name+"]" && e.Value == any(v.Value) && p.isText(v.Source) {
			return lineAt(v.Source, v.Line)
		}
	}
	return ""
}

// launch is where a part of a launch stands, which the rule names by the line in
// which it begins.
func (p *places) launch(e rules.Evidence) string {
	_, part, ok := strings.Cut(e.Fact, "].")
	if !ok {
		return ""
	}
	if name, ok := strings.CutPrefix(part, "variables."); ok {
		part = "variables[" + name + "]"
	}
	for _, l := range p.facts.Launches {
		if line := l.Lines[part]; line > 0 && e.Source == lineAt(l.Source, l.Line) {
			return lineAt(l.Source, line)
		}
	}
	return ""
}

// benchmark is where a part of a table stands, which the rule names by the line
// in which the table begins.
func (p *places) benchmark(e rules.Evidence) string {
	_, part, _ := strings.Cut(e.Fact, "].")
	number, isNumber := plainNumber(e.Value)
	for _, b := range p.facts.Benchmarks {
		switch {
		case e.Source != lineAt(b.Source, b.Line):
			continue
		case b.Lines[part] > 0:
			return lineAt(b.Source, b.Lines[part])
		case part == "" && isNumber && b.Wrong != nil && float64(*b.Wrong) == number && b.Lines["wrong"] > 0:
			return lineAt(b.Source, b.Lines["wrong"])
		case part != "points" || !isNumber:
			continue
		}
		for _, point := range b.Points {
			if point.Line > 0 && (point.GBps != nil && *point.GBps == number || point.Microseconds != nil && *point.Microseconds == number) {
				return lineAt(b.Source, point.Line)
			}
		}
	}
	return ""
}

// plainNumber is a number of the findings, which are JSON.
func plainNumber(value any) (float64, bool) {
	switch n := value.(type) {
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	case float64:
		return n, true
	case int:
		return float64(n), true
	default:
		return 0, false
	}
}

// isText reports whether a source is one of the texts that were given.
func (p *places) isText(source string) bool {
	return slices.ContainsFunc(p.facts.Texts, func(t facts.Text) bool { return t.Name == source })
}
