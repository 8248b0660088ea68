package nccl

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestPrefilteredLines checks of which lines NCCL's log is only counted.
func TestPrefilteredLines(t *testing.T) {
	const who = "node1:2810:2811 [0] NCCL INFO "
	for line, want := range map[string]parse.Relevance{
		who + "Connected to proxy localRank 0 -> connection 0x7f":       parse.Counted,
		"12: " + who + "Imported shareable buffer device 0 size 2":      parse.Counted,
		who + " 0 : GPU/0-60000 GPU/0-70000":                            parse.Counted,
		who + "Ring 00 : 0 -> 1 -> 2":                                   parse.Counted,
		who + "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM":               parse.Relevant,
		who + "NCCL_DEBUG set by environment to INFO":                   parse.Relevant,
		who + "NCCL version 2.28.9+cuda13.0":                            parse.Relevant,
		who + "24 coll channels, 24 p2p channels":                       parse.Relevant,
		who + "comm 0x1 rank 0 nranks 8 cudaDev 0 - Init COMPLETE":      parse.Relevant,
		who + "a" + who + "Using network IB":                            parse.Relevant,
		"NCCL INFO 0: Using network IB":                                 parse.Relevant,
		"node1:2810:2811 [0] misc/x.cc:1 NCCL WARN Call to bind failed": parse.Relevant,
	} {
		expect.Equal(t, want, prefilter([]byte(line)), "%q", line)
	}
}
