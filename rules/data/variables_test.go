package data

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

var confidences = []string{"confirmed", "likely", "possible"}

// TestVariableRows checks that each row names variables that somebody reads, and says why
// and how much they hurt, and where that stands.
func TestVariableRows(t *testing.T) {
	table := Variables()
	losses := map[string]bool{}
	for i, row := range table.Rows {
		expect.Must(t, len(row.Names) != 0, "row %d names no variable", i)
		name := row.Names[0]
		for _, n := range row.Names {
			expect.That(t, !strings.HasPrefix(n, "NCCL_") || table.Known[n] != "", "row %d: %s is no variable that NCCL reads or has read", i, n)
			expect.That(t, row.Source != "" || strings.HasPrefix(n, "NCCL_") || row.Silent, "row %d: %s is not NCCL's, and the row has no source", i, n)
		}
		_, err := regexp.Compile(row.Like)
		expect.That(t, err == nil, "row %d, %s: %v", i, name, err)
		if row.Loss != "" {
			losses[row.Loss] = true
		}
		if row.Silent {
			expect.That(t, row.Severity == "" && row.Confidence == "" && row.Why == "" && len(row.Remedies) == 0, "row %d, %s: it is silent, and says something", i, name)
			continue
		}
		expect.That(t, row.Why != "" && !strings.HasSuffix(row.Why, "."), "row %d, %s: why is %q", i, name, row.Why)
		expect.That(t, row.Severity == "by-loss" || slices.Contains(severities, row.Severity), "row %d, %s: severity %q", i, name, row.Severity)
		expect.That(t, slices.Contains(confidences, row.Confidence), "row %d, %s: confidence %q", i, name, row.Confidence)
		expect.That(t, slices.Contains(row.Remedies, "nccl-p2p-level") == slices.Contains(table.Levels, row.Level), "row %d, %s: level %q with the remedies %v", i, name, row.Level, row.Remedies)
		if row.Source != "" {
			checkSources(t, name, row.Source)
		}
	}
	for name, words := range table.Losses {
		expect.That(t, losses[name] && words != "", "no row has the loss %s, or it says nothing", name)
	}
	expect.That(t, len(losses) == len(table.Losses), "rows have the losses %v, and the table %v", losses, table.Losses)
	checkSources(t, "the table", table.Guide)
}

// TestVariableRowsDecide checks that no row stands below one that always fits before it.
func TestVariableRowsDecide(t *testing.T) {
	always := map[string]int{}
	for i, row := range Variables().Rows {
		for _, name := range row.Names {
			above, ok := always[name]
			expect.That(t, !ok, "row %d never decides for %s: row %d always does", i, name, above)
			if len(row.Is)+len(row.Text)+len(row.Lacks)+len(row.When)+len(row.Unless)+len(row.Said) == 0 && row.AtMost == nil && row.Like == "" {
				always[name] = i
			}
		}
	}
}

func TestKnownVariables(t *testing.T) {
	table := Variables()
	for name, kind := range table.Known {
		expect.That(t, regexp.MustCompile(`^NCCL_[A-Z0-9_]+$`).MatchString(name) && (kind == "number" || kind == "text"), "known: %s: %s", name, kind)
	}
	for i, name := range table.Joint {
		expect.That(t, table.Known[name] != "" && !slices.Contains(table.Joint[:i], name), "joint: %s is not known, or is there twice", name)
	}
	for name, meant := range table.Misspelt {
		expect.That(t, table.Known[name] == "" && table.Known[meant] != "", "misspelt: %s is known, or %s, which it means, is not", name, meant)
	}
}

func TestLevels(t *testing.T) {
	table := Variables()
	for path, level := range table.PathLevels {
		expect.That(t, slices.Contains(table.Levels, level), "path_levels: %s means the unknown level %s", path, level)
	}
	for _, name := range slices.Concat(table.Algorithms, table.Protocols) {
		expect.That(t, name != "" && name == strings.ToLower(name), "the name %q is not in lower case", name)
	}
}
