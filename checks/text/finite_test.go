package text_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// numberInText is a number of a text.
var numberInText = regexp.MustCompile(`\b\d+(?:\.\d+)?\b`)

// TestNoInfinity checks that facts stay such as JSON can hold, whatever stands in
// place of the numbers of a text. By day each text has one other number in their place, or some.
func TestNoInfinity(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../fixtures/texts/*.txtar")
	expect.Must(t, err == nil && len(files) > 0, "no texts: %v", err)
	try := expect.EachNth(8)
	for i, file := range files {
		if testing.Short() && i%64 > 0 {
			continue // The race detector makes each many times as slow.
		}
		raw := expect.Value(os.ReadFile(file))(t)
		for _, instead := range []string{"nan", "NaN", "inf", "-inf", "Infinity", "1e999", "1e308", "-0"} {
			for _, every := range []int{1, 2, 3} { // All of them, or some, so that a line is still known.
				if !try(file, fmt.Sprint(instead, every)) {
					continue
				}
				n := 0
				text := numberInText.ReplaceAllStringFunc(string(raw), func(s string) string {
					if n++; n%every != 0 {
						return s
					}
					return instead
				})
				_, err := json.Marshal(texttest.Parse(filepath.Base(file), text))
				expect.That(t, err == nil, "%s with %s instead of each %d. number: %v", file, instead, every, err)
			}
		}
	}
}
