package rules

import (
	"os"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestMain collects garbage more rarely, unless GOGC says how often: these tests evaluate thousands of rules, and would
// spend a third of their time on that.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	m.Run()
}

// TestModulesAreOnlyRead checks, under the race detector, that a module can be copied while another goroutine reads its
// objects in order: several programs are compiled from one module at once.
func TestModulesAreOnlyRead(t *testing.T) {
	t.Parallel()
	modules, faults := parse(map[string][]byte{"a.rego": []byte("package a\n\nx := {\"c\": 1, \"b\": {2, 1}, \"a\": {\"z\": 3, \"y\": 4}}\n")}, false)
	expect.Must(t, len(faults) == 0, "%v", faults)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { _ = modules["a.rego"].Copy() })
		wg.Go(func() { _ = modules["a.rego"].String() })
	}
	wg.Wait()
}
