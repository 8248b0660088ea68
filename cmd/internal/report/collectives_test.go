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

// TestGains checks, for each arm and rate, that what is proven good is a way without which all-reduce is
// clearly slower, and that the fewest variables are named without which it is clearly faster.
func TestGains(t *testing.T) {
	t.Parallel()
	arm := func(name string, rate float64, unset ...string) probe.Arm {
		return probe.Arm{Name: name, Outcome: probe.OK, Unset: unset, Operations: []probe.Operation{{Name: probe.AllReduce, Bytes: 64 << 20, Outcome: probe.OK, BusGBps: &rate}}}
	}
	for _, tt := range []struct {
		rate float64
		want string
	}{{27.6, "P2P proven good: NCCL_P2P_DISABLE=1 would cost 92 %"}, {300, ""}, {328, ""}, {400, ""}} {
		c := &probe.Collectives{Arms: []probe.Arm{arm(probe.ArmConfigured, 328), arm(probe.ArmP2POff, tt.rate), arm(probe.ArmInProcess, 1)}}
		expect.Equal(t, tt.want, strings.Join(gains(c), "; "), "P2P off at %v GB/s", tt.rate)
		for _, outcome := range []probe.Outcome{probe.Error, probe.Hang, probe.Corrupt, probe.Unknown} {
			for i := range 2 {
				own := *c
				own.Arms = []probe.Arm{c.Arms[0], c.Arms[1]}
				own.Arms[i].Outcome = outcome
				expect.Len(t, 0, gains(&own), "arm %d is %s", i, outcome)
			}
		}
	}
	slow := arm(probe.ArmConfigured, 27.6)
	slow.Outcome, slow.Operations[0].Outcome = probe.Slow, probe.Slow
	c := &probe.Collectives{Arms: []probe.Arm{slow, arm(probe.ArmCleaned, 328, "NCCL_A", "NCCL_B"), arm(probe.ArmWithout, 30, "NCCL_A"), arm(probe.ArmWithout, 320, "NCCL_B")}}
	expect.Equal(t, "NCCL_B costs 91 %", strings.Join(gains(c), "; "), "it")
	expect.That(t, gains(nil) == nil && gains(&probe.Collectives{}) == nil, "what was not run gains something")
}
