package redact

import (
	"slices"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// This file redacts tables, as squeue and ps print them: there, only the heading of a column says what stands in it.

// column is a column of a table: what stands in it, and where its heading does.
type column struct {
	what string
	cell
}

// cell is where a cell of a table is in its line.
type cell struct{ from, to int }

// maxColumns bounds the columns of a table; squeue has about 100.
const maxColumns = 128

// rowKey is what stands in a column that tells a row: something that begins with a digit, such as the number of a job.
const rowKey = "id"

// rowKeys are the headings of such columns.
var rowKeys = sync.OnceValue(func() (all []string) {
	for heading, what := range known().Columns {
		if what == rowKey {
			all = append(all, heading)
		}
	}
	return all
})

// cellWord is a cell of a table whose columns have blanks between them.
var cellWord = lazy.New(`\S+`)

// cellsOf are the cells of a line. With a bar between columns, a cell may be empty.
func cellsOf(line string) []cell {
	line = strings.TrimRight(line, "\r\n")
	var all []cell
	if strings.Contains(line, "|") {
		at := 0
		for text := range strings.SplitSeq(line, "|") {
			all = append(all, cell{at, at + len(text)})
			at += len(text) + 1
		}
		return all
	}
	for _, m := range cellWord.Get().FindAllStringIndex(line, -1) {
		all = append(all, cell{m[0], m[1]})
	}
	return all
}

// columnsOf are the columns of the table that a line heads; nil if it heads none.
func columnsOf(line string) []column {
	if !slices.ContainsFunc(rowKeys(), func(heading string) bool { return strings.Contains(line, heading) }) {
		return nil // Most lines hold none.
	}
	var all []column
	isTable, isRedacted := false, false
	for _, c := range cellsOf(line) {
		what := known().Columns[line[c.from:c.to]]
		all = append(all, column{what, c})
		isTable, isRedacted = isTable || what == rowKey, isRedacted || what != "" && what != rowKey
	}
	if !isTable || !isRedacted || len(all) > maxColumns {
		return nil
	}
	return all
}

// inTable redacts a line if it is one of the table with these columns, and returns those of the table that goes on
// behind it.
func (r *Redactor) inTable(columns []column, line string) (string, []column) {
	if columns != nil {
		if row, isRow := r.row(columns, line); isRow {
			return row, columns
		}
	}
	return line, columnsOf(line)
}

// row redacts a line of a table, and reports whether it is one: it has the number of a job, or is a rule. Cells
// stay below their headings.
func (r *Redactor) row(columns []column, line string) (string, bool) {
	if strings.Trim(line, "- \r\n") == "" {
		return line, strings.Contains(line, "-")
	}
	barred, cells, isRow := strings.Contains(line, "|"), cellsOf(line), false
	whats := make([]string, len(cells))
	for i, c := range cells {
		whats[i] = c.below(columns)
		if barred {
			whats[i] = columns[min(i, len(columns)-1)].what
		}
		isRow = isRow || whats[i] == rowKey && isDigit(after(line, c.from))
	}
	if !isRow {
		return line, false
	}
	var out strings.Builder
	last := 0
	for i, c := range cells {
		text, what := line[c.from:c.to], whats[i]
		if what == rowKey || what == "" || text == "" {
			continue
		}
		shown := r.standIn(what, strings.TrimRight(text, "+*"), line, c.from, c.to) // sacct cuts what is too long: "alic+", sinfo marks a default: "gpu*".
		gap, longer := line[last:c.from], len(shown)-len(text)
		if !barred {
			shown += strings.Repeat(" ", max(0, -longer))
			for ; longer > 0 && strings.HasSuffix(gap, "  "); longer-- {
				gap = gap[1:]
			}
		}
		out.WriteString(gap + shown)
		last = c.to
	}
	return out.String() + line[last:], true
}

// below is what stands in the column below whose heading a cell is, for the most part.
func (c cell) below(columns []column) (what string) {
	most := 0
	for _, heading := range columns {
		if common := min(c.to, heading.to) - max(c.from, heading.from); common > most {
			most, what = common, heading.what
		}
	}
	return what
}
