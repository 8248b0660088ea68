package patch

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
	"github.com/gpudoctor/gpudoctor/rules"
)

// In is a remark on a file, in one line.
func (r Remark) In(file string) string {
	if r.Line > 0 {
		file += ":" + strconv.Itoa(r.Line)
	}
	return lines.Joined(": ", file, r.Where, r.What, r.Note)
}

// Cure is what a setting that cures findings about a file asks of it; ok is false where it
// cures none, or does not say what to remove.
func Cure(s plan.Setting, findings []rules.Finding, advice []remedies.Advice, file string) (w Want, ok bool) {
	if len(s.Cures) == 0 {
		return w, false
	}
	w.Setting = s
	everywhere := false
	for i := range findings {
		if !slices.Contains(s.Cures, remedies.CureOf(findings[i])) {
			continue
		}
		for _, e := range findings[i].Evidence {
			n, here := lineIn(e.Source, file)
			if value, isText := e.Value.(string); here && isText && strings.HasSuffix(e.Fact, "variables["+s.Name+"]") {
				w.Values = append(w.Values, value)
			}
			switch {
			case here && strings.HasPrefix(e.Fact, "launches["):
				w.Lines = append(w.Lines, n)
			case here: // The job as a whole.
				everywhere = true
			}
		}
	}
	if everywhere {
		w.Lines = nil
	}
	for i := range advice {
		if advice[i].Remedy != s.Remedy {
			continue
		}
		w.Comment = advice[i].Description
		for _, e := range advice[i].Apply.Edits {
			if variable, value, set := strings.Cut(e.Remove, "="); set && variable == s.Name {
				w.Values = append(w.Values, value)
			}
		}
	}
	return w, s.Kind != plan.Unset || len(w.Values) > 0
}

// lineIn is the line of a file that a source of evidence names.
func lineIn(place, file string) (int, bool) {
	rest, ok := strings.CutPrefix(place, file+":")
	n, err := strconv.Atoi(rest)
	return n, ok && err == nil
}
