package collectives

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/probe"
)

func sample(outcomes ...probe.Outcome) *probe.Collectives {
	us, rate := 8.5, 123.4
	c := &probe.Collectives{Library: "nccl", Version: "2.28.9", Path: "/lib/libnccl.so.2", FoundBy: "python", GPUs: []string{"a", "b"}, Arms: []probe.Arm{}}
	c.Candidates = []probe.Candidate{{Path: "/lib/libnccl.so.2"}, {Path: "/other/libnccl.so.2", Version: "2.18.1"}}
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
	all := []probe.Outcome{probe.OK, probe.Corrupt, probe.Hang, probe.Error, probe.Unknown}
	for _, first := range all {
		for _, other := range all {
			want := 0
			switch {
			case first.Failed() || other == probe.Corrupt || other == probe.Hang:
				want = 1
			case first == probe.Unknown:
				want = 3
			}
			if got := ExitCode(sample(first, other)); got != want {
				t.Errorf("%s, then %s: %d, want %d", first, other, got, want)
			}
		}
	}
	if ExitCode(nil) != 3 || ExitCode(sample()) != 3 {
		t.Error("nothing that was run passes")
	}
}

// TestWrite holds what every format says of a failure, and that JSON is the probe's own report.
func TestWrite(t *testing.T) {
	t.Parallel()
	c := sample(probe.Hang, probe.OK)
	for _, format := range Formats {
		var b bytes.Buffer
		if err := Write(&b, format, c, true); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"2.28.9", "/lib/libnccl.so.2", "/other/libnccl.so.2", "as-configured", "hang", "p2p-off", "rank 1", "last words", "shm"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s does not say %q:\n%s", format, want, b.String())
			}
		}
		if format == "markdown" && strings.Contains(b.String(), "<b>") {
			t.Errorf("markdown passes HTML on:\n%s", b.String())
		}
		if format == "json" {
			var back probe.Collectives
			if err := json.Unmarshal(b.Bytes(), &back); err != nil || back.Outcome != probe.Hang || len(back.Arms) != 2 {
				t.Errorf("%v: %s", err, b.String())
			}
		}
		b.Reset()
		if err := Write(&b, format, nil, false); err != nil || b.Len() == 0 {
			t.Errorf("%s of nothing: %q, %v", format, b.String(), err)
		}
	}
}
