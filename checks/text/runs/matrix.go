package runs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// matrixKind reads tables of Markdown in which people say what they tried: a row is a run for each of its columns that
// say an outcome, and the other columns are what was set for it.
func matrixKind(r *recorder) *parse.Kind {
	return &parse.Kind{
		Name: "experiments", Title: "A table of what was tried, with the outcomes", Gives: []string{"runs"},
		Anchors: []string{"|--", "| --", "|:-", "| :-"},
		Begins: func(in *parse.Lines) bool {
			l, _ := in.Peek()
			return r.headers[caption{in.Name(), l.Number - 1}] != "" && rulerForm.MatchString(l.Text)
		},
		Read: func(s *parse.Sink, in *parse.Lines) {
			ruler, _ := in.Next()
			m := matrix{source: s.Source(), line: ruler.Number - 1}
			m.header = cellsOf(r.headers[caption{m.source, m.line}])
			m.rows = in.While(func(l parse.Line) bool { return len(cellsOf(l.Text)) == len(m.header) })
			r.tabled = append(r.tabled, m.runs()...)
		},
	}
}

// caption is the place of a line that may be the header of a table. The reader of another block may have looked
// ahead, so that several are known when a table begins.
type caption struct {
	source string
	line   int
}

// maxCaptions bounds how many of them are kept.
const maxCaptions = 4096

// headed notes a line that may be the header of a table.
func (r *recorder) headed(l parse.Line) {
	if len(r.headers) < maxCaptions && cellsOf(l.Text) != nil {
		r.headers[caption{r.sink.Source(), l.Number}] = strings.Clone(l.Text)
	}
}

// matrix is a table of what was tried.
type matrix struct {
	source string
	header []string
	line   int
	rows   []parse.Line
}

var (
	rulerForm = lazy.New(`^\s*\|(?:\s*:?-{2,}:?\s*\|)+\s*(?::?-{2,}:?\s*)?$`)
	// rateColumn is the header of a column of bandwidths, and libraryColumn that of one of versions.
	rateColumn    = lazy.New(`(?i)\bGB/s|busbw|algbw|bandwidth`)
	libraryColumn = lazy.New(`(?i)\b(?:lib)?(nccl|rccl)(?:\b|_)`)
	versionCell   = lazy.New(`^v?(\d+\.\d+(?:\.\d+)*)\b[^(]*`)
	rateCell      = lazy.New(`^~?(\d+(?:\.\d+)?)(?: ?GB/s)?$`)
	// ratioCell is how many of several attempts had an outcome: "0/5 ok".
	ratioCell = lazy.New(`\b(\d+) ?(?:/|of) ?(\d+)\b`)
	yesCell   = lazy.New(`[✅✔✓]`)
	noCell    = lazy.New(`[❌✗✘]`)
)

// cellsOf are the cells of a row of a table, without marks of Markdown; nil for other lines.
func cellsOf(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") || strings.Count(line, "|") < 2 || len(line) > longest {
		return nil
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i, cell := range cells {
		cells[i] = strings.TrimSpace(strings.NewReplacer("**", "", "`", "").Replace(cell))
	}
	return cells
}

// runs are those of the columns that tell outcomes in each row that they fill.
func (m *matrix) runs() []*run {
	var all []*run
	told := make([]bool, len(m.header))
	for i, title := range m.header {
		known := 0
		told[i] = !slices.ContainsFunc(m.rows, func(l parse.Line) bool {
			outcome, _ := outcomeIn(title, cellsOf(l.Text)[i])
			if outcome != unknown {
				known++
			}
			return outcome == ""
		}) && known > 1
	}
	for _, l := range m.rows[:min(len(m.rows), maxRuns)] {
		cells := cellsOf(l.Text)
		for i, title := range m.header {
			if !told[i] {
				continue
			}
			r := &run{
				Run:      facts.Run{By: "table", Source: m.source, Line: l.Number, Variables: map[string]string{}},
				identity: fmt.Sprintf("column %d of line %d", i, m.line), text: l.Text, logged: map[string]string{},
			}
			outcome, rate := outcomeIn(title, cells[i])
			r.is(outcome, "a table says so", l.Number, false)
			r.GBps = rate
			for k, cell := range cells {
				if !told[k] {
					r.tried(m.header[k], cell)
				}
			}
			all = append(all, r)
		}
	}
	return all
}

// tried sets for a run what a cell says was tried; what it says otherwise distinguishes rows.
func (r *run) tried(title, cell string) {
	version := versionCell.FindString(cell)
	library := libraryColumn.FindStringSubmatch(title)
	switch {
	case library != nil && version != "":
		r.set(strings.ToLower(library[1]), strings.TrimSpace(version))
		return
	case env.SteersCommunication(title):
		if !plainly.MatchString(cell) && cell != "" && cell != "-" {
			r.set(title, cell)
		}
		return
	}
	for _, said := range []string{cell, title + " " + cell, cell + " " + title} {
		var m mark
		if m.titled(said) {
			for _, v := range m.settings {
				r.set(v[0], v[1])
			}
			return
		}
	}
	r.set("column "+strings.ToLower(title), cell)
}

// outcomeIn is the outcome that a cell says, unknown for one that says none, and "" for one that says something else;
// and the bandwidth that it says.
func outcomeIn(title, cell string) (string, *float64) {
	if rateColumn.MatchString(title) {
		if m := rateCell.FindStringSubmatch(cell); m != nil {
			if rate, err := facts.ParseFloat(m[1]); err == nil && rate > 0 {
				return good, &rate
			}
		}
	}
	outcome := ""
	switch {
	case strings.Trim(cell, "-?/ ") == "", strings.EqualFold(cell, "n/a"):
		return unknown, nil
	case hangsForm.MatchString(cell):
		outcome = hung
	case failsForm.MatchString(cell), noCell.MatchString(cell):
		outcome = failed
	case worksForm.MatchString(cell), yesCell.MatchString(cell):
		outcome = good
	default:
		return "", nil
	}
	if m := ratioCell.FindStringSubmatch(cell); m != nil {
		switch some, all := count(m[1]), count(m[2]); {
		case some == all:
		case outcome == good:
			return failed, nil
		case some == 0:
			return good, nil
		}
	}
	return outcome, nil
}
