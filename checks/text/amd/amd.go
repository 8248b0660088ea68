// Package amd reads what the tools and the libraries of AMD's GPUs print.
package amd

import "github.com/gpudoctor/gpudoctor/checks/text/parse"

// New makes the kinds of this package for one reading.
func New(*parse.Sink) parse.Family {
	return parse.Family{Kinds: []*parse.Kind{
		jsonKind, smiTopologyKind, smiTableKind, smiKind,
		rocmSMITopologyKind, rocmSMILineKind,
		rocminfoKind,
		transferBenchKind, rocmBandwidthKind, torchDevicesKind,
	}}
}
