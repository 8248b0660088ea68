package patch

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestMutations checks that files with slips of the keyboard are refused or changed as they
// must be: lines that are lost, doubled, moved in or indented, and characters too many or
// too few.
func TestMutations(t *testing.T) {
	t.Parallel()
	all := cases(t)
	names := slices.Sorted(maps.Keys(all))
	var pool []string
	for _, name := range names {
		pool = append(pool, strings.SplitAfter(all[name], "\n")...)
	}
	source := rand.New(rand.NewPCG(1, 2))
	changed := 0
	for range map[bool]int{true: 200, false: 800}[testing.Short()] {
		name := names[source.IntN(len(names))]
		text := mutated(source, all[name], pool)
		got, ok := made(t, name, text, settings())
		if !ok || len(got.Changes) == 0 {
			continue
		}
		changed++
		if (strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")) && !strings.HasPrefix(text, "#!") {
			keepsMeaning(t, name, text, got)
		}
		expect.Must(t, !t.Failed(), "%s:\n%s", name, text)
	}
	expect.AtLeast(t, 30, changed, "files were changed")
}

// mutated is a text with a few slips. Others are lines that may be moved in.
func mutated(source *rand.Rand, text string, others []string) string {
	lines := strings.SplitAfter(text, "\n")
	for range 1 + source.IntN(4) {
		i := source.IntN(len(lines))
		at := source.IntN(len(lines[i]) + 1)
		switch before, after := lines[i][:at], lines[i][at:]; source.IntN(6) {
		case 0:
			lines[i] = ""
		case 1:
			lines = slices.Insert(lines, i, lines[source.IntN(len(lines))])
		case 2:
			lines = slices.Insert(lines, i, others[source.IntN(len(others))])
		case 3:
			const signs = "{}[]:,#&*!|>'\"\\ -$\t\n~<;"
			lines[i] = before + string(signs[source.IntN(len(signs))]) + after
		case 4:
			lines[i] = before + after[min(1, len(after)):]
		case 5:
			lines[i] = " " + lines[i]
		}
	}
	return strings.Join(lines, "")
}
