// Package nvidia reads what the tools and the driver of NVIDIA's GPUs print.
package nvidia

import "github.com/gpudoctor/gpudoctor/checks/text/parse"

// New makes the kinds of this package for one reading.
func New(*parse.Sink) parse.Family {
	return parse.Family{Kinds: []*parse.Kind{
		nvsmiXMLKind, nvsmiQueryKind, nvsmiTableKind, nvsmiCSVKind,
		nvtopoPeerKind, nvtopoKind, nvsmiListKind,
		nvdriverVersionKind, nvdriverParamsKind,
		nvfabricServiceKind, nvfabricVersionKind, dcgmDiagKind,
	}}
}
