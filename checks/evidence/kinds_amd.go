package evidence

// amdFamily are the kinds of text of this area.
func amdFamily(*Sink) Family {
	return Family{Kinds: []*Kind{
		amdJSONKind, amdSMITopologyKind, amdSMITableKind, amdSMIKind, amdSMIVersionKind,
		rocmSMITopologyKind, rocmSMITableKind, rocmSMILineKind,
		rocminfoKind, rocminfoAgentsKind, rocminfoVersionKind, rocmLibraryKind,
		transferBenchKind, rocmBandwidthKind, torchDevicesKind,
	}}
}
