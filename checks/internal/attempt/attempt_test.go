package attempt

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestMain(m *testing.M) {
	child.Main()
	runRestricted()
	os.Exit(m.Run())
}

var small = Sizes{File: 64 << 10, Locked: 64 << 10}

// TestAsk checks that each attempt has an outcome here, and that nothing is left of them.
func TestAsk(t *testing.T) {
	before := namesIn(t, "/dev/shm")
	a := expect.Value(Ask(t.Context(), true, small))(t)
	expect.That(t, a.Probed && len(a.Results) == len(all), "got %+v", a)
	for name, r := range a.Results {
		expect.That(t, (r.Outcome != Unknown || r.Reason != "") && (r.Outcome != Refused || r.Call != "" && r.Errno != ""), "%s: got %+v", name, r)
		if r.Outcome == Unknown {
			t.Logf("%s: %s", name, r.Reason)
		}
	}
	for _, name := range namesIn(t, "/dev/shm") {
		expect.That(t, !strings.HasPrefix(name, "gpudoctor") || slices.Contains(before, name), "/dev/shm/%s was left behind", name)
	}
}

func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Log(err)
	}
	return expect.Map(entries, func(e os.DirEntry) string { return e.Name() })
}

// TestAskWithoutProbe checks that only the basic calls are made without the probe.
func TestAskWithoutProbe(t *testing.T) {
	a := expect.Value(Ask(t.Context(), false, small))(t)
	expect.That(t, !a.Probed && len(a.Results) == len(basic), "got %+v", a)
}

func TestAskCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a, err := Ask(ctx, true, small)
	expect.That(t, err != nil, "got %+v", a)
}

// TestUnknownAttempt checks that a child without an answer leaves a reason, and no outcome.
func TestUnknownAttempt(t *testing.T) {
	results := expect.Value(runAll(t.Context(), []string{"moonshine", GetMempolicy}, Sizes{}))(t)
	r := results["moonshine"]
	expect.That(t, r.Outcome == Unknown && r.Reason != "", "got %+v", r)
	r = results[GetMempolicy]
	expect.That(t, r.Outcome != Unknown, "the next one was not made: %+v", r)
}

// TestEnding checks that the end of a child always has a reason, and that a filter is named for what it is.
func TestEnding(t *testing.T) {
	for _, r := range []child.Result{{Signal: "SIGKILL"}, {Signal: "SIGBUS"}, {TimedOut: true}, {Canceled: true}, {Silent: true}, {Exited: true, Code: 2}, {Death: child.DeathByLibrary, Signal: "SIGSEGV"}} {
		expect.That(t, ending(&r, time.Second) != "", "no reason after %+v", r)
	}
	for _, name := range all {
		r := filtered(try{Name: name})
		expect.That(t, r.Outcome == Refused && r.Call != "" && r.Errno == "SIGSYS", "%s: got %+v", name, r)
	}
}

// resultsOf decodes what a restricted parent prints.
func resultsOf(t *testing.T, out []byte) map[string]Result {
	t.Helper()
	var results map[string]Result
	err := json.Unmarshal(out, &results)
	expect.Must(t, err == nil, "%v: %s", err, out)
	return results
}
