package deadline

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/deadlines.md")

const intro = `# Deadlines

Everything that can hang has a deadline. A stage never outlasts the command: whatever is shorter wins. The table is that of
"checks/deadline", which the program reads; a test holds this page equal to it.

| what | at most | then |
| --- | ---: | --- |
`

// TestDocs holds docs/deadlines.md equal to the table.
func TestDocs(t *testing.T) {
	var b strings.Builder
	b.WriteString(intro)
	for _, r := range Table() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.What, r.At, r.Then)
	}
	file := filepath.Join("..", "..", "docs", "deadlines.md")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Errorf("%s differs from the table; run go test ./checks/deadline -update", file)
	}
}

// TestNested holds that no stage outlasts what it is a part of.
func TestNested(t *testing.T) {
	within := Within(Whole)
	for name, d := range map[string]time.Duration{
		"Check": Check, "Start": Start, "Calls times Transfer": Calls * Transfer, "NVMLCall": NVMLCall, "File": File,
	} {
		if d >= within {
			t.Errorf("%s is %s, which a command of %s does not have", name, d, Whole)
		}
	}
	if Kill+Judge >= Ending {
		t.Errorf("%s are kept for the end, which takes %s", Ending, Kill+Judge)
	}
	for whole := Least; whole < time.Hour; whole += whole / 3 {
		if w := Within(whole); w <= 0 || w >= whole {
			t.Errorf("of %s %s are left", whole, w)
		}
	}
}
