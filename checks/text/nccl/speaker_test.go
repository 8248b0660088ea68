package nccl

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestNCCLSpeaker(t *testing.T) {
	for text, want := range map[string]speaker{
		"node7:4021:4077 [3] NCCL INFO Using network IB":                                     {"node7:4021", "node7"},
		"node7:4021:4077 NCCL INFO Using network IB":                                         {"node7:4021", "node7"},
		"0: node7:4021:4077 [3] NCCL INFO Using network IB":                                  {"node7:4021", "node7"},
		"[1,0]<stdout>:node7:4021:4077 [3] NCCL INFO Using network IB":                       {"node7:4021", "node7"},
		"[rank0]:node7:4021:4077 [3] NCCL INFO Using network IB":                             {"node7:4021", "node7"},
		"[trainer3|0]:node7:4021:4077 [3] NCCL INFO Using network IB":                        {"node7:4021", "node7"},
		"(RayWorkerWrapper pid=82, ip=10.0.0.2) node7:4021:4077 [3] NCCL INFO Using network": {"node7:4021", "node7"},
		"[2026-05-11 09:27:33] node7.example.org:4021:4077 [3] NCCL INFO Using network IB":   {"node7.example.org:4021", "node7.example.org"},
		"2026-05-11T09:27:33Z pod-0 node7:4021:4077 [3] NCCL INFO Using network IB":          {"node7:4021", "node7"},
		"node7:1:2 [0] NCCL INFO Chann node8:4021:4077 [3] NCCL INFO Using network IB":       {"node8:4021", "node8"},
		"NCCL INFO Using network IB":                                                         {},
		"[3] NCCL INFO Using network IB":                                                     {},
		"12:34 NCCL INFO Using network IB":                                                   {},
	} {
		_, got, level := split(text)
		expect.That(t, got == want && level == levelInfo, "%q: got %+v %q, want %+v", text, got, level, want)
	}
}
