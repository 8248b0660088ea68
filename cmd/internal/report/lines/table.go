package lines

import (
	"strings"
	"text/tabwriter"
)

// Table lays rows out in columns.
func Table(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		_, _ = w.Write([]byte(strings.TrimRight(strings.Join(row, "\t"), "\t") + "\n")) // A builder takes all.
	}
	_ = w.Flush()
	return b.String()
}
