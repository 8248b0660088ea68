package text

import (
	"github.com/gpudoctor/gpudoctor/checks/text/amd"
	"github.com/gpudoctor/gpudoctor/checks/text/benchmark"
	"github.com/gpudoctor/gpudoctor/checks/text/host"
	"github.com/gpudoctor/gpudoctor/checks/text/launch"
	"github.com/gpudoctor/gpudoctor/checks/text/nccl"
	"github.com/gpudoctor/gpudoctor/checks/text/network"
	"github.com/gpudoctor/gpudoctor/checks/text/nvidia"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/runs"
)

// registry has every family, in the order in which a line is offered to their kinds.
var registry = parse.NewRegistry(
	launch.New, host.NewLimits, nvidia.New, amd.New, benchmark.New, network.New, host.New, runs.NewDeaths, host.NewSoftware, nccl.New, runs.NewProgress, runs.New,
)

// Kinds is every kind of text that is recognised.
func Kinds() []*parse.Kind { return registry.Kinds() }

// NewReading begins a reading of every kind.
func NewReading() *parse.Reading { return registry.NewReading() }
