package evidence

// nvidiaKinds are the kinds of text of this area.
var nvidiaKinds = []*Kind{
	nvsmiXMLKind, nvsmiQueryKind, nvsmiTableKind, nvsmiCSVKind,
	nvtopoPeerKind, nvtopoKind, nvlinkStateKind, nvsmiListKind,
	nvdriverVersionKind, nvdriverParamsKind, nvdriverModuleKind, nvdriverGPUKind, nvdriverLinkKind,
	nvfabricServiceKind, nvfabricVersionKind,
}
