package texttest

import (
	_ "embed"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

//go:embed samples.txtar
var samples []byte

// Samples are the texts that several packages read: LspciVerbose is a root port and a GPU below it, from lspci -vvv, NvsmiTableText
// is nvidia-smi's table, and NCCLTestsTable the output of all_reduce_perf.
var (
	Samples                                      = txtar.Parse(samples).Files
	LspciVerbose, NvsmiTableText, NCCLTestsTable = string(Samples[0].Data), string(Samples[1].Data), string(Samples[2].Data)
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
