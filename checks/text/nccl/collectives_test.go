package nccl_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestCollectives checks, for two processes that call three collectives in every interleaving of their lines, that a difference
// in one of them is told with its number, that none is told where they agree, and that calls of several communicators of one
// size are not compared.
func TestCollectives(t *testing.T) {
	t.Parallel()
	call := func(process int, op string, number, count, kind int, comm string) string {
		return fmt.Sprintf("node1:%d:%d [0] NCCL INFO %s: opCount %x sendbuff 0x7f recvbuff 0x7f count %d datatype %d op 0 root 0 comm %s [nranks=2] stream 0x55\n",
			process, process, op, number, count, kind, comm)
	}
	differ := func(lines ...string) map[string]string {
		r := text.NewReading()
		expect.NoError(t, r.Read(context.Background(), "a.log", strings.NewReader(strings.Join(lines, ""))))
		if logs := r.Finish().Logs; logs != nil {
			for _, m := range logs.Messages {
				if m.ID == "nccl-collectives-differ" {
					return m.Fields
				}
			}
		}
		return nil
	}
	same := func(process int, comm string) []string {
		return []string{call(process, "AllReduce", 0, 64, 7, comm), call(process, "AllGather", 1, 32, 9, comm), call(process, "AllReduce", 0xa, 64, 7, comm)}
	}
	for name, changed := range map[string]string{
		"":          call(2, "AllGather", 1, 32, 9, "0xb"),
		"kind":      call(2, "AllGather", 1, 32, 8, "0xb"),
		"count":     call(2, "AllGather", 1, 16, 9, "0xb"),
		"operation": call(2, "Broadcast", 1, 32, 9, "0xb"),
	} {
		a, b := same(1, "0xa"), same(2, "0xb")
		b[1] = changed
		for mask := range 1 << 6 { // Which process writes next.
			var lines []string
			i, j := 0, 0
			for bit := range 6 {
				if mask>>bit&1 == 0 && i < 3 || j == 3 {
					lines = append(lines, a[i])
					i++
				} else {
					lines = append(lines, b[j])
					j++
				}
			}
			fields := differ(lines...)
			expect.That(t, (fields == nil) == (name == "") && (fields == nil || fields["number"] == "1"), "%s, %06b: %v", name, mask, fields)
		}
		other := call(1, "AllReduce", 3, 8, 7, "0xc") // The first process has two communicators of two ranks.
		expect.That(t, differ(append(append(a, b...), other)...) == nil, "%s: compared over two communicators", name)
	}
	expect.That(t, differ(call(1, "Send", 0, 64, 7, "0xa"), call(2, "Recv", 0, 32, 7, "0xb")) == nil, "sends and receives differ by nature")
}
