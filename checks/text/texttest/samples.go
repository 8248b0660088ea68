package texttest

import (
	_ "embed"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

//go:embed samples.txtar
var samples []byte

// Samples are the texts that several packages read.
var Samples = txtar.Parse(samples).Files

var (
	// LspciVerbose is a root port and a GPU below it, from lspci -vvv.
	LspciVerbose = string(Samples[0].Data)
	// NvsmiTableText is nvidia-smi's table.
	NvsmiTableText = string(Samples[1].Data)
	// NCCLTestsTable is the output of all_reduce_perf.
	NCCLTestsTable = string(Samples[2].Data)
)

// PCIDevice returns a PCI function of a text's facts.
func PCIDevice(t *testing.T, f *facts.Facts, address string) facts.PCIDevice {
	t.Helper()
	if f.PCI != nil {
		for _, d := range f.PCI.Devices {
			if d.Address == address {
				return d
			}
		}
	}
	t.Fatalf("no function %s in %+v", address, f.PCI)
	return facts.PCIDevice{}
}
