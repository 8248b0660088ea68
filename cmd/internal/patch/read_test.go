package patch

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
)

// TestPatchedIsRead checks that a file which is changed describes the same jobs as before.
func TestPatchedIsRead(t *testing.T) {
	t.Parallel()
	jobs := func(name, text string) map[string]int {
		count := map[string]int{}
		for _, l := range texttest.Parse(name, text).Launches {
			if l.Kind != "shell" {
				count[l.Kind+" "+l.Object]++
			}
		}
		return count
	}
	for name, text := range cases(t) {
		got, ok := made(t, name, text, settings())
		if !ok || len(got.Changes) == 0 {
			continue
		}
		before, after := jobs(name, text), jobs(name, got.Text)
		for job, n := range before {
			if after[job] != n {
				t.Errorf("%s: %s: %d, then %d in\n%s", name, job, n, after[job], got.Text)
			}
		}
	}
}
