package evidence

// nvidiaFamily are the kinds of text of this area.
func nvidiaFamily(*Sink) Family {
	return Family{Kinds: []*Kind{
		nvsmiXMLKind, nvsmiQueryKind, nvsmiTableKind, nvsmiCSVKind,
		nvtopoPeerKind, nvtopoKind, nvlinkStateKind, nvsmiListKind,
		nvdriverVersionKind, nvdriverParamsKind, nvdriverModuleKind, nvdriverGPUKind, nvdriverLinkKind,
		nvfabricServiceKind, nvfabricVersionKind,
	}}
}
