package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
)

// pastLines are the lines of trouble that is past, as evidence names them, and what shows that.
func pastLines(texts []facts.Text) map[string]string {
	past := map[string]string{}
	for _, t := range texts {
		for _, p := range t.Past {
			past[fmt.Sprintf("%s:%d", t.Name, p.Line)] = p.Shown
		}
	}
	return past
}

// withoutPast leaves out of the logs what tells of trouble that is past, if they tell of other trouble as well: that is
// what is asked for.
func withoutPast(logs *facts.LogFacts, past map[string]string) *facts.LogFacts {
	if logs == nil || len(past) == 0 {
		return logs
	}
	isPast := func(source string, line int) bool { return past[fmt.Sprintf("%s:%d", source, line)] != "" }
	left := *logs
	left.Messages = slices.DeleteFunc(slices.Clone(logs.Messages), func(m facts.Message) bool {
		return isPast(m.Source, m.Line) && !message.Ends(m.ID) // How a past job ended is said of its other lines.
	})
	left.Deaths = slices.DeleteFunc(slices.Clone(logs.Deaths), func(d facts.Death) bool { return isPast(d.Source, d.Line) })
	if len(left.Deaths) == 0 && !complains(&left) {
		return logs
	}
	return &left
}

// lowerPast lowers a finding of which all trouble that it rests on is past to a severity that gives no alarm: it may come
// back.
func (f *Finding) lowerPast(past map[string]string) {
	shown := ""
	for _, e := range f.Evidence {
		if section, _, _ := strings.Cut(plainPath(e.Fact), "."); section != "logs" && section != "kernel_log" && section != "benchmarks" {
			continue
		}
		if shown = past[e.Source]; shown == "" {
			return
		}
	}
	if f.Past = shown != ""; !f.Past || f.Severity.Rank() >= Low.Rank() {
		return
	}
	f.Severity = Low
	f.Message = fmt.Sprintf("Past, as %s shows: %s", shown, f.Message)
}
