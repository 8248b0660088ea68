package runs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/rules/data"
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
			m.lines = in.While(func(l parse.Line) bool { return len(cellsOf(l.Text)) == len(m.header) })
			m.lines = m.lines[:min(len(m.lines), maxRuns)]
			for _, l := range m.lines {
				m.rows = append(m.rows, cellsOf(l.Text))
			}
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
	lines  []parse.Line
	rows   [][]string
}

var (
	rulerForm = lazy.New(`^\s*\|(?:\s*:?-{2,}:?\s*\|)+\s*(?::?-{2,}:?\s*)?$`)
	// rateColumn is the header of a column of bandwidths, and libraryColumn that of one of versions.
	rateColumn    = lazy.New(`(?i)\bGB/s|busbw|algbw|bandwidth`)
	libraryColumn = lazy.New(`(?i)\b(?:lib)?(nccl|rccl)(?:\b|_)`)
	librccl       = lazy.New(`\blibrccl\.so\.\d+\.\d+\.(\d{5,6})\b`) // In ROCm's numbers.
	versionCell   = lazy.New(`^v?(\d+\.\d+(?:\.\d+)*)\b[^(]*`)
	rateCell      = lazy.New(`^~?(\d+(?:\.\d+)?)(?: ?GB/s)?$`)
	// ratioCell is how many of several attempts had an outcome: "0/5 ok"; all of them: "200/200, three times".
	ratioCell = lazy.New(`\b(\d+) ?(?:/|of) ?(\d+)\b`)
	// passesCell begins with how many passed: "0/5, killed after 180 s", "1/5 pass, 4/5 killed".
	passesCell = lazy.New(`^\d+ ?(?:/|of) ?\d+ *(?:$|[,;(]|pass)`)
	// joiner is what joins a setting with what else was tried: "GPUs 4-7 and NCCL_NET_GDR_LEVEL=SYS".
	joiner = lazy.New(`(?i)^(?:and|with|plus|\+|,)?\s+|[\s,]+(?:and|with|plus|\+)?\s*$`)
	// plainEnd is what a cell says where it sets nothing, or what is not set: "vLLM, default".
	plainEnd = lazy.New(`(?i)[\s,]*\b(?:defaults?|as is|nothing set|unset|not set)$|^(?:without|unset|no)$`)
	// noSetting is a cell of a row in which nothing was set.
	noSetting = lazy.New(`(?i)^\(?(?:nothing|none|baseline|as is|no (?:settings?|variables?))\)?$`)
	// noneCell and someCell are cells of a column that counts or times what goes wrong: "hours until hang", "failures".
	noneCell = lazy.New(`(?i)^(?:none|never|no)\b|^0(?:[ %]|$)|^[-–—]$`)
	someCell = lazy.New(`(?i)^(?:yes\b|always\b|~?[<>]?\d)`)
	// asksCell is the header of a column whose cells say yes or no: "tokens?".
	asksCell = lazy.New(`(?i)\?$|^(?:works|passes|ok)\b`)
	yesNo    = lazy.New(`(?i)^(yes|no)\b`)
	// shownElsewhere is a cell that points to a log, which is quoted where something failed.
	shownElsewhere = lazy.New(`(?i)^(?:see |as )?(?:the |this )?(?:log|error|output|trace(?:back)?|message)s? (?:above|below)\b`)
	// ordinal is the header of a column that numbers the rows.
	ordinal = lazy.New(`(?i)^(?:#|no\.?|nr\.?|run|test|case|id)?$`)
)

// cellsOf are the cells of a row of a table, without marks of Markdown; nil for other lines.
func cellsOf(line string) []string {
	line = strings.TrimSpace(strings.NewReplacer("**", "", "`", "").Replace(line))
	if !strings.HasPrefix(line, "|") || strings.Count(line, "|") < 2 || len(line) > longest {
		return nil
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i, cell := range cells {
		cells[i] = strings.TrimSpace(cell)
	}
	return cells
}

// runs are those of the columns that tell outcomes in each row that they fill.
func (m *matrix) runs() []*run {
	var all []*run
	told := make([]bool, len(m.header))
	for i, title := range m.header {
		known, other := 0, 0
		for _, cells := range m.rows {
			switch outcome, _ := outcomeIn(title, cells[i]); outcome {
			case "":
				other++
			case unknown:
			default:
				known++
			}
		}
		told[i] = known > 1 && known >= 4*other
	}
	for at, l := range m.lines {
		cells := m.rows[at]
		for i, title := range m.header {
			if !told[i] {
				continue
			}
			r := &run{
				Run:      facts.Run{By: "table", Source: m.source, Line: l.Number, Variables: map[string]string{}},
				identity: fmt.Sprintf("column %d of line %d", i, m.line), text: l.Text, logged: map[string]string{},
			}
			outcome, rate := outcomeIn(title, cells[i])
			r.is(cmp.Or(outcome, unknown), "a table says so", l.Number, false)
			r.Wrong = outcome == failed && data.Experiments().Wrong.In(strings.ToLower(cells[i]))
			r.GBps = rate
			for k, cell := range cells {
				if !told[k] && !m.numbers(k) {
					r.tried(m.header[k], cell)
					m.besides(r, k, at)
				}
			}
			all = append(all, r)
		}
	}
	return all
}

// numbers reports whether a column only numbers the rows.
func (m *matrix) numbers(column int) bool {
	return ordinal.MatchString(m.header[column]) && !slices.ContainsFunc(m.rows, func(cells []string) bool { return strings.Trim(cells[column], "0123456789#.()") != "" })
}

// tried sets for a run what a cell says was tried; what it says otherwise distinguishes rows.
func (r *run) tried(title, cell string) {
	version := versionCell.FindString(cell)
	library := libraryColumn.FindStringSubmatch(title)
	switch {
	case noSetting.MatchString(cell):
		return
	case library != nil && version != "" && r.Version != "": // Another cell names the library's file.
		return
	case library != nil && version != "":
		r.set(strings.ToLower(library[1]), strings.TrimSuffix(strings.TrimSpace(version), " again"))
		return
	case librccl.MatchString(cell):
		r.set("rccl", librccl.First(cell))
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

// besides sets for a run what a cell says beside a setting, where another row says the same beside its own.
func (m *matrix) besides(r *run, column, row int) {
	cell := m.rows[row][column]
	rest := beside(cell)
	for i, other := range m.rows {
		if i != row && rest != "" && rest != cell && beside(other[column]) == rest {
			r.tried(m.header[column], rest)
			return
		}
	}
}

// beside is a cell without the settings that it names, and the words for none.
func beside(cell string) string {
	rest := assigns.ReplaceAllString(cell, "")
	for again := rest != cell || plainEnd.MatchString(rest); again; again = joiner.MatchString(rest) || plainEnd.MatchString(rest) {
		rest = plainEnd.ReplaceAllString(joiner.ReplaceAllString(rest, ""), "")
	}
	return rest
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
	switch bad := outcomeOf(title); {
	case asksCell.MatchString(title) && yesNo.MatchString(cell):
		return map[bool]string{true: good, false: failed}[strings.EqualFold(yesNo.First(cell), "yes")], nil
	case bad != hung && bad != failed:
	case noneCell.MatchString(cell):
		return good, nil
	case someCell.MatchString(cell):
		return bad, nil
	}
	outcome := outcomeOf(cell)
	switch {
	case strings.Trim(cell, "-?/ ") == "", strings.EqualFold(cell, "n/a"):
		return unknown, nil
	case outcome == unchanged, shownElsewhere.MatchString(cell):
		outcome = failed
	case outcome == "":
		if m := ratioCell.Get().FindStringSubmatchIndex(cell); m == nil || m[0] > 0 || cell[m[2]:m[3]] != cell[m[4]:m[5]] || cell[m[2]:m[3]] == "0" {
			return "", nil
		}
		return good, nil
	}
	if m := ratioCell.FindStringSubmatch(cell); m != nil {
		switch some, all := count(m[1]), count(m[2]); {
		case some == all, outcome != good && passesCell.MatchString(cell): // What did not pass did this.
		case outcome == good:
			return failed, nil
		case some == 0:
			return good, nil
		}
	}
	return outcome, nil
}
