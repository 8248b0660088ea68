package evidence

import (
	"bytes"
	"testing"
)

// parseWithoutPrefilters is Parse, with each line offered to every kind whose anchors
// it holds.
func parseWithoutPrefilters(name, text string) *reading {
	r := newReading()
	anchors := *r.anchors
	anchors.prefilters = nil
	r.anchors = &anchors
	r.text(name, []byte(text))
	return r
}

// sameWithoutPrefilters holds that a text tells the same without prefilters.
func sameWithoutPrefilters(t *testing.T, name, text string) {
	t.Helper()
	want, got := indented(t, parseWithoutPrefilters(name, text).finish()), indented(t, Parse(name, text))
	if got != want {
		t.Errorf("%s: with prefilters: %s", name, difference(want, got))
	}
}

// TestPrefilters holds that the texts of the repository tell the same without
// prefilters.
func TestPrefilters(t *testing.T) {
	for name, text := range everyText(t) {
		sameWithoutPrefilters(t, name, text)
	}
	var log bytes.Buffer
	if err := writeLog(&log, 1<<20, 64); err != nil {
		t.Fatal(err)
	}
	sameWithoutPrefilters(t, "interleaved", log.String())
	sameWithoutPrefilters(t, "subsystems", string(allSubsystems(3)))
}

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

// FuzzPrefilters holds the same of any text.
func FuzzPrefilters(f *testing.F) {
	const largest = 8 << 10 // Larger ones are as slow to change as they are to read.
	for _, text := range everyText(f) {
		f.Add(text[:min(len(text), largest)])
	}
	for _, text := range ncclBenchmark {
		f.Add(text)
	}
	var log bytes.Buffer
	if err := writeLog(&log, 1, 8); err != nil {
		f.Fatal(err)
	}
	f.Add(log.String())
	f.Add("copy cuda:0 -> cuda:1 ok\nGPU 0 to GPU 1 copied: mismatch\ngpu0=>gpu1 memcpy correct, GPU 0 TO device 1 transfer wrong data")
	f.Add("nccl  2.18\n[conda] nccl\t2.1\n[\n  {\"HostConfig\": {\n}}\n]")
	f.Fuzz(func(t *testing.T, text string) { sameWithoutPrefilters(t, "x", text) })
}
