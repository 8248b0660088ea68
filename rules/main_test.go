package rules

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage more rarely, unless GOGC says how often: these tests evaluate thousands of rules, and would
// spend a third of their time on that.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	m.Run()
}
