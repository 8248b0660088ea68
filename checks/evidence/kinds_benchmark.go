package evidence

// benchmarkFamily are the kinds of text of this area.
func benchmarkFamily(*Sink) Family {
	p := &perftest{}
	return Family{Kinds: []*Kind{
		cudaDevicesKind, ncclTestsKind, p2pBandwidthKind, simpleP2PKind, nvbandwidthKind, perftestKind(p), perftestGPUKind(p), peerMatrixKind, peerAnswerKind, peerCopyKind,
		pythonCopyKind(&pythonCopy{}),
	}}
}
