package parse

import (
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

const (
	// maxTopics is how many topics of a text are kept, and leastWords how many words a line of prose has.
	maxTopics  = 3
	leastWords = 4
	// proseWeight is how much more a line of prose counts than one of an output or of code.
	proseWeight = 3
)

// ofProgram is a line that no person wrote: with a time, a level, a process, a place in a source or a value behind its name.
var ofProgram = lazy.New(`^\s*(?:\d\d:\d\d|\[|\d{4}-|[A-Z]\d{4} |\S+:\d+:\d+ |[\w.]+(?:Error|Exception)\b|File "|\||[-drwx]{10} )|NCCL (?:INFO|WARN)|[{};]\s*$|(?:^|[^=\w])(?:INFO|DEBUG|WARNING|ERROR)\b|\w\(.*\)\s*$|^\s*\S+ ?= ?\S`)

// gpuNamed are the beginnings of the names of GPUs.
var gpuNamed = lazy.New(`(?i)\b(?:[ABHLV]\d{2,3}|GB\d{2,3}|GH200|MI\d{3}|[RG]TX|Quadro|Tesla|Radeon|Instinct|R9700|W[67]\d00)`)

// topics notes what a person complains of: the causes of which the text speaks, the most often first, and the model of GPU.
func (s *Sink) topics() {
	if !s.personal {
		return
	}
	table, whole := data.Topics(), strings.ReplaceAll(withNewlines(s.whole), "\x00", "")
	title := titleOf(whole)
	person, complains, fenced := false, false, false
	lines := strings.Split(whole, "\n")
	prose := make([]bool, len(lines))
	for i, text := range lines {
		text = onScreen(text)
		lines[i] = text
		if strings.HasPrefix(text, fence) {
			fenced = !fenced
		}
		if prose[i] = !fenced && isProse(text); prose[i] {
			person = person || i+1 == title || table.ByPerson(text)
			complains = complains || table.Complain(text)
		}
	}
	closed := func(line string) bool { return over.MatchString(line) || message.Bygone(line) }
	if !person || !complains || slices.ContainsFunc(lines, closed) {
		return
	}
	models := map[string]bool{}
	for at, line := range lines {
		if prose[at] && gpuNamed.MatchString(line) {
			models[data.GPUModelOf(line).Name] = true
		}
		if prose[at] && table.Deny(line) {
			lines[at] = "" // It speaks of nothing.
		}
	}
	t := s.TextUnderWay()
	if t.Topics = counted(table.Topics, lines, prose); len(t.Topics) == 0 {
		t.Topics = counted(table.Symptoms, lines, prose)
	}
	if len(models) == 1 {
		t.GPU = slices.Collect(maps.Keys(models))[0]
	}
}

// counted are the topics of which lines speak, the most often first.
func counted(topics []data.Topic, lines []string, prose []bool) []facts.Topic {
	found, shown := make([]facts.Topic, len(topics)), make([]int, len(topics))
	for at, line := range lines {
		for i := range topics {
			if words := topics[i].In(line); words != "" {
				if f := &found[i]; f.Count == 0 {
					*f = facts.Topic{Cause: topics[i].Cause, Words: escape.Printable(words, maxText), Line: at + 1}
				}
				switch {
				case prose[at]:
					found[i].Count += proseWeight
				case shown[i] < 2*proseWeight: // A log says the same many times.
					shown[i]++
					found[i].Count++
				}
			}
		}
	}
	found = slices.DeleteFunc(found, func(t facts.Topic) bool { return t.Count == 0 })
	slices.SortStableFunc(found, func(a, b facts.Topic) int { return b.Count - a.Count })
	return found[:min(len(found), maxTopics)]
}

// personal reports whether a text may be one that a person wrote.
func personal(whole string, source Source) bool {
	if whole == "" || source == Data {
		return false
	}
	whole = strings.ReplaceAll(withNewlines(whole), "\x00", "")
	if titleOf(whole) > 0 {
		return true
	}
	if data.Topics().ByPerson(whole) {
		for line := range strings.Lines(whole) {
			for text, ok := strip(line), data.Topics().ByPerson(line); ok; text, ok = StripPrefix(text) {
				if isProse(text) {
					return true
				}
			}
		}
	}
	return false
}

// isProse reports whether a line is of words that no program wrote.
func isProse(text string) bool {
	return len(strings.Fields(text)) >= leastWords && !ofProgram.MatchString(text)
}

// strip is what a line says that stayed on the screen, without what was surely put before it.
func strip(line string) string {
	var l Line
	if line = onScreen(line); mayBeEscaped([]byte(line)) {
		line = string(unescape([]byte(line))[0])
	}
	l.of(line)
	return l.Text
}

// titleOf is the number of the line that is a text's title, or its first one where a person wrote that; 0 if it has none.
func titleOf(whole string) (number int) {
	for line := range strings.Lines(whole) {
		number++
		text := strip(line)
		if text == "" || strings.HasPrefix(text, fence) || strings.HasPrefix(text, "<") {
			continue
		}
		if isProse(text) && data.Topics().Written(text) {
			return number
		}
		for ok := true; ok; text, ok = StripPrefix(text) {
			if data.Topics().Titled(text) {
				return number
			}
		}
		return 0
	}
	return 0
}

// onScreen is what of a line stayed on the screen.
func onScreen(line string) string {
	line = strings.TrimSpace(line)
	return strings.TrimSpace(line[strings.LastIndexByte(line, '\r')+1:])
}
