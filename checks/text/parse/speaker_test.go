package parse

import (
	"regexp"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// The forms that speaker.go reads, as regular expressions.
var (
	ncclSpeakerForm = regexp.MustCompile(`([A-Za-z0-9][\w.-]*):(\d+):\d+(?: \[(\d+)\])? `)
	slurmRankForm   = regexp.MustCompile(`^ *(\d{1,6}): `)
	timeOfForm      = regexp.MustCompile(`(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)`)
)

// wantSpeaker finds the first speaker that is no time of day.
func wantSpeaker(line string) []string {
	for from := 0; ; {
		m := ncclSpeakerForm.FindStringSubmatch(line[from:])
		if m == nil || m[3] != "" || !regexp.MustCompile(`^(\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d $`).MatchString(m[0]) {
			return m
		}
		from += strings.Index(line[from:], m[0]) + len(m[1]) + 1
	}
}

// FuzzSpeaker checks that the parts of a line's beginning are read as their forms say.
func FuzzSpeaker(f *testing.F) {
	for _, line := range []string{
		"node1:2810:2810 [0] NCCL INFO Bootstrap", "a:1:2:3:4 [x] ", "-_.n-1.b:10:20 [3]NCCL", "10:20:30:40 [5] x", "12: node:1:2 NCCL",
		"  7: 2025-08-21 16:02:40,123456789012 x", "[2025-08-21T16:02:40.5] ", "1234567: x", "2025-08-2 1-2025-08-21 16:02:40.", "x:1:2 [3 ] y:4:5 ",
		"Aug 21 16:02:40 n:1:2 [0] ", "2025-08-21T16:02:40 n:1:2 ", "16:02:40 [1] x",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		host, pid, device, ok := ncclSpeaker(line)
		switch m := wantSpeaker(line); {
		case ok != (m != nil):
			t.Errorf("%q: read %t, want %t", line, ok, m != nil)
		case m != nil && (host != m[1] || pid != m[2] || device != m[3]):
			t.Errorf("%q: got %q %q %q, want %q", line, host, pid, device, m[1:])
		}
		want := ""
		if m := slurmRankForm.FindStringSubmatch(line); m != nil {
			want = m[1]
		}
		expect.Equal(t, want, slurmRank(line), "%q: got the label", line)
		want = ""
		if m := timeOfForm.FindStringSubmatch(line); m != nil {
			want = m[1] + "T" + strings.ReplaceAll(m[2], ",", ".")
		}
		expect.Equal(t, want, timeOf(line), "%q: got the time", line)
	})
}
