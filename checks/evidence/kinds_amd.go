package evidence

// amdKinds are the kinds of text of this area.
var amdKinds = []*Kind{
	amdJSONKind, amdSMITopologyKind, amdSMITableKind, amdSMIKind, amdSMIVersionKind,
	rocmSMITopologyKind, rocmSMITableKind, rocmSMILineKind,
	rocminfoKind, rocminfoAgentsKind, rocminfoVersionKind, rocmLibraryKind,
	transferBenchKind, rocmBandwidthKind, torchDevicesKind, kernelConfigKind,
}
