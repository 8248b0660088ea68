package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func sample(outcomes ...probe.Outcome) *probe.Collectives {
	us, rate := 8.5, 123.4
	c := &probe.Collectives{Library: "nccl", Version: "2.28.9", Path: "/lib/libnccl.so.2", FoundBy: "python", GPUs: []string{"a", "b"}, Arms: []probe.Arm{}}
	for i, o := range outcomes {
		a := probe.Arm{
			Name: []string{"as-configured", "p2p-off"}[i], Outcome: o, Ranks: []probe.Rank{{Rank: 1, LastError: "last words"}}, Transports: []probe.CollectiveTransport{{Kind: "shm", Channels: 2}},
			Operations: []probe.Operation{{Name: probe.AllReduce, Bytes: 8, Outcome: o, Microseconds: &us, BusGBps: &rate}},
		}
		if o != probe.OK {
			a.Reason, a.Warnings = "rank 1 | in all-reduce", []string{"a <b> warning"}
		}
		c.Arms = append(c.Arms, a)
	}
	if c.Outcome = probe.Unknown; len(c.Arms) > 0 {
		c.Outcome = c.Arms[0].Outcome
	}
	return c
}

// TestExitCode enumerates the outcomes of the first arm and of another.
func TestExitCode(t *testing.T) {
	t.Parallel()
	all := []probe.Outcome{probe.OK, probe.Slow, probe.Corrupt, probe.Hang, probe.Error, probe.Unknown}
	for _, first := range all {
		for _, other := range all {
			want := 0
			switch {
			case first.Failed() || first == probe.Slow || other == probe.Corrupt || other == probe.Hang:
				want = 1
			case first == probe.Unknown:
				want = 3
			}
			expect.Equal(t, want, CollectivesExitCode(&Document{Collectives: sample(first, other)}), "%s, then %s", first, other)
		}
	}
	expect.That(t, CollectivesExitCode(&Document{}) == 3 && CollectivesExitCode(&Document{Collectives: sample()}) == 3, "nothing that was run passes")
}

// TestWrite checks what every format says of a failure, and that JSON is the probe's own report.
func TestWrite(t *testing.T) {
	t.Parallel()
	c := sample(probe.Hang, probe.OK)
	for _, format := range TransferFormats {
		var b bytes.Buffer
		expect.NoError(t, WriteCollectives(&b, format, c, true))
		for _, want := range []string{"2.28.9", "/lib/libnccl.so.2", "as-configured", "hang", "p2p-off", "rank 1", "last words", "shm"} {
			expect.That(t, strings.Contains(b.String(), want), "%s does not say %q:\n%s", format, want, b.String())
		}
		if format == "json" {
			var back probe.Collectives
			err := json.Unmarshal(b.Bytes(), &back)
			expect.That(t, err == nil && back.Outcome == probe.Hang && len(back.Arms) == 2, "%v: %s", err, b.String())
		}
		b.Reset()
		err := WriteCollectives(&b, format, nil, false)
		expect.That(t, err == nil && b.Len() != 0, "%s of nothing: %q, %v", format, b.String(), err)
	}
}
