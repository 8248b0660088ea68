package deadline

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/golden"
)

const intro = `# Deadlines

Everything that can hang has a deadline. A stage never outlasts the command: whatever is shorter wins. The program reads the same table from
"checks/deadline"; a test checks that this page matches it.

| what | at most | then |
| --- | ---: | --- |
`

// TestGoldenDocs checks that docs/deadlines.md equals the table.
func TestGoldenDocs(t *testing.T) {
	var b strings.Builder
	b.WriteString(intro)
	for _, r := range table() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.What, r.At, r.Then)
	}
	golden.File(t, filepath.Join("..", "..", "docs", "deadlines.md"), []byte(b.String()))
}

// TestNested checks that no stage outlasts what it is a part of.
func TestNested(t *testing.T) {
	within := Within(Whole)
	for name, d := range map[string]time.Duration{
		"Check": Check, "Start": Start, "Calls times Transfer": Calls * Transfer, "NVMLCall": NVMLCall, "File": File,
	} {
		expect.That(t, d < within, "%s is %s, which a command of %s does not have", name, d, Whole)
	}
	expect.That(t, Kill+Judge < Ending, "%s are kept for the end, which takes %s", Ending, Kill+Judge)
	for whole := Least; whole < time.Hour; whole += whole / 3 {
		w := Within(whole)
		expect.That(t, w > 0 && w < whole, "of %s %s are left", whole, w)
	}
}
