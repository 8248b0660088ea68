package text_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/job"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestSections checks that of a text that holds the logs of several processes, each under a heading, the same process
// failed first as of a file for each, in whatever order they stand, and that what only looks like a heading divides nothing.
func TestSections(t *testing.T) {
	t.Parallel()
	step := "completed step: %d, seconds: 8.9, TFLOP/s/device: 415.3, loss: 2.3\n"
	lost := "w-%d:1:1944 [5] transport/net_ib.cc:2121 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<47930> with status=12 opcode=0 len=0 vendor err 129 (Recv)\n"
	logs := map[string]string{
		"w-0": fmt.Sprintf(step+step+step+lost, 1, 2, 3, 0),
		"w-1": fmt.Sprintf(step+lost, 3, 1) + "Fatal Python error: Aborted\n",
		"w-2": fmt.Sprintf(step+step, 2, 3) + "Traceback (most recent call last):\n  File \"/app/train.py\", line 9, in <module>\n    row = rows[i]\nIndexError: list index out of range\n",
	}
	read := func(texts map[string]string) *facts.Death {
		r := text.NewReading()
		for name, of := range texts {
			expect.NoError(t, r.Read(context.Background(), name, strings.NewReader(of)))
		}
		j := job.Of(r.Finish())
		expect.That(t, j != nil, "no job")
		return j.First
	}
	apart := map[string]string{}
	for name, of := range logs {
		apart[name+".log"] = of
	}
	first := read(apart)
	expect.That(t, first != nil && first.Class == "IndexError", "of a file for each: %+v", first)
	for heading, divides := range map[string]bool{
		"==== kubectl logs %s ====\n": true, "$ kubectl logs -n ml %s\n": true, "$ docker logs %s\n": true, "--- pod %s ---\n": true, "######## node %s ########\n": true,
		"==> %s.log <==\n": true, "### Worker %s\n": true, "***** %s.out *****\n": true, "> ---- host %s ----\n": false, "==== step of %s done ====\n": false,
	} {
		for _, order := range [][]string{{"w-0", "w-1", "w-2"}, {"w-0", "w-2", "w-1"}, {"w-1", "w-0", "w-2"}, {"w-1", "w-2", "w-0"}, {"w-2", "w-0", "w-1"}, {"w-2", "w-1", "w-0"}} {
			var whole strings.Builder
			for _, name := range order {
				fmt.Fprintf(&whole, heading+"%s\n", name, logs[name])
			}
			got := read(map[string]string{"all.log": whole.String()})
			same := got != nil && got.Class == first.Class
			expect.That(t, same == divides || !divides && order[0] == "w-2", "%q, %v: first is %+v", heading, order, got)
		}
	}
	again := strings.Repeat("==== rank 0 of w-0 ====\n"+logs["w-0"], 2) + "==== rank 2 of w-2 ====\n" + logs["w-2"]
	got := read(map[string]string{"all.log": again})
	expect.That(t, got == nil || got.Class != first.Class, "a heading that comes again: %+v", got)
}
