package checks

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/recorded"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestReplayOfThisMachine checks that what is gathered from a recording of the machine that runs the test is what was
// gathered from the machine itself, what could not be read included.
func TestReplayOfThisMachine(t *testing.T) {
	document := func(h *host.Host) string {
		f, _ := Gather(t.Context(), h, gather.Options{Probe: probe.Off, Deadline: time.Minute})
		// Why there is no probe differs: here it was not asked for, there it is not in the recording.
		f.Unknown = slices.DeleteFunc(f.Unknown, func(u facts.Unknown) bool { return u.Section == "transfers" })
		var b bytes.Buffer
		expect.NoError(t, recorded.WriteFacts(&b, f))
		return b.String()
	}
	h, recording := host.Live().Record()
	want := document(h)
	var snapshot bytes.Buffer
	expect.NoError(t, recording.Write(&snapshot, host.RecordOptions{KeepNames: true}))
	t.Logf("the snapshot has %d bytes", snapshot.Len())
	expect.NoDiff(t, want, document(expect.Value(host.ParseSnapshot("snapshot", snapshot.Bytes()))(t)), "it")
}
