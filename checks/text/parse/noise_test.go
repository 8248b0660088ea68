package parse

import (
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestMarks checks what is taken off each line, and that who wrote it is known still.
func TestMarks(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		text, host string
		rank       int
	}{
		"[1,3]<stderr>:  x":                       {"  x", "", 3},
		"[prterun-n7-40@1,2]<stdout>: x":          {"x", "", 2},
		"Thu Aug 21 16:02:40 2025[1,0]<stdout>:x": {"x", "", 0},
		"[1,mpirank:0,algo-1]<stderr>:x":          {"x", "", 0},
		"[rank3]: x":                              {"x", "", 3},
		"[rank3]:[W x":                            {"[W x", "", 3},
		"[default0]: x":                           {" x", "", -1},
		"[pod/a/b] [rank1]:x":                     {"x", "", 1},
		"trainer-1  | n1:2:3 [0] NCCL INFO x":     {"n1:2:3 [0] NCCL INFO x", "n1", -1},
		"(Worker pid=12, ip=10.0.0.2) x":          {"x", "", -1},
		"2025-08-21T16:02:40.1Z stdout F x":       {"x", "", -1},
		"2025-08-21T16:02:40.1Z stderr P":         {"", "", -1},
		"[0] x":                                   {"[0] x", "", -1},
		"3: x":                                    {"3: x", "", 3},
		"| x |":                                   {"| x |", "", -1},
		"- `x`":                                   {"- x", "", -1},
		"x<br>  ":                                 {"x", "", -1},
		"[std] x":                                 {"[std] x", "", -1},
		"(a) x":                                   {"(a) x", "", -1},
		"Aug 21 16:02:40 n1:2:3 [0] NCCL WARN x":  {"Aug 21 16:02:40 n1:2:3 [0] NCCL WARN x", "n1", -1},
		"2025-08-21T16:02:40Z n1:2:3 [0] NCCL WARN [3] x": {"2025-08-21T16:02:40Z n1:2:3 [0] NCCL WARN [3] x", "n1", -1},
	} {
		var l Line
		l.of(line)
		who := Identify(l.Whole())
		rank := -1
		if who.rank != nil {
			rank = *who.rank
		}
		expect.That(t, l.Text == want.text && who.Host == want.host && rank == want.rank, "%q: got %q of %q, rank %d, want %+v", line, l.Text, who.Host, rank, want)
	}
}

// FuzzNoise checks of any line that what stands before it is taken off its front alone, and
// that the fast checks of the forms pass over none that has the form.
func FuzzNoise(f *testing.F) {
	for _, line := range []string{"> - `x`", "    12\tx", "node7: x", "[2025-08-21 16:02:40] INFO x", "train\tstep\t2025-08-21T16:02:40Z x", "logs/a.log:12:x", "1. x", "\u2022 x", "\x1b[0m", "{\"msg\":\"a\"}"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		n := prefixesLen(line)
		expect.Must(t, n >= 0 && n <= len(line), "%q: marks of %d bytes", line, n)
		for i := range prefixForms {
			expect.That(t, prefixForms[i].form.FindString(line[:min(len(line), prefixBytes)]) == "" || prefixForms[i].may(line) || prefixForms[i].form == names.form, "%q: form %d is passed over", line, i)
		}
		expect.That(t, maySure(line) || surePrefix.FindString(line) == "", "%q: a sure prefix is passed over", line)
		inner, _, ok := stripPrefix(line)
		expect.That(t, !ok || len(inner) < len(line) && strings.Contains(line, inner), "%q: %q is left", line, inner)
		expect.That(t, plain([]byte(line)) == (string(clean([]byte(line))) == line && !strings.ContainsFunc(line, func(c rune) bool { return c >= 0x7f })), "%q is cleaned", line)
	})
}
