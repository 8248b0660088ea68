package evidence

import "testing"

// TestPrefilteredLines holds of which lines NCCL's log is only counted.
func TestPrefilteredLines(t *testing.T) {
	const who = "node1:2810:2811 [0] NCCL INFO "
	for line, want := range map[string]Relevance{
		who + "Connected to proxy localRank 0 -> connection 0x7f":       Counted,
		"12: " + who + "Imported shareable buffer device 0 size 2":      Counted,
		who + " 0 : GPU/0-60000 GPU/0-70000":                            Counted,
		who + "Ring 00 : 0 -> 1 -> 2":                                   Counted,
		who + "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM":               Relevant,
		who + "NCCL_DEBUG set by environment to INFO":                   Relevant,
		who + "NCCL version 2.28.9+cuda13.0":                            Relevant,
		who + "24 coll channels, 24 p2p channels":                       Relevant,
		who + "comm 0x1 rank 0 nranks 8 cudaDev 0 - Init COMPLETE":      Relevant,
		who + "a" + who + "Using network IB":                            Relevant,
		"NCCL INFO 0: Using network IB":                                 Relevant,
		"node1:2810:2811 [0] misc/x.cc:1 NCCL WARN Call to bind failed": Relevant,
	} {
		if got := ncclPrefilter([]byte(line)); got != want {
			t.Errorf("%q: got %d, want %d", line, got, want)
		}
	}
}
