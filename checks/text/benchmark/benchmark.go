// Package benchmark reads what was measured and tried: bandwidths, latencies, copies.
package benchmark

import "github.com/gpudoctor/gpudoctor/checks/text/parse"

// New makes the kinds of this package for one reading.
func New(*parse.Sink) parse.Family {
	p := &perftest{}
	return parse.Family{Kinds: []*parse.Kind{
		cudaDevicesKind, ncclTestsKind, p2pBandwidthKind, simpleP2PKind, nvbandwidthKind, perftestKind(p), perftestGPUKind(p), peerMatrixKind, peerCopyKind,
		pythonCopyKind(&pythonCopy{}),
	}}
}
