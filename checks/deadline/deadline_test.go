package deadline

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
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
	expect.Golden(t, filepath.Join("..", "..", "docs", "deadlines.md"), []byte(b.String()))
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

// row is one deadline as the documentation shows it.
type row struct {
	What string
	At   time.Duration
	// Then says what happens to work that is not done by then.
	Then string
}

// table is every deadline, from the outermost.
func table() []row {
	return []row{
		{"the whole command, on a live machine (`--deadline`)", Whole, "work in progress is stopped, and the report says what was not done"},
		{"the same with `--probe full`", Full, "the same"},
		{"the same with `--from` or `--with`", Texts, "what was read is judged, and the report says what was not read"},
		{"reserved for the end: children, rules, report", Ending, ""},
		{"each check that reads files", Check, "its section is unknown"},
		{"one operation on a file", File, "the fact is unknown"},
		{"one operation on a file of `--from` or `--with`, except pipes", Silence, "the text is listed as not read"},
		{"each step of starting the driver (`--probe-timeout`)", Start, "outcome hang; the process is ended"},
		{"each wait for a transfer (`--probe-timeout`, if shorter)", Transfer, "outcome hang; the next transfer is tried"},
		{"silence of the process that drives the GPUs, in a transfer", Calls * Transfer, "outcome hang; a new process continues"},
		{"the creation of a communicator by the probe of collectives", Join, "outcome hang; all ranks are ended, and the next arm is tried with half the time"},
		{"the wait of the first rank of `probe nccl --nodes` for the others (`--arrive`)", Arrive, "those that came go on, and the report names the others"},
		{"all that these nodes do together (`--deadline`)", Nodes, "the report says how many pairs were not run"},
		{"each call of the management library (`--probe-timeout`)", NVMLCall, "outcome hang; the process is ended"},
		{"all calls of the management library", NVML, "the same"},
		{"the first message of a child", Spawn, "outcome hang"},
		{"a call that is tried in a child: shared memory, locked memory", Attempt, "its outcome is unknown; the next is tried"},
		{"all such calls", Attempts, "the outcome of the rest is unknown"},
		{"registering memory of a GPU with a NIC (`--probe full`)", Direct, "its outcome is unknown; another child tries the rest"},
		{"all registrations, and all reads of a mount", DirectAll, "the outcome of the rest is unknown"},
		{"the exit of a killed child", Kill, "it is left behind, and the report says so"},
		{"compiling the rules of a policy (processor time)", Compile, "an error"},
		{"one rule (processor time)", Rule, "it is stopped and listed as skipped"},
		{"all rules (processor time)", Rules, "each gets at most half of the remaining time"},
		{"the end of the command after SIGINT, SIGTERM or another signal that ends it", Signal, "it exits"},
		{"a FIFO named by `-o` that has no reader", Reader, "an error"},
	}
}
