package evidence

// benchmarkKinds are the kinds of text of this area.
var benchmarkKinds = []*Kind{cudaDevicesKind, ncclTestsKind, p2pBandwidthKind, simpleP2PKind, nvbandwidthKind, perftestKind, perftestGPUKind, peerMatrixKind, peerAnswerKind, peerCopyKind}
