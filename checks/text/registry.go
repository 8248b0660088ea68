package text

import (
	"github.com/gpudoctor/gpudoctor/checks/text/amd"
	"github.com/gpudoctor/gpudoctor/checks/text/benchmark"
	"github.com/gpudoctor/gpudoctor/checks/text/death"
	"github.com/gpudoctor/gpudoctor/checks/text/host"
	"github.com/gpudoctor/gpudoctor/checks/text/launch"
	"github.com/gpudoctor/gpudoctor/checks/text/nccl"
	"github.com/gpudoctor/gpudoctor/checks/text/network"
	"github.com/gpudoctor/gpudoctor/checks/text/nvidia"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/pci"
	"github.com/gpudoctor/gpudoctor/checks/text/rdma"
	"github.com/gpudoctor/gpudoctor/checks/text/runs"
	"github.com/gpudoctor/gpudoctor/checks/text/software"
)

// registry has every family, in the order in which a line is offered to their kinds.
var registry = parse.NewRegistry(
	launch.New, host.NewLimits, nvidia.New, amd.New, benchmark.New, rdma.New, network.New, pci.New, host.New, death.New, software.New, nccl.New, death.NewProgress, runs.New,
)

// Kinds is every kind of text that is recognised.
func Kinds() []*parse.Kind { return registry.Kinds() }

// NewReading begins a reading of every kind.
func NewReading() *parse.Reading { return registry.NewReading() }
