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

func TestNCCLSpeaker(t *testing.T) {
	for text, want := range map[string]speaker{
		"node7:4021:4077 [3] NCCL INFO Using network IB":                                     {"node7:4021:4077", "node7"},
		"node7:4021:4077 NCCL INFO Using network IB":                                         {"node7:4021:4077", "node7"},
		"0: node7:4021:4077 [3] NCCL INFO Using network IB":                                  {"node7:4021:4077", "node7"},
		"[1,0]<stdout>:node7:4021:4077 [3] NCCL INFO Using network IB":                       {"node7:4021:4077", "node7"},
		"[rank0]:node7:4021:4077 [3] NCCL INFO Using network IB":                             {"node7:4021:4077", "node7"},
		"[trainer3|0]:node7:4021:4077 [3] NCCL INFO Using network IB":                        {"node7:4021:4077", "node7"},
		"(RayWorkerWrapper pid=82, ip=10.0.0.2) node7:4021:4077 [3] NCCL INFO Using network": {"node7:4021:4077", "node7"},
		"[2026-05-11 09:27:33] node7.example.org:4021:4077 [3] NCCL INFO Using network IB":   {"node7.example.org:4021:4077", "node7.example.org"},
		"2026-05-11T09:27:33Z pod-0 node7:4021:4077 [3] NCCL INFO Using network IB":          {"node7:4021:4077", "node7"},
		"node7:1:2 [0] NCCL INFO Chann node8:4021:4077 [3] NCCL INFO Using network IB":       {"node8:4021:4077", "node8"},
		"NCCL INFO Using network IB":                                                         {},
		"[3] NCCL INFO Using network IB":                                                     {},
		"12:34 NCCL INFO Using network IB":                                                   {},
	} {
		_, got, level := split(text)
		expect.That(t, got == want && level == levelInfo, "%q: got %+v %q, want %+v", text, got, level, want)
	}
}
